"""Stand-ins, status and the end of Reservations as they reach the API server."""

import pytest

from api import names, resources
from api.wire import durations
from tests.manager.reservations.reserving import (
    KIND,
    ONLY,
    PODS,
    condition,
    owner,
    place,
    reserve,
    stand_ins,
    status,
    unplaced,
)


async def test_a_reservation_gets_one_stand_in_until_it_has_a_node(world):
    await world.node("n1")
    async with world.manager(**ONLY):
        await reserve(world)
        await world.until(lambda: stand_ins(world))
        (pod,) = stand_ins(world)
        assert pod["spec"]["schedulerName"] == "koord-scheduler"
        assert (pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]) == (10**9, "Never")
        before = world.stored(KIND, "r")
        await world.pass_time(60)
        assert stand_ins(world) == [pod]
        assert world.stored(KIND, "r") == before
        await place(world)
        await world.until(lambda: not stand_ins(world))
        assert status(world)["phase"] == "Available"
        await world.pass_time(60)
        assert not stand_ins(world)


async def test_a_restart_goes_on_with_the_stand_in_that_is_there(world):
    async with world.manager(**ONLY):
        await reserve(world)
        await world.until(lambda: stand_ins(world))
        found = stand_ins(world)
    async with world.manager(**ONLY):
        await world.pass_time(20)
        assert stand_ins(world) == found
        await world.admin.delete(KIND, "r")
    async with world.manager(**ONLY):
        await world.until(lambda: not stand_ins(world))


async def test_the_status_says_why_no_node_is_found_and_since_when(world):
    async with world.manager(**ONLY):
        await reserve(world)
        await world.until(lambda: stand_ins(world))
        (pod,) = stand_ins(world)
        await unplaced(world, pod, "0/3 nodes are available: 3 Insufficient cpu.")
        await world.until(lambda: condition(world, "Scheduled"))
        first = condition(world, "Scheduled")
        assert (first["status"], first["reason"]) == ("False", "Unschedulable")
        assert first["message"] == "0/3 nodes are available: 3 Insufficient cpu."
        assert status(world)["phase"] == "Pending"
        await world.pass_time(10)
        await unplaced(world, pod, "0/4 nodes are available: 4 Insufficient cpu.")
        await world.until(lambda: "0/4" in condition(world, "Scheduled")["message"])
        assert condition(world, "Scheduled")["lastTransitionTime"] == first["lastTransitionTime"]
        await world.until(lambda: "FailedScheduling" in world.reasons("r"))
        assert status(world)["phase"] == "Pending"


async def test_a_template_that_cannot_be_placed_is_told_and_left(world):
    template = {"spec": {"containers": [{"name": "c"}], "schedulerName": "volcano"}}
    async with world.manager(**ONLY):
        await reserve(world, template=template)
        await world.until(lambda: condition(world, "Scheduled"))
        assert "schedulerName: volcano" in condition(world, "Scheduled")["message"]
        assert not stand_ins(world)


async def test_a_stand_in_that_is_bound_or_deleted_is_replaced_later_and_later(world):
    await world.node("n1")
    async with world.manager(reservations={"tries": 3}, **ONLY):
        await reserve(world)
        seen = []
        for number in range(3):
            await world.until(lambda: stand_ins(world))
            (pod,) = stand_ins(world)
            seen.append(pod["metadata"]["name"])
            if number:
                await world.admin.delete(PODS, seen[-1], "default", grace_seconds=0)
            else:
                uid = pod["metadata"]["uid"]
                await world.admin.bind("default", seen[-1], uid=uid, node="n1", annotations={})
            await world.until(lambda: not stand_ins(world))
            await world.pass_time(2 * 2**number)
            assert not stand_ins(world)
            await world.pass_time(5 * 2**number)
        assert len(set(seen)) == 3
        await world.pass_time(60)
        assert not stand_ins(world)
        assert "3 stand-in pods ended" in condition(world, "Scheduled")["message"]
        await world.admin.patch(KIND, "r", {"spec": {"ttl": "1h"}})
        await world.until(lambda: stand_ins(world))


