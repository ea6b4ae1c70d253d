"""A budget refuses the second of two evictions: what the first has freed is kept for a while."""

import contextlib

import pytest

from tests.extender.preemption import test_own_preemption

world = test_own_preemption.world


@contextlib.asynccontextmanager
async def halved(world, *, restarts):
    """Let one of two leave, and a budget forbid all others from then on."""
    server = world.server
    world.pod("high", priority=100, slots=4)
    world.pod("quick", priority=10)
    server.stop = "evict after"
    async with contextlib.AsyncExitStack() as stack:
        one = await stack.enter_async_context(world.extender())
        await world.filter(one)
        await world.until(server.stopped.is_set)
        server.guarded = {"low-0", "low-1"}
        if restarts:
            await stack.aclose()
        server.stop = ""
        server.go_on.set()
        if restarts:
            one = await stack.enter_async_context(world.extender())
            assert not await world.attempt(one)
        else:
            await world.until(lambda: world.said("high", "PreemptionFailed"))
        yield one


async def goes_on(world, one):
    """Victims go and the scheduler tries the pod when it is changed; whether it found a place."""
    await world.time.advance(0.5)
    world.server.leave()
    if len(world.server.nudged) == world.seen:
        return False
    world.seen = len(world.server.nudged)
    return await world.attempt(one)


@pytest.mark.parametrize("restarts", [True, False], ids=["after a restart", "in one life"])
@pytest.mark.parametrize("seconds", [0, 12], ids=["at once", "later"])
async def test_where_the_budget_allows_it_in_time_the_pod_starts(world, restarts, seconds):
    async with halved(world, restarts=restarts) as one:
        world.seen = -1
        since = world.time.now()
        while world.time.now() < since + seconds:
            assert not await goes_on(world, one)
            assert not await world.attempt(one, "quick")
        world.server.guarded = set()
        while not await goes_on(world, one):
            assert not await world.attempt(one, "quick")
            assert world.time.now() < since + 45
        # The second is any that may leave at that moment.
        first, second = world.server.evictions
        assert (first, second in ("low-0", "low-1")) == ("low-2", True)
        await world.until(lambda: not one.books.nominations)


@pytest.mark.parametrize("restarts", [True, False], ids=["after a restart", "in one life"])
async def test_where_it_does_not_the_place_is_free_after_half_a_minute(world, restarts):
    async with halved(world, restarts=restarts) as one:
        world.seen = -1
        since = world.time.now()
        while one.books.nominations:
            assert not await goes_on(world, one)
            assert world.time.now() < since + 60
        assert world.time.now() > since + 25
        assert "low-1 may not be evicted now: 429" in world.said("high", "PreemptionFailed")[0]

        def given_up():
            return any(
                "not placed in time" in one for one in world.said("high", "PreemptionFailed")
            )

        await world.until(given_up, step=1.0)
        assert await world.attempt(one, "quick")
        assert world.server.evictions == ["low-2"]
