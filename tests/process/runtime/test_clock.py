"""Virtual time wakes in order, keeps durations from wall jumps and leaks no sleeper."""

import asyncio
import itertools
import threading

import pytest
from aiohttp import ClientSession, web
from hypothesis import given
from hypothesis import strategies as st

from process.configuration import settings
from process.http import server
from process.runtime.clock import ManualClock, Nap, SystemClock
from tests import patience


async def test_sleepers_wake_in_order_of_time_and_see_their_own_instant(clock: ManualClock) -> None:
    woken: list[tuple[str, float]] = []

    async def nap(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        for name, seconds in (("late", 5.0), ("soon", 1.0), ("also soon", 1.0), ("never", 60.0)):
            task = group.create_task(nap(name, seconds))
        await clock.advance(10)
        assert woken == [("soon", 1.0), ("also soon", 1.0), ("late", 5.0)]
        assert clock.monotonic() == 10.0
        assert clock.next_wake == pytest.approx(50.0)
        task.cancel()


async def test_periodic_task_ticks_once_per_period(clock: ManualClock) -> None:
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            await clock.sleep(0.1)
            ticks.append(clock.monotonic())

    task = asyncio.get_running_loop().create_task(tick())
    await clock.advance(100)
    # A tenth is not exact in binary, so a thousand of them may end just after the hundredth second.
    assert len(ticks) in (999, 1000)
    assert all(after > before for before, after in itertools.pairwise(ticks))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert clock.sleepers == 0


async def test_cancelled_sleeper_leaves_nothing_behind(clock: ManualClock) -> None:
    task = asyncio.get_running_loop().create_task(clock.sleep(3600))
    await clock.settle()
    assert clock.sleepers == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert clock.sleepers == 0
    assert clock.next_wake is None


async def test_sleeper_cancelled_by_one_that_wakes_with_it(clock: ManualClock) -> None:
    loop = asyncio.get_running_loop()
    victims: list[asyncio.Task[None]] = []

    async def killer() -> None:
        await clock.sleep(1)
        victims[0].cancel()

    first = loop.create_task(killer())
    await clock.settle()
    victims.append(loop.create_task(clock.sleep(1.0)))
    await clock.advance(2)
    assert first.done()
    assert victims[0].done()
    assert clock.sleepers == 0


async def test_jump_moves_only_the_wall(clock: ManualClock) -> None:
    wall = clock.now()
    task = asyncio.get_running_loop().create_task(clock.sleep(10))
    await clock.settle()
    clock.jump(-3600)
    assert clock.now() == wall - 3600
    assert clock.monotonic() == 0
    await clock.advance(9)
    assert not task.done()
    await clock.advance(1)
    assert task.done()
    assert clock.now() == pytest.approx(wall - 3590)


async def test_backwards_is_refused(clock: ManualClock) -> None:
    with pytest.raises(ValueError, match=r"use jump\(\)"):
        await clock.advance(-1)


async def test_zero_sleep_lets_others_run_without_time(clock: ManualClock) -> None:
    seen: list[str] = []
    task = asyncio.get_running_loop().create_task(_note(seen, clock))
    await clock.sleep(0)
    await clock.sleep(-1)
    assert seen == ["before", "after"]
    await task


async def _note(seen: list[str], clock: ManualClock) -> None:
    seen.append("before")
    await clock.sleep(0)
    seen.append("after")


async def test_woken_tasks_get_through_a_local_http_exchange(clock: ManualClock) -> None:
    async def hello(_request: web.Request) -> web.Response:
        return web.Response(text="hello")

    app = web.Application()
    app.router.add_get("/", hello)
    answers: list[tuple[float, str]] = []

    async def ask(session: ClientSession, url: str) -> None:
        while True:
            await clock.sleep(1)
            async with session.get(url) as response:
                answers.append((clock.monotonic(), await response.text()))

    async with (
        server.running_site(app, settings.ServerSettings()) as site,
        ClientSession() as session,
    ):
        task = asyncio.get_running_loop().create_task(ask(session, site.url))
        await clock.advance(5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert answers == [(float(second), "hello") for second in range(1, 6)]


async def _rounds(clock: ManualClock) -> int:
    """Count the rounds of the event loop that pass while a clock settles."""
    loop, settling, rounds = asyncio.get_running_loop(), True, 0

    def note() -> None:
        nonlocal rounds
        rounds += 1
        if settling:
            loop.call_soon(note)

    with clock.polling():
        loop.call_soon(note)
        await clock.settle()
    settling = False
    return rounds


async def test_settling_ends_when_every_other_task_waits() -> None:
    clock = ManualClock(turns=25)
    async with asyncio.TaskGroup() as group:
        group.create_task(clock.sleep(1))
        assert await _rounds(clock) <= 5
        await clock.advance(1)


@pytest.mark.parametrize(("busy", "least"), [(20, 20), (1000, 25)])
async def test_settling_goes_on_while_something_runs_but_not_for_ever(
    busy: int, least: int
) -> None:
    clock = ManualClock(turns=25)

    async def work() -> None:
        for _ in range(busy):
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(work())
        assert least <= await _rounds(clock) <= 27


async def test_settling_goes_on_while_a_thread_works() -> None:
    clock = ManualClock(turns=25)
    go_on = threading.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(go_on.wait, 10.0))
        await asyncio.sleep(0)
        assert await _rounds(clock) >= 25
        go_on.set()


@given(st.lists(st.floats(min_value=0.001, max_value=1000), max_size=20), st.integers(1, 7))
def test_any_sleepers_wake_sorted_however_time_is_cut(naps: list[float], pieces: int) -> None:
    woken: list[float] = []

    async def nap(clock: ManualClock, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    async def scenario() -> None:
        clock = ManualClock(turns=3)
        async with asyncio.TaskGroup() as group:
            for seconds in naps:
                group.create_task(nap(clock, seconds))
            for _ in range(pieces):
                await clock.advance(1001 / pieces)
        assert clock.sleepers == 0

    asyncio.run(scenario())
    assert woken == sorted(naps)


async def test_system_clock_moves_by_itself() -> None:
    clock = SystemClock()
    before, wall = clock.monotonic(), clock.now()
    await clock.sleep(0.01)
    await clock.sleep(-1)
    assert clock.monotonic() - before >= 0.009
    assert clock.now() >= wall


@pytest.mark.parametrize("seconds", [None, 60.0])
async def test_a_nap_ends_when_it_is_woken_however_often(
    clock: ManualClock, seconds: float | None
) -> None:
    nap = Nap(clock)
    async with asyncio.TaskGroup() as group:
        resting = group.create_task(nap.rest(seconds))
        await clock.settle()
        assert not resting.done()
        for _ in range(3):
            nap.wake()
            await asyncio.sleep(0)
            nap.wake()
    assert clock.sleepers == 0


async def test_waking_nobody_lets_the_next_nap_end_at_once(clock: ManualClock) -> None:
    nap = Nap(clock)
    nap.wake()
    async with asyncio.timeout(patience.SECONDS):
        await nap.rest(60.0)


async def test_a_nap_whose_sleeper_was_cancelled_can_still_be_woken(clock: ManualClock) -> None:
    """Informers may bring an event after the task that rests was stopped."""
    nap = Nap(clock)
    async with asyncio.TaskGroup() as group:
        resting = group.create_task(nap.rest(60.0))
        await clock.settle()
        resting.cancel()
    nap.wake()
    async with asyncio.timeout(patience.SECONDS):
        await nap.rest(60.0)


async def test_an_undisturbed_nap_lasts_its_time(clock: ManualClock) -> None:
    nap = Nap(clock)
    async with asyncio.TaskGroup() as group:
        resting = group.create_task(nap.rest(60.0))
        await clock.advance(59.9)
        assert not resting.done()
        await clock.advance(0.1)
        assert resting.done()


async def test_a_cancelled_nap_is_cancelled(clock: ManualClock) -> None:
    nap = Nap(clock)
    resting = asyncio.get_running_loop().create_task(nap.rest(60.0))
    await clock.settle()
    resting.cancel()
    await asyncio.wait([resting])
    assert resting.cancelled()
