"""Capture as a transaction: faults and deaths at every write, late writes, changes by others."""

import asyncio

import pytest

from api import resources
from kube.client import errors
from tests.extender.capture import capture_stage


async def test_the_reservation_gets_the_node_and_its_stand_in_goes(world):
    world.reserve()
    world.stand_in()
    answer = await world.bind()
    assert answer.startswith("captured: Reservation r now holds node n1")
    assert world.server.log == [capture_stage.FIRST, capture_stage.SECOND, capture_stage.DELETE]
    assert not world.is_there()
    status = world.reservation["status"]
    assert (status["phase"], status["nodeName"]) == ("Available", "n1")
    assert status["allocatable"] == {"cpu": "4"}
    kinds = [(one["type"], one["status"], one["reason"]) for one in status["conditions"]]
    assert kinds == [("Scheduled", "True", "Scheduled"), ("Ready", "True", "Available")]
    assert world.counted() == "n1"


async def test_owners_may_use_it_once_its_status_is_answered_before_the_watch_shows_it(world):
    world.reserve()
    world.stand_in()
    before = []
    world.server.before[capture_stage.SECOND] = lambda: before.append(world.usable())
    world.server.before[capture_stage.DELETE] = lambda: before.append(world.usable())
    await world.bind()
    assert before == [False, True]


PLACED = {
    "answer lost": (capture_stage.SECOND, "answer lost"),
    "stand-in not deleted": (capture_stage.DELETE, "lost"),
    "stand-in deleted, answer lost": (capture_stage.DELETE, "answer lost"),
}


@pytest.mark.parametrize("fault", PLACED.values(), ids=PLACED)
async def test_what_is_written_counts_whatever_was_answered(world, fault):
    world.reserve()
    world.stand_in()
    world.server.fault = fault
    assert "captured" in await world.bind()
    assert world.node() == world.counted() == "n1"


UNPLACED = {
    f"{kind}, {step}": (step, kind)
    for step in (capture_stage.FIRST, capture_stage.SECOND)
    for kind in ("lost", "not sent", "refused", "late")
} | {"answer lost, annotations": (capture_stage.FIRST, "answer lost")}


@pytest.mark.parametrize("fault", UNPLACED.values(), ids=UNPLACED)
async def test_what_is_not_written_holds_nothing_and_the_next_call_places_it(world, fault):
    world.reserve()
    world.stand_in()
    world.server.fault = fault
    answer = await world.bind()
    assert "was not placed" in answer
    assert world.node() == world.counted() == ""
    assert world.is_there()
    assert "captured" in await world.bind("n2")
    # Late writes of the first attempt change nothing any more.
    assert set(world.server.arrive()) <= {"Conflict"}
    assert world.node() == world.counted() == "n2"


@pytest.mark.parametrize("how", ["swept", "retried"])
async def test_capacity_is_held_until_it_is_known_whether_the_status_was_written(world, how):
    world.reserve()
    world.stand_in()
    await world.in_doubt("late")
    assert "is not known" in await world.bind("n2")
    assert world.counted() == "n1"
    world.server.fault = ("", "")
    if how == "retried":
        assert "captured" in await world.bind("n2")
        assert set(world.server.arrive()) == {"Conflict"}
        assert world.node() == world.counted() == "n2"
        return
    await world.binder.captures.sweep_once()
    assert world.counted() == ""
    assert set(world.server.arrive()) == {"Conflict"}
    assert world.node() == ""


DEATHS = [
    (step, when)
    for step in (capture_stage.FIRST, capture_stage.SECOND, capture_stage.DELETE)
    for when in ("killed before", "killed after")
]


@pytest.mark.parametrize("fault", DEATHS, ids=lambda fault: " ".join(fault))
async def test_a_death_between_any_two_writes_is_made_good_by_the_next_call(world, fault):
    world.reserve()
    world.stand_in()
    world.server.fault = fault
    with pytest.raises(capture_stage.Killed):
        await world.bind()
    world.restart()
    placed = world.node()
    assert placed == ("n1" if fault in (DEATHS[3], DEATHS[4], DEATHS[5]) else "")
    answer = await world.bind("n2")
    if placed:
        assert "no pod was bound" in answer or "stand-in is gone" in answer
        assert world.node() == "n1"
    else:
        assert "captured" in answer
        assert world.node() == world.counted() == "n2"
    assert not world.is_there()


def changed(world):
    world.server.put((resources.RESERVATIONS.plural, "r"), dict(world.reservation))


def another(world):
    world.reserve("another-uid")


def elsewhere(world):
    world.reserve(phase="Available", nodeName="n2", allocatable={"cpu": "4"})


MEANWHILE = {
    "changed": (changed, "captured", "n1"),
    "deleted": (capture_stage.deleted, "gone", ""),
    "replaced": (another, "is gone", ""),
    "placed by another process": (elsewhere, "is on node n2 already", "n2"),
}


@pytest.mark.parametrize("step", [capture_stage.FIRST, capture_stage.SECOND])
@pytest.mark.parametrize(("change", "text", "node"), MEANWHILE.values(), ids=MEANWHILE)
async def test_what_others_write_meanwhile_counts(world, step, change, text, node):
    world.reserve()
    world.stand_in()
    world.server.before[step] = lambda: change(world)
    answer = await world.bind()
    if change is capture_stage.deleted:
        assert "was not placed" in answer
        assert "gone" in await world.bind()
    else:
        assert text in answer
    assert world.node() == node
    assert not world.is_there()
    assert world.counted() == ("n1" if node == "n1" else "")


ENDED = {
    "gone": (None, "is gone"),
    "another of its name": ({"uid": "other"}, "is gone"),
    "placed": ({"nodeName": "n2", "phase": "Available"}, "is on node n2 already"),
    "failed": ({"phase": "Failed"}, "has ended: Failed"),
    "changed": ({"generation": 2}, "was changed since"),
}


@pytest.mark.parametrize(("given", "text"), ENDED.values(), ids=ENDED)
async def test_a_stand_in_that_is_of_no_use_is_removed_and_nothing_is_written(world, given, text):
    if given is not None:
        world.reserve(**given)
    world.stand_in()
    assert text in await world.bind()
    assert world.server.log == [capture_stage.DELETE]
    assert world.counted() == ""


async def test_of_two_stand_ins_one_places_the_reservation(world):
    world.reserve()
    world.stand_in()
    world.stand_in("t", "uid-t")
    both = await asyncio.gather(world.bind(), world.bind("n2", "t", "uid-t"))
    assert sum("captured" in answer for answer in both) == 1
    assert world.node() == world.counted()


async def test_what_does_not_fit_is_refused_before_any_write(world):
    world.reserve()
    world.stand_in()
    assert "node n9 is not known" in await world.bind("n9")
    assert world.server.log == []


async def test_a_write_that_comes_too_late_after_the_check_is_held_back(world):
    world.reserve()
    world.stand_in()
    assert "captured" in await world.bind()
    await world.clock.advance(6)
    with pytest.raises(errors.Deposed):
        world.server.guard.check()
