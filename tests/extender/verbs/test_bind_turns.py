"""Held binds that are let go together: written in turns, each after a fresh look at its node."""

import asyncio

import msgspec
import pytest

from domain.usage import load
from extender.framework import verdicts
from extender.state import deltas, gang_facts
from tests import patience
from tests.extender.clusters import slots


class _Together:
    """Lets all pods go at once, when told."""

    name = "Together"

    def __init__(self):
        self.open, self.asked = False, 0

    def pre_filter(self, pod, view):
        return object()

    def permit(self, pod, prepared, view, now):
        self.asked += 1
        return (
            verdicts.Allow(wakes=("all",)) if self.open else verdicts.Wait(1e12, "all", slots.LATE)
        )


async def test_binds_that_were_held_are_checked_and_written_in_turns(world):
    """Not all at once: the last would be written long after its check, and calls would wait."""
    plugin = _Together()
    here = world(plugin, count=100)
    under_way, most, gate = 0, 0, asyncio.Event()
    written = here.server.bind

    async def slow(*names_of, **more):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await gate.wait()
        await written(*names_of, **more)
        under_way -= 1

    here.server.bind = slow
    pods = [f"p{number}" for number in range(40)]
    here.pods(*pods)
    binds = [here.start(name) for name in pods]
    await patience.arrives(lambda: plugin.asked >= len(pods))
    plugin.open = True
    here.binder.waiting.wake(["all"])
    await patience.arrives(lambda: under_way == 16)
    # Those that wait for their turn find their check fresh, however long the others take.
    await here.clock.advance(4.0)
    gate.set()
    assert await asyncio.gather(*binds) == [[""]] * len(pods)
    assert most == 16
    assert here.server.bound.keys() == set(pods)


async def test_a_bind_whose_turn_comes_too_late_waits_again(world):
    """The quorum may be lost while earlier ones are written."""
    plugin = _Together()
    here = world(plugin, count=100)
    under_way, gate, written = 0, asyncio.Event(), here.server.bind

    async def slow(*names_of, **more):
        nonlocal under_way
        under_way += 1
        await gate.wait()
        await written(*names_of, **more)

    here.server.bind = slow
    pods = [f"p{number}" for number in range(20)]
    here.pods(*pods)
    binds = [here.start(name) for name in pods]
    await patience.arrives(lambda: plugin.asked >= len(pods))
    plugin.open = True
    here.binder.waiting.wake(["all"])
    await patience.arrives(lambda: under_way == 16)
    plugin.open, before = False, plugin.asked
    gate.set()
    await patience.arrives(lambda: plugin.asked >= before + 8)
    assert len(here.server.bound) == 16
    plugin.open = True
    here.binder.waiting.wake(["all"])
    assert await asyncio.gather(*binds) == [[""]] * len(pods)


async def test_of_many_held_binds_each_is_asked_about_less_often(world):
    plugin = _Together()
    here = world(plugin, count=400)
    pods = [f"p{number}" for number in range(300)]
    here.pods(*pods)
    binds = [here.start(name) for name in pods]
    await patience.arrives(lambda: plugin.asked >= len(pods))
    for _ in range(9):
        await here.clock.advance(1.0)
    assert plugin.asked <= 4 * len(pods)
    plugin.open = True
    here.binder.waiting.wake(["all"])
    assert await asyncio.gather(*binds) == [[""]] * len(pods)


class Counting:
    """Lets every pod pass by its node alone, and counts how often it is asked."""

    name = "Counting"

    def __init__(self):
        self.asked = 0

    def pre_filter(self, pod, view):
        return object()

    def filter(self, prepared, view, rows, now):
        self.asked += 1


def _change(here, change):
    match change:
        case "another pod there":
            here.pods("other", requests={})
            known = here.store.get("default/other")
            here.books.pod(known, msgspec.structs.replace(known, node="n1"), 1.0)
        case "the node":
            here.node("n1", 7)
        case "its report":
            here.books.report("n1", load.Report(0.0, 60.0, None, (), (), {}))
        case "an object of no node":
            ticket = slots.Ticket("uid-x")
            here.books.cluster.apply(deltas.ObjectDelta("ticket", "default/x", None, ticket))
        case "another node":
            here.node("n2", 7)
        case "a plan of a gang":
            plan = gang_facts.GangPlan("g", "1", 60.0)
            here.books.cluster.apply(deltas.ObjectDelta(deltas.GANG_PLAN, "g", None, plan))


@pytest.mark.parametrize(
    ("change", "seconds", "checks"),
    [
        ("nothing", 4.0, 0),
        ("another node", 1.0, 0),
        ("a plan of a gang", 1.0, 0),
        ("nothing", 6.0, 1),
        ("another pod there", 1.0, 1),
        ("the node", 1.0, 1),
        ("its report", 1.0, 1),
        ("an object of no node", 1.0, 1),
    ],
)
async def test_after_a_wait_a_node_is_judged_again_where_it_may_have_changed(
    world, change, seconds, checks
):
    plugin, together = Counting(), _Together()
    here = world(together, plugin)
    here.pods("d", requests={})
    waiting = here.start("d")
    await here.clock.settle()
    assert plugin.asked == 1
    _change(here, change)
    await here.clock.advance(seconds)
    together.open = True
    here.binder.waiting.wake(["all"])
    assert await waiting == [""]
    assert plugin.asked == 1 + checks
