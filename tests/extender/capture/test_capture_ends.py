"""What has ended when its placing is answered keeps nothing, in whatever order that is heard."""

import pytest

from api import resources
from api.koordinator import scheduling
from extender.state.reservations import reservation_claims
from kube.client import errors
from kube.informers import store
from tests.extender.capture import capture_stage


def shows(world):
    """The watch shows the Reservation as it is."""
    raw = world.reservation
    claim = reservation_claims.claim(scheduling.read_reservation(raw), world.picture.projector)
    meta = raw["metadata"]
    world.shown.put(store.Meta("r", meta["uid"], int(meta["resourceVersion"])), claim)


def ends(world):
    """The Reservation is deleted, and the watch says so."""
    shows(world)
    capture_stage.deleted(world)
    world.server.version += 1
    world.shown.remove("r", world.server.version)


def ends_unseen(world):
    """The watch is interrupted, and the list after it holds no Reservation."""
    capture_stage.deleted(world)
    world.server.version += 1
    world.shown.finish((), world.server.version)


def expires(world):
    """The Reservation expires at once, and the watch shows it so."""
    world.reserve(phase="Failed", nodeName="n1", allocatable={"cpu": "4"})
    shows(world)


@pytest.mark.parametrize("end", [ends, ends_unseen, expires])
@pytest.mark.parametrize(
    "step", [capture_stage.SECOND, capture_stage.DELETE], ids=["before its answer", "after it"]
)
async def test_what_has_ended_when_its_placing_is_answered_keeps_nothing(world, step, end):
    world.reserve()
    world.stand_in()
    world.server.after[step] = lambda: end(world)
    assert "captured" in await world.bind()
    await world.binder.captures.sweep_once()
    assert world.counted() == ""


async def test_what_the_watch_has_not_reached_counts_and_then_what_it_shows(world):
    world.reserve()
    shows(world)
    world.stand_in()
    assert "captured" in await world.bind()
    await world.binder.captures.sweep_once()
    assert world.counted() == "n1"
    shows(world)
    await world.binder.captures.sweep_once()
    assert world.counted() == "n1"
    world.picture.books.expire(world.clock.now() + 3600)
    assert world.counted() == "n1"
    ends(world)
    assert world.counted() == ""


@pytest.mark.parametrize("how", ["retried", "swept"])
async def test_one_that_was_placed_and_cannot_be_read_any_more_keeps_what_it_held(world, how):
    """Its author has changed the template while it was not known whether it was placed."""
    world.reserve()
    world.stand_in()
    await world.in_doubt("answer lost")
    world.server.fault = ("", "")
    spec = world.reservation["spec"] | {"template": {"spec": {"containers": "none"}}}
    world.server.put((resources.RESERVATIONS.plural, "r"), world.reservation | {"spec": spec})
    if how == "swept":
        await world.binder.captures.sweep_once()
    else:
        assert "is on node n1 already" in await world.bind()
    assert world.counted() == "n1"
    await world.binder.captures.sweep_once()
    assert world.counted() == "n1"


async def test_one_that_others_write_all_the_time_is_held_until_it_is_known_to_be_placed(world):
    """An API server answers a conflict after some tries of its own, also without a version."""

    def contended():
        raise errors.Conflict(409, message="the object has been modified")

    world.reserve()
    world.stand_in()
    world.server.fault = (capture_stage.SECOND, "answer lost")
    world.server.before[capture_stage.FENCE] = contended
    assert "is not known" in await world.bind()
    assert world.node() == world.counted() == "n1"
    await world.binder.captures.sweep_once()
    assert world.counted() == "n1"
    assert world.usable()