async def test_a_reservation_that_is_changed_gets_another_stand_in(world):
    def asks():
        return [
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in stand_ins(world)
        ]

    async with world.manager(**ONLY):
        await reserve(world)
        await world.until(lambda: asks() == ["4"])
        container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
        change = {"spec": {"template": {"spec": {"containers": [container]}}}}
        await world.admin.patch(KIND, "r", change)
        await world.until(lambda: asks() == ["2"])


async def test_owners_are_counted_while_they_live(world):
    await world.node("n1")
    async with world.manager(**ONLY):
        await reserve(world, spec={"allocateOnce": False})
        await place(world)
        for name in "ab":
            await owner(world, name)
        await world.pass_time(3)
        await world.until(lambda: status(world).get("allocated") == {"cpu": "2"})
        assert sorted(one["name"] for one in status(world)["currentOwners"]) == ["a", "b"]
        await world.admin.delete(PODS, "a", "default", grace_seconds=0)
        await world.pass_time(3)
        await world.until(lambda: status(world).get("allocated") == {"cpu": "1"})
        await world.admin.delete(PODS, "b", "default", grace_seconds=0)
        await world.pass_time(3)
        await world.until(lambda: not status(world).get("allocated"))
        assert status(world)["phase"] == "Available"
        assert status(world).get("currentOwners", []) == []


async def test_owners_that_come_together_are_written_together(world):
    writes = []
    await world.node("n1")
    async with world.manager(**ONLY):
        await reserve(world, spec={"allocateOnce": False})
        await place(world)
        await world.pass_time(5)
        world.plane.state.objects.subscribe(lambda event: writes.append(event), KIND)
        for name in "abc":
            await owner(world, name)
            await world.quiet()
        assert not writes
        await world.pass_time(2)
        assert status(world)["allocated"] == {"cpu": "3"}
        assert len(status(world)["currentOwners"]) == 3
        assert len(writes) == 1
        await owner(world, "d")
        await world.pass_time(1)
        assert len(writes) == 1
        await world.pass_time(2)
        assert status(world)["allocated"] == {"cpu": "4"}
        assert len(writes) == 2


async def test_statuses_that_name_owners_of_many_reservations_take_turns(world):
    writes = []
    await world.node("n1")
    async with world.manager(reservations={"usesPerSecond": 1}, **ONLY):
        for name in "abc":
            await reserve(world, name, spec={"allocateOnce": False})
            await place(world, name)
        await world.pass_time(5)
        world.plane.state.objects.subscribe(lambda event: writes.append(event), KIND)
        for name in "abc":
            await owner(world, f"owner-of-{name}", name)
            await world.quiet()
        for written in range(1, 4):
            await world.pass_time(2 if written == 1 else 1)
            assert len(writes) == written
        # What is more than a number of owners waits for no turn.
        await reserve(world, "d")
        await place(world, "d")
        for name in "ad":
            await owner(world, f"next-of-{name}", name)
        await world.until(lambda: status(world, "d")["phase"] == "Succeeded")
        assert status(world, "a")["allocated"] == {"cpu": "1"}
        await world.pass_time(3)
        assert status(world, "a")["allocated"] == {"cpu": "2"}


async def test_the_first_owner_uses_it_up_and_a_day_later_it_is_gone(world):
    await world.node("n1")
    async with world.manager(**ONLY):
        await configure(world, "gcDurationSeconds: 30")
        await reserve(world)
        await place(world)
        await owner(world, "a")
        await world.until(lambda: status(world)["phase"] == "Succeeded")
        assert [one["name"] for one in status(world)["currentOwners"]] == ["a"]
        await world.pass_time(25)
        assert world.stored(KIND, "r")
        await world.pass_time(10)
        assert world.stored(KIND, "r") is None


async def configure(world, line):
    text = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: koord-scheduler
  pluginConfig:
  - name: Reservation
    args:
      {line}
