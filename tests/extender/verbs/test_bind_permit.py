"""Bind with allocations: all or nothing, waits of Permit, and the look after a wait."""

import asyncio
import json

import pytest

from api import names
from extender.state import deltas
from tests.extender.clusters import slots


async def test_what_plug_ins_granted_is_counted_at_once_and_written_with_the_node(world):
    here = world()
    answers = [await here.bind(name) for name in "abc"]
    assert answers == ["", "", "no slot is free"]
    assert {name: notes[slots.ANNOTATION] for name, (_, notes) in here.server.bound.items()} == {
        "a": "0",
        "b": "1",
    }
    payload = json.loads(here.server.bound["b"][1][names.PLACEMENT])
    assert payload["granted"] == {slots.NAME: {"number": 1}}


@pytest.mark.parametrize("failure", ["refused", "no slot", "stale change"])
async def test_a_bind_that_fails_leaves_the_same_bytes(world, failure):
    here = world(slots.Tickets())
    if failure == "no slot":
        here.node("n1", 0)
    if failure == "stale change":
        here.books.cluster.apply(
            deltas.ObjectDelta("ticket", "default/a", None, slots.Ticket("someone"))
        )
    here.empty = here.books.cluster.fingerprint()
    here.server.refuses = failure == "refused"
    assert await here.bind("a") != ""
    assert here.nothing_is_held()
    if failure == "refused":
        here.server.refuses = False
        assert await here.bind("a") == ""
        assert here.books.cluster.told("ticket", "default/a").after == slots.Ticket("uid-a")


async def test_what_a_watch_told_of_an_object_meanwhile_is_not_undone(world):
    here = world(slots.Tickets(), slots.Together(3))
    waiting = here.start("a")
    await here.clock.settle()
    present = here.books.cluster.told("ticket", "default/a").after
    newer = slots.Ticket("told by the watch")
    here.books.cluster.apply(deltas.ObjectDelta("ticket", "default/a", present, newer))
    await here.clock.advance(21)
    assert await waiting == ["the others have not come"]
    assert here.books.cluster.told("ticket", "default/a").after == newer


async def test_pods_wait_reserved_until_all_have_come_and_then_are_bound(world):
    here = world(slots.Together(2))
    first = here.start("a")
    await here.clock.settle()
    assert (here.server.bound, len(here.books.assumptions)) == ({}, 1)
    await here.clock.advance(9)
    assert await here.bind("b") == ""
    assert await first == [""]
    assert set(here.server.bound) == {"a", "b"}


async def test_the_first_time_that_permit_named_counts(world):
    """However often others come and go, nobody waits longer than was said at first."""
    here = world(slots.Together(3))
    first = here.start("a")
    await here.clock.advance(15)
    second = here.start("b")
    here.binder.waiting.wake(("all",))
    await here.clock.advance(6)
    assert await first == ["the others have not come"]
    assert not second.done()
    await here.clock.advance(15)
    assert await second == ["the others have not come"]
    assert here.nothing_is_held()


async def test_no_wait_is_longer_than_the_call(world):
    here = world(slots.Together(3), deadline=12)
    waiting = here.start("a")
    await here.clock.advance(13)
    assert await waiting == ["the caller has stopped waiting; nothing was bound"]
    assert here.nothing_is_held()


@pytest.mark.parametrize("cause", ["its time has come", "its caller left", "it was deleted"])
async def test_pods_that_wait_together_are_refused_together(world, cause):
    here, there = world(slots.Together(3, together=True)), {"a": True}
    first = here.start("a", connected=lambda: there["a"])
    await here.clock.advance(15)
    second = here.start("b")
    await here.clock.settle()
    if cause == "its caller left":
        there["a"] = False
    if cause == "it was deleted":
        here.books.pod(here.store.get("default/a"), None, 1.0)
    await here.clock.advance(6)
    [one], [other] = await first, await second
    assert other == f"default/a, which waited with it, was refused: {one}"
    assert not here.books.assumptions


