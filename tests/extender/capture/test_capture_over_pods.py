"""Reservations that are placed over running pods: they wait, and keep what these leave."""

import pytest

from api import names
from extender.plugins.reservation import tracker


def over(world, *uids, cpu="1"):
    """The stand-in of a Reservation that is placed over running pods."""
    world.stand_in(cpu=cpu, notes={names.ANNOTATION_STAND_IN_PODS: ",".join(uids)})


def runs(world, name, cpu="3", node="n1"):
    raw = world.make.pod(name, uid=f"uid-{name}", requests={"cpu": cpu}, node=node)
    world.picture.add(raw)
    return raw


async def test_over_a_running_pod_it_waits_and_keeps_only_what_that_pod_does_not_hold(world):
    world.reserve()
    pod = runs(world, "old")
    over(world, "uid-old")
    assert (await world.bind()).startswith("captured")
    status = world.reservation["status"]
    assert (status["phase"], status["nodeName"]) == ("Waiting", "n1")
    assert status["allocatable"] == {"cpu": "4"}
    assert status["allocated"] == {"cpu": "3"}
    owner = {"namespace": "default", "name": "old", "uid": "uid-old"}
    assert status["currentOwners"] == [owner]
    assert status["conditions"][1]["reason"] == "Waiting"
    assert "default/old" in status["conditions"][1]["message"]
    assert kept(world) == 1000
    world.picture.add({**pod, "status": {**pod["status"], "phase": "Succeeded"}})
    assert kept(world) == 4000


def kept(world):
    """What the Reservation keeps of n1 from pods that come."""
    info = world.picture.cluster.view().node(0)
    (one,) = tracker.node(info)[1].kept
    assert one.owners == ""
    return one.held.kept()["cpu"]


CHANGED = {
    "has ended": ({}, ["uid-gone"], "1"),
    "runs elsewhere": ({"node": "n2"}, ["uid-old"], "1"),
    "holds less": ({"cpu": "2"}, ["uid-old"], "1"),
    "one of two has ended": ({}, ["uid-old", "uid-gone"], "1"),
}


@pytest.mark.parametrize(("pod", "uids", "cpu"), CHANGED.values(), ids=CHANGED)
async def test_over_pods_that_have_changed_it_is_not_placed(world, pod, uids, cpu):
    world.reserve()
    runs(world, "old", **pod)
    over(world, *uids, cpu=cpu)
    answer = await world.bind()
    assert "have changed" in answer
    assert world.node() == world.counted() == ""
    assert world.server.log == []


async def test_what_one_pod_holds_is_promised_to_one_reservation(world):
    world.reserve()
    runs(world, "old")
    over(world, "uid-old")
    await world.bind()
    world.reserve(uid="uid-other")
    notes = {names.ANNOTATION_STAND_IN_UID: "uid-other", names.ANNOTATION_STAND_IN_PODS: "uid-old"}
    world.stand_in("t", "uid-t", cpu="1", notes=notes)
    assert "Reservation r waits for one of them" in await world.bind(name="t", uid="uid-t")
