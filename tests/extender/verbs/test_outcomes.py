"""Writes that ended without an answer are looked up, each by itself."""

import pytest

from kube.client import errors
from tests.extender.verbs.bind_world import World

SAID = {
    "a policy denies it": errors.Forbidden(403, message="denied by a policy"),
    "a webhook of its namespace answers late": errors.Unreachable("no answer in time"),
    "a webhook of its namespace is away": errors.ServerFailure(500, message="calling webhook"),
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
async def test_a_pod_that_cannot_be_fenced_holds_up_no_other(picture, make, said):
    world = World(picture, make)
    patch = world.server.patch

    async def unanswered(*_, **__):
        raise errors.Unreachable("no answer")

    async def refusing(resource, name, body, *, namespace):
        if name == "first":
            raise said
        return await patch(resource, name, body, namespace=namespace)

    world.server.patch, world.server.fault = unanswered, "stalls"
    for name in ("first", "second"):
        world.create(name, {"kubernetes.io/batch-cpu": "1000"})
        assert "no known outcome" in await world.bind(name=name)
    world.server.patch, world.server.fault = refusing, None
    for _ in range(2):
        await world.binder.outcomes.sweep_once()
    assert world.counted("first") == "n1"
    assert world.counted("second") == ""
