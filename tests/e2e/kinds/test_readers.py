"""Ordinary roles of Kubernetes decide who reads which of our kinds."""

import itertools

import pytest

from api.kubernetes import crds
from tests.e2e.kinds import test_definitions

installed, ours = test_definitions.installed, test_definitions.ours
COUNTER = itertools.count()


@pytest.fixture
def plane(real_plane):
    return real_plane


def plurals():
    for definition in crds.definitions():
        spec = definition["spec"]
        yield f"{spec['names']['plural']}.{spec['group']}"


@pytest.fixture
async def reader(ours):
    """Give one user the right to get one kind; everything is taken back at the end."""
    name = f"reader-{next(COUNTER)}"
    made = []

    async def give(plural):
        await ours("create", "clusterrole", name, "--verb=get", f"--resource={plural}")
        made.append("clusterrole")
        binding = ("create", "clusterrolebinding", name, f"--clusterrole={name}")
        await ours(*binding, f"--user={name}")
        made.append("clusterrolebinding")
        return name

    yield give
    for kind in made:
        await ours("delete", kind, name)


@pytest.mark.parametrize(
    "plural", ["nodemetrics.slo.koordinator.sh", "elasticquotas.scheduling.sigs.k8s.io"]
)
async def test_who_may_get_one_kind_may_get_no_other(ours, reader, plural):
    """A missing object is found missing by a reader, and forbidden to everybody else."""
    user = await reader(plural)
    for other in plurals():
        said = await ours.fails("get", other, "some", "-n", "default", f"--as={user}")
        assert ("NotFound" if other == plural else "Forbidden") in said, other
    said = await ours.fails("get", plural, "-A", f"--as={user}")
    assert "cannot list resource" in said
