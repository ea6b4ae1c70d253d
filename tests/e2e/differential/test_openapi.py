"""The simulator's types of built-in kinds are those that the real API server publishes."""

import pytest

from simulator.apiserver.registry import builtin_schemas
from tests.e2e import binaries, openapi


@pytest.fixture
def plane(real_plane):
    return real_plane


async def test_the_committed_schemas_are_those_of_their_release(api):
    if binaries.version() != builtin_schemas.release():
        pytest.skip(f"the schemas are those of Kubernetes {builtin_schemas.release()}")
    documents = await openapi.read(api)
    made = openapi.collected(documents, builtin_schemas.release())
    assert made["schemas"] == builtin_schemas.definitions()
    assert openapi.packed(made) == openapi.TARGET.read_bytes()
