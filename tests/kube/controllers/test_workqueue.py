"""Keys are worked on once, never twice at a time, later if asked, slower after failures."""

import asyncio
import collections
import random

import pytest

from kube.controllers import workqueue
from process.runtime import clock as clocks
from process.runtime import supervise


@pytest.fixture
async def queue(
    clock: clocks.ManualClock, rng: random.Random, supervisor: supervise.Supervisor
) -> workqueue.Queue:
    made = workqueue.Queue(clock, rng=rng)
    supervisor.start("timer", made.run)
    await clock.settle()
    return made


async def take(queue: workqueue.Queue) -> list[str]:
    """Take and give back everything that is ready."""
    taken = []
    while len(queue):
        taken.append(await queue.get())
        queue.done(taken[-1])
    return taken


async def test_asking_twice_is_asking_once(queue: workqueue.Queue) -> None:
    for key in ("a", "b", "a"):
        queue.add(key)
    assert len(queue) == 2
    assert await take(queue) == ["a", "b"]
    assert queue.idle


async def test_key_that_is_worked_on_comes_again_after_it_is_done(queue: workqueue.Queue) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "b"
    assert queue._ready.empty(), "a second worker must not get a"
    assert not queue.idle
    queue.done("a")
    assert await queue.get() == "a"


async def test_delays_follow_the_clock(queue: workqueue.Queue, clock: clocks.ManualClock) -> None:
    queue.add_after("late", 60)
    queue.add_after("soon", 10)
    queue.add_after("now", 0)
    await clock.settle()
    assert await take(queue) == ["now"]
    assert (queue.delayed, clock.sleepers) == (2, 1)
    await clock.advance(9.9)
    assert await take(queue) == []
    await clock.advance(0.1)
    assert await take(queue) == ["soon"]
    await clock.advance(49.9)
    assert await take(queue) == []
    await clock.advance(0.1)
    assert await take(queue) == ["late"]
    assert (queue.delayed, clock.sleepers) == (0, 0)


async def test_sooner_time_wakes_the_timer(
    queue: workqueue.Queue, clock: clocks.ManualClock
) -> None:
    queue.add_after("a", 60)
    await clock.settle()
    for seconds in (30, 20, 10):
        queue.add_after("b", seconds)
    await clock.settle()
    await clock.advance(10)
    assert await take(queue) == ["b"]
    await clock.advance(20)
    assert await take(queue) == [], "later times of the same key have no effect"
    await clock.advance(30)
    assert await take(queue) == ["a"]


async def test_earliest_time_counts(queue: workqueue.Queue, clock: clocks.ManualClock) -> None:
    queue.add_after("a", 10)
    queue.add_after("a", 60)
    await clock.advance(10)
    assert await take(queue) == ["a"]
    await clock.advance(100)
    assert await take(queue) == []


async def test_failures_back_off_per_key(queue: workqueue.Queue, clock: clocks.ManualClock) -> None:
    pauses = []
    for _ in range(20):
        pauses.append(queue.retry("a"))
        await clock.advance(pauses[-1])
        assert await take(queue) == ["a"]
    assert 0.05 <= pauses[0] <= 0.1
    assert 150 <= pauses[-1] <= 300
    assert queue.retry("b") <= 0.1
    assert queue.failures("a") == 20
    queue.forget("a")
    assert queue.retry("a") <= 0.1
    assert queue.retry("c", at_least=17) == 17


async def test_no_key_is_lost_or_in_two_workers_at_a_time(
    queue: workqueue.Queue,
    clock: clocks.ManualClock,
    supervisor: supervise.Supervisor,
    rng: random.Random,
) -> None:
    wanted: collections.Counter[str] = collections.Counter()
    seen_at: dict[str, int] = {}
    busy: set[str] = set()
    step = 0

    async def work() -> None:
        while True:
            key = await queue.get()
            assert key not in busy
            busy.add(key)
            seen_at[key] = step
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
            busy.remove(key)
            queue.done(key)

    for number in range(3):
        supervisor.start(f"worker-{number}", work)
    for step in range(1, 400):
        key = f"k{rng.randrange(5)}"
        wanted[key] = step
        if rng.random() < 0.7:
            queue.add(key)
        else:
            queue.add_after(key, rng.random())
        if rng.random() < 0.3:
            await clock.advance(0.3)
    await clock.advance(5)
    assert queue.idle
    assert not supervisor.failed.done()
    for key, last in wanted.items():
        assert seen_at[key] >= last, "whoever asks is heard after he asked"