"""
    metadata = {"name": names.CONFIG_MAP_SCHEDULER, "namespace": names.NAMESPACE}
    body = {"metadata": metadata, "data": {"koord-scheduler-config": text}}
    await world.admin.create(resources.CONFIG_MAPS, body, names.NAMESPACE)


@pytest.mark.parametrize("spec", [{"ttl": "20s"}, {"expires": None}], ids=("ttl", "expires"))
async def test_it_fails_when_its_time_is_over(world, spec):
    await world.node("n1")
    if "expires" in spec:
        spec = {"expires": durations.moment(world.clock.now() + 20)}
    async with world.manager(**ONLY):
        await reserve(world, spec=spec)
        await reserve(world, "pending", spec=spec)
        await place(world)
        await world.pass_time(15)
        assert status(world)["phase"] == "Available"
        await world.pass_time(10)
        assert status(world)["phase"] == "Failed"
        assert condition(world, "Ready")["reason"] == "Expired"
        assert condition(world, "Ready", "pending")["reason"] == "Expired"
        assert status(world, "pending")["phase"] == "Failed"
        await world.until(lambda: not stand_ins(world))


async def test_one_that_never_had_a_node_is_removed_like_any_that_has_expired(world):
    async with world.manager(**ONLY):
        await configure(world, "gcDurationSeconds: 30")
        await reserve(world, spec={"ttl": "20s"})
        await world.until(lambda: stand_ins(world))
        await world.pass_time(22)
        await world.until(lambda: status(world).get("phase") == "Failed")
        assert "Expired" in world.reasons("r")
        await world.pass_time(40)
        await world.until(lambda: world.stored(KIND, "r") is None)


async def test_it_fails_with_its_node_but_not_while_the_node_is_new(world):
    async with world.manager(**ONLY):
        await reserve(world)
        await place(world)
        await world.pass_time(3)
        assert status(world)["phase"] == "Available"
        await world.node("n1")
        await world.pass_time(10)
        assert status(world)["phase"] == "Available"
        await world.admin.delete(resources.NODES, "n1")
        await world.pass_time(8)
        assert world.stored(KIND, "r") is None or status(world)["phase"] == "Failed"


async def test_an_unreadable_reservation_stops_no_other(world):
    async with world.manager(**ONLY):
        await reserve(world, "bad", template={"spec": {"containers": 7}})
        await reserve(world, "good")
        await world.until(lambda: stand_ins(world))
        (pod,) = stand_ins(world)
        assert pod["metadata"]["labels"][names.LABEL_STAND_IN] == "good"
        await world.until(lambda: condition(world, "Scheduled", "bad"))
        assert "cannot be read" in condition(world, "Scheduled", "bad")["message"]


def elsewhere(**spec):
    """Return a template whose namespace admits no pods: it does not exist."""
    container = {"name": "c", "resources": {"requests": {"cpu": "4"}}}
    return {"metadata": {"namespace": "closed"}, "spec": {"containers": [container], **spec}}


async def test_where_its_namespace_admits_no_stand_in_another_one_is_used(world):
    async with world.manager(**ONLY):
        await reserve(world, template=elsewhere())
        await world.until(lambda: stand_ins(world))
        (pod,) = stand_ins(world)
        assert pod["metadata"]["namespace"] == names.NAMESPACE
        await world.pass_time(3)
        assert condition(world, "Scheduled") is None


async def test_what_counts_in_one_namespace_waits_for_it_and_says_so(world):
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    async with world.manager(**ONLY):
        await reserve(world, template=elsewhere(topologySpreadConstraints=[spread]))
        await world.until(lambda: condition(world, "Scheduled"))
        message = condition(world, "Scheduled")["message"]
        assert "topologySpreadConstraints" in message
        assert "namespace closed admits no stand-in pod" in message
        assert not stand_ins(world)
        await world.admin.create(resources.NAMESPACES, {"metadata": {"name": "closed"}})
        await world.pass_time(12)
        (pod,) = stand_ins(world)
        assert pod["metadata"]["namespace"] == "closed"
