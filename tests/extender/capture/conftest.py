"""The world in which stand-ins are captured."""

import pytest

from tests.extender.capture import capture_stage


@pytest.fixture
def world(picture, make):
    made = capture_stage.World(picture, make)
    yield made
    assert not picture.books.assumptions
