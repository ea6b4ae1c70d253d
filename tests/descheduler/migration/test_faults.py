"""An API server that refuses, drops connections and breaks watches delays a move, and no more."""

import pytest

from simulator import faults
from tests.descheduler.migration.conftest import KEPT, PODS

ERRORS = {
    "the server fails": faults.Refuse(500),
    "the server is overloaded": faults.Refuse(429, retry_after=1),
    "the connection is lost": faults.Drop(),
    "others were faster": faults.Refuse(409),
}
ALL = {"agent": "descheduler"}


async def moves(world):
    """See that a pod moves in spite of everything, and that nothing is left."""
    await world.pod()
    async with world.migrating():
        await world.move(ttl="30m")
        await world.until(lambda: world.reservation())
        await world.place(world.reservation()["metadata"]["name"])
        await world.until(lambda: world.stored(PODS, "web-0") is None)
        await world.used()
        await world.phase("Succeeded")
        await world.passing(5)
    (held,) = world.stored(KEPT)
    assert held["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize("verb", ["create", "patch"])
@pytest.mark.parametrize("action", ERRORS.values(), ids=ERRORS)
async def test_writes_that_fail_are_tried_again(world, action, verb):
    rule = world.trouble.add(faults.Rule(action, verb=verb, times=6, **ALL))
    await moves(world)
    assert rule.met


@pytest.mark.parametrize(
    "action",
    [faults.Break(1), faults.Expire(), faults.Drop()],
    ids=["broken off", "its version is gone", "lost"],
)
async def test_watches_that_end_are_opened_again(world, action):
    rule = world.trouble.add(faults.Rule(action, verb="watch", times=12, **ALL))
    await moves(world)
    assert rule.met


async def test_reads_that_fail_evict_no_pod(world):
    """What cannot be read once more is not decided on."""
    await world.pod()
    async with world.migrating():
        await world.move()
        await world.until(lambda: world.reservation())
        rule = faults.Rule(faults.Refuse(500), verb="get", resource="reservations*", **ALL)
        world.trouble.add(rule)
        await world.place(world.reservation()["metadata"]["name"])
        await world.until(lambda: world.condition("Eviction") == ("False", "EvictionBegun"))
        await world.passing(60)
        assert world.stored(PODS, "web-0")
        assert world.reservation()["spec"]["unschedulable"] is True