async def test_none_is_bound_with_one_whose_caller_has_just_left(world):
    """Not even for the moment until its own call looks whether anyone waits for the answer."""
    here, there = world(slots.Together(3, together=True), count=3), {"a": True}
    first = here.start("a", connected=lambda: there["a"])
    second = here.start("b")
    await here.clock.settle()
    there["a"] = False
    third = here.start("c")
    await here.clock.settle()
    left = "the caller has stopped waiting; nothing was bound"
    told = f"default/a, which waited with it, was refused: {left}"
    assert [*await first, *await second, *await third] == [left, told, told]
    assert here.nothing_is_held()


class Capped:
    """Refuses in PreFilter while any pod has a slot."""

    name = "Capped"

    def pre_filter(self, pod, view):
        del pod
        return slots.LATE if view.cluster[slots.NAME] else None


async def test_a_pod_that_is_counted_already_is_permitted_by_what_was_prepared_before(world):
    """Else its own claim would make PreFilter refuse it, and no plug-in could let it wait."""
    here = world(Capped(), slots.Together(2))
    waiting = here.start("a")
    await here.clock.advance(5)
    assert here.server.bound == {}
    await here.clock.advance(16)
    assert await waiting == ["the others have not come"]


async def test_a_rejection_wakes_all_that_wait_and_undoes_them(world):
    together = slots.Together(3)
    here = world(together)
    both = [here.start("a"), here.start("b")]
    await here.clock.settle()
    together.broken = True
    here.binder.waiting.wake(("all",))
    assert await asyncio.gather(*both) == [["the others will not come"]] * 2
    assert here.nothing_is_held()


@pytest.mark.parametrize("broken", [False, True], ids=["fulfilled", "broken"])
async def test_what_a_pod_waits_for_may_change_without_another_bind(world, broken):
    together = slots.Together(2)
    here = world(together)
    waiting = here.start("a")
    await here.clock.settle()
    together.count, together.broken = 1, broken
    await here.clock.advance(1.5)
    assert await waiting == ["the others will not come" if broken else ""]
    assert ("a" in here.server.bound) is not broken


async def test_a_caller_that_leaves_while_its_pod_waits_frees_the_place(world):
    here, there = world(slots.Together(3)), {"a": True}
    waiting = here.start("a", connected=lambda: there["a"])
    await here.clock.settle()
    there["a"] = False
    await here.clock.advance(1.5)
    assert await waiting == ["the caller has stopped waiting; nothing was bound"]
    assert here.nothing_is_held()


@pytest.mark.parametrize("change", ["node is gone", "fewer slots", "more of its own"])
async def test_the_node_is_looked_at_again_after_a_wait_without_the_pods_own_claim(world, change):
    here = world(slots.Together(2), count=1)
    here.node("n2", 1)
    here.pods()
    waiting = here.start("a")
    await here.clock.settle()
    if change == "node is gone":
        here.books.node(here.books.cluster.node("n1"), None)
    if change == "fewer slots":
        here.node("n1", 0)
    assert await here.bind("b", "n2") == ""
    expected = {"node is gone": "node n1 is not known", "fewer slots": "no slot is free"}
    assert await waiting == [expected.get(change, "")]
    assert ("a" in here.server.bound) is (change == "more of its own")


async def test_a_pod_that_ends_while_it_waits_is_answered_as_it_is(world):
    here = world(slots.Together(3))
    waiting = here.start("a")
    await here.clock.settle()
    here.books.pod(here.store.get("default/a"), None, 1.0)
    await here.clock.advance(1.5)
    assert "gone" in (await waiting)[0]
    assert not here.books.assumptions


async def test_a_call_that_is_cancelled_while_its_pod_waits_frees_the_place(world):
    here = world(slots.Together(3))
    waiting = here.start("a")
    await here.clock.settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert here.nothing_is_held()


async def test_held_binds_are_answered_when_the_extender_stops(world):
    here = world(slots.Together(3))
    waiting = here.start("a")
    await here.clock.settle()
    here.binder.waiting.close("the extender is stopping")
    assert await waiting == ["the extender is stopping"]
    assert await here.bind("b") == "the extender is stopping"
    assert here.nothing_is_held()
