"""A world whose pods have slots to be bound to, for all tests of binds that wait in Permit."""

import pytest

from tests.extender.verbs.permit_world import World


@pytest.fixture
def requirements(picture):
    return lambda raw: picture.record(raw).requirements


@pytest.fixture
def world(make, requirements):
    def made(*plugins, count=2, deadline=25):
        built = World(make, requirements, deadline, *plugins)
        built.node("n1", count)
        built.pods("a", "b", "c")
        return built

    return made
