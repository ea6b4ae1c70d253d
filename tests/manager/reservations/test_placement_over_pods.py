"""Reservations that are placed over running pods, and what becomes of those that wait."""

from api import names
from tests import builders
from tests.manager.reservations.reserving import (
    ONLY,
    PODS,
    condition,
    place,
    reserve,
    stand_ins,
    status,
    unplaced,
)

FULL = "0/1 nodes are available: 1 Insufficient cpu."


async def over_a_pod(world, spec=None, **metadata):
    """A node that a pod fills, and a Reservation with preAllocation for such pods."""
    await world.node("n1", cpu="4")
    pod = builders.a_pod("old", node="n1", requests={"cpu": "3"}, labels={"job": "batch"})
    await world.admin.create(PODS, pod, "default")
    container = {"name": "c", "resources": {"requests": {"cpu": "4"}}}
    template = {"spec": {"containers": [container]}}
    await reserve(
        world, spec={"preAllocation": True, **(spec or {})}, template=template, **metadata
    )


def over(world):
    """The stand-in that asks for what a running pod does not hold, if there is one."""
    key = names.ANNOTATION_STAND_IN_PODS
    found = [one for one in stand_ins(world) if key in one["metadata"]["annotations"]]
    return found[0] if found else None


async def waiting(world):
    """Do what the extender does with such a stand-in."""
    old = world.stored(PODS, "old")["metadata"]
    owner = {"namespace": "default", "name": "old", "uid": old["uid"]}
    held = {"allocatable": {"cpu": "4"}, "currentOwners": [owner], "allocated": {"cpu": "3"}}
    await place(world, phase="Waiting", **held)


async def test_where_no_room_is_free_it_is_placed_over_a_pod_and_waits_for_its_end(world):
    async with world.manager(**ONLY):
        await over_a_pod(world)
        await world.until(lambda: stand_ins(world))
        assert over(world) is None
        await unplaced(world, stand_ins(world)[0], FULL)
        await world.until(lambda: over(world))
        (container,) = over(world)["spec"]["containers"]
        assert container["resources"]["requests"]["cpu"] == "1"
        await waiting(world)
        await world.until(lambda: not stand_ins(world))
        await world.pass_time(40)
        assert status(world)["phase"] == "Waiting"
        await world.admin.delete(PODS, "old", "default", grace_seconds=0)
        await world.pass_time(40)
        await world.until(lambda: status(world)["phase"] == "Available")
        assert not status(world).get("allocated")
        assert not status(world).get("currentOwners")
        assert condition(world, "Ready")["reason"] == "Available"


async def test_a_place_that_the_scheduler_refuses_is_given_up_for_free_room(world):
    async with world.manager(**ONLY):
        await over_a_pod(world)
        await world.until(lambda: stand_ins(world))
        await unplaced(world, stand_ins(world)[0], FULL)
        await world.until(lambda: over(world))
        await unplaced(world, over(world), "0/1 nodes are available: 1 node(s) had a taint.")
        await world.pass_time(12)
        await world.until(lambda: stand_ins(world) and not over(world))
        assert "no pod(s) to meet" in condition(world, "Scheduled")["message"]


async def test_one_that_needs_running_pods_takes_no_free_room(world):
    label = {names.LABEL_PRE_ALLOCATION_REQUIRED: "true"}
    async with world.manager(**ONLY):
        await over_a_pod(world, labels=label)
        await world.until(lambda: stand_ins(world))
        assert over(world)


async def test_a_waiting_reservation_expires_like_any(world):
    async with world.manager(**ONLY):
        await over_a_pod(world, {"ttl": "20s"})
        await waiting(world)
        await world.pass_time(25)
        assert status(world)["phase"] == "Failed"
