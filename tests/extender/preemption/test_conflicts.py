"""A pod changes while a plan is noted on it: what its victims have freed stays kept for it."""

import asyncio

import pytest

from api import names
from extender.preemption import preemption_record
from tests.extender.preemption import test_own_preemption
from tests.extender.preemption.own_stage import START

world = test_own_preemption.world


async def held(world, one):
    """Have an extender plan for a pod, and hold the write of the record."""
    world.server.stop, world.server.stopped = "note before", asyncio.Event()
    await world.filter(one)
    await world.until(world.server.stopped.is_set)


async def refused(world, one):
    """Let the write go on, which is refused; return what the extender keeps for the pod then."""
    kept = one.answers.preemptions
    planned = kept.get("uid-high")
    assert planned.own
    world.server.stop = ""
    world.server.go_on.set()
    # Time stands still, so that nothing is tried again meanwhile.
    await world.until(lambda: kept.get("uid-high") is not planned, step=0.0)
    return kept.get("uid-high")


async def test_what_the_first_of_two_has_freed_is_kept_where_the_plan_for_the_other_is_not_noted(
    world,
):
    server = world.server
    world.pod("high", priority=100, slots=4)
    server.stop = "evict after"
    async with world.extender() as one:
        await world.filter(one)
        await world.until(server.stopped.is_set)
    server.leave()
    server.go_on.set()
    server.go_on = asyncio.Event()
    async with world.extender() as again:
        noted = again.answers.preemptions.get("uid-high").record
        world.pod("quick", priority=10)
        await held(world, again)
        tried = world.high()
        tried["status"]["conditions"] = [{"type": "PodScheduled", "status": "False"}]
        server.put("pods", tried)
        kept = await refused(world, again)
        assert not await world.attempt(again, "quick")
        assert kept.record == noted
        await world.placed(again)
        assert not await world.attempt(again, "quick")
        assert server.evictions == ["low-2", "low-1"]
        assert not again.books.nominations


async def test_the_record_of_another_extender_counts_that_came_before_an_own_was_refused(world):
    async with world.extender() as one:
        await held(world, one)
        record = preemption_record.Record("other", "n2", ("uid-low-0",), START, START + 20)
        text = preemption_record.encode(record)
        high = world.high()
        high["metadata"]["annotations"][names.ANNOTATION_PREEMPTION] = text
        world.server.put("pods", high)
        await world.until(lambda: one.feeds.pods.get("default/high").preemption == text)
        kept = await refused(world, one)
        assert (kept.record, kept.own) == (record, False)
        assert one.books.nominations["uid-high"].node == "n2"
        assert world.server.tried == []


def changed(world, nominated):
    """The pod as kube-scheduler leaves it after another attempt."""
    high = world.high()
    high["status"] |= {
        "nominatedNodeName": nominated,
        "conditions": [{"type": "PodScheduled", "status": "False"}],
    }
    world.server.put("pods", high)


@pytest.mark.parametrize("nominated", ["n2", ""], ids=["still", "no more"])
async def test_a_plan_that_is_not_noted_leaves_what_kube_scheduler_has_nominated(world, nominated):
    high = world.high()
    high["status"]["nominatedNodeName"] = "n2"
    world.server.put("pods", high)
    async with world.extender() as one:
        await world.until(lambda: "uid-high" in one.books.nominations)
        await held(world, one)
        assert one.books.nominations["uid-high"].node == "n1"
        changed(world, nominated)
        await world.until(lambda: one.feeds.pods.get("default/high").nominated == nominated)
        assert await refused(world, one) is None
        kept = one.books.nominations.get("uid-high")
        assert (kept.node if kept is not None else "") == nominated
        assert world.server.tried == []
