"""What a user may not read is named, and everything else is shown."""

import types

import pytest

from api import names, resources
from cli.view import overview, overview_reader, tables
from kube.client import errors
from tests import builders

MAPS = (names.CONFIG_MAP_SWITCHES, names.CONFIG_MAP_SCHEDULER, names.CONFIG_MAP_REPORT)
QUOTAS = tuple(one.review_name() for one in resources.QUOTA_RESOURCES)
OPTIONAL = (*resources.QUOTA_RESOURCES, resources.CONFIG_MAPS)


class Kube:
    """An API server with one node that answers for everything optional with the same error."""

    def __init__(self, error):
        self.error = error

    async def list(self, resource):
        if resource in OPTIONAL:
            raise self.error
        items = [builders.a_node("n1", cpu="8")] if resource is resources.NODES else []
        return types.SimpleNamespace(items=items)

    async def get(self, resource, name, namespace):
        raise self.error


@pytest.mark.parametrize(
    ("error", "forbidden"),
    [
        (errors.NotFound(404), ()),
        (errors.Forbidden(403), (*(f"ConfigMap {name}" for name in MAPS), *QUOTAS)),
    ],
    ids=["not there", "forbidden"],
)
async def test_what_may_not_be_read_is_named(error, forbidden):
    found = await overview_reader.read(Kube(error))
    assert [row.name for row in found.nodes] == ["n1"]
    assert found.forbidden == forbidden
    said = [line for line in tables.lines(found) if "may not read" in line]
    assert said == list(overview.hidden(found))
    assert bool(said) is bool(forbidden)
    assert all(name in said[0] for name in forbidden)
    assert tuple(overview.as_json(found)["forbidden"]) == forbidden
