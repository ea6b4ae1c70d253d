"""Eternal tasks must not end, short ones are not left behind, and stopping keeps an order."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from process.configuration import explained_error
from process.runtime import supervise
from process.runtime.clock import ManualClock

Task = Callable[[], Coroutine[Any, Any, None]]


async def _forever() -> None:
    await asyncio.Event().wait()


async def _at_once() -> None:
    await asyncio.sleep(0)


async def _broken() -> None:
    await asyncio.sleep(0)
    raise ValueError("no such cgroup")


async def _run(*functions: Task, waits: bool = True) -> None:
    """Supervise tasks named t0, t1, ... until one fails, or for a few turns of the loop."""
    async with supervise.Supervisor("agent") as supervisor:
        for number, function in enumerate(functions):
            supervisor.start(f"t{number}", function)
        if waits:
            await supervisor.stopped()
        for _ in range(5):
            await asyncio.sleep(0)


async def test_task_that_raises_fails_the_process_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(
        supervise.TaskError, match="t1 failed: ValueError: no such cgroup"
    ) as caught:
        await _run(_forever, _broken)
    assert isinstance(caught.value.__cause__, ValueError)
    assert "in _broken" in caplog.text


async def test_task_that_returns_fails_the_process_too() -> None:
    with pytest.raises(supervise.TaskError, match="task t0 returned, but it must run"):
        await _run(_at_once)


async def test_task_cancelled_by_a_stranger_fails_the_process_too() -> None:
    async def stranger() -> None:
        next(task for task in asyncio.all_tasks() if task.get_name() == "agent/t0").cancel()
        await _forever()

    with pytest.raises(supervise.TaskError, match="t0 was cancelled, but not by its"):
        await _run(_forever, stranger)


async def test_failure_nobody_waited_for_is_raised_at_the_end() -> None:
    with pytest.raises(supervise.TaskError, match="t0 failed"):
        await _run(_broken, waits=False)


async def test_error_of_the_body_is_not_hidden_by_a_failed_task() -> None:
    async def body() -> None:
        async with supervise.Supervisor() as supervisor:
            supervisor.start("tick", _at_once)
            await asyncio.wait([supervisor.failed])
            raise KeyError("body")

    with pytest.raises(KeyError, match="body"):
        await body()


async def test_only_the_first_failure_is_reported() -> None:
    with pytest.raises(supervise.TaskError, match="task t0 returned"):
        await _run(_at_once, _broken, waits=False)


async def test_stop_goes_from_the_youngest_to_the_oldest_each_to_its_end() -> None:
    order: list[str] = []

    async def worker(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            order.append(f"{name} stopping")
            await asyncio.sleep(0)
            order.append(f"{name} stopped")

    async with supervise.Supervisor() as supervisor:
        supervisor.start("caches", lambda: worker("caches"))
        supervisor.start("controller", lambda: worker("controller"))
        supervisor.spawn("write", worker("write"))
        assert supervisor.tasks == ("caches", "controller", "write")
        await asyncio.sleep(0)
    assert order == [
        f"{name} {what}"
        for name in ("write", "controller", "caches")
        for what in ("stopping", "stopped")
    ]
    assert supervisor.tasks == ()


async def test_task_that_will_not_stop_is_named_and_left(caplog: pytest.LogCaptureFixture) -> None:
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with supervise.Supervisor("agent", stop_seconds=0.05) as supervisor:
        supervisor.start("stubborn", stubborn)
        await asyncio.sleep(0)
    assert "task did not stop in time task=agent/stubborn" in caplog.text
    release.set()
    await asyncio.sleep(0)


async def test_short_task_gives_its_result_and_its_error(caplog: pytest.LogCaptureFixture) -> None:
    async def answer() -> int:
        return 42

    async with supervise.Supervisor() as supervisor:
        assert await supervisor.spawn("answer", answer()) == 42
        failing = supervisor.spawn("failing", _broken())
        with pytest.raises(ValueError, match="no such cgroup"):
            await failing
        await asyncio.sleep(0)
        assert supervisor.tasks == ()
    assert "task failed task=process/failing" in caplog.text


async def test_nothing_starts_while_stopping() -> None:
    async with supervise.Supervisor("agent") as supervisor:
        pass
    with pytest.raises(RuntimeError, match="agent is stopping"):
        supervisor.start("late", _forever)
    with pytest.raises(RuntimeError, match="agent is stopping"):
        supervisor.spawn("late", _at_once())


async def test_one_who_stops_waiting_does_not_stop_the_others() -> None:
    async with supervise.Supervisor() as supervisor:
        first = supervisor.spawn("first", supervisor.stopped())
        second = supervisor.spawn("second", supervisor.stopped())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        assert not second.done()
        assert not supervisor.failed.done()


async def test_deadline_interrupts_the_body_on_the_given_clock(clock: ManualClock) -> None:
    async def work() -> None:
        async with supervise.deadline(clock, 30):
            await asyncio.Event().wait()

    async with supervise.Supervisor() as supervisor:
        task = supervisor.spawn("work", work())
        await clock.advance(29.9)
        assert not task.done()
        await clock.advance(0.1)
        assert isinstance(task.exception(), TimeoutError)
    assert clock.sleepers == 0


async def test_deadline_moves_when_it_is_extended(clock: ManualClock) -> None:
    heard: list[float] = []

    async def work() -> None:
        async with supervise.deadline(clock, 30) as limit:
            for _ in range(3):
                await clock.sleep(20)
                heard.append(clock.monotonic())
                limit.extend(30)
            await asyncio.Event().wait()

    async with supervise.Supervisor() as supervisor:
        task = supervisor.spawn("work", work())
        await clock.advance(89)
        assert heard == [20, 40, 60]
        assert not task.done()
        await clock.advance(1)
        assert isinstance(task.exception(), TimeoutError)


async def test_deadline_that_was_met_leaves_nothing(clock: ManualClock) -> None:
    async with supervise.deadline(clock, 30) as limit:
        await asyncio.sleep(0)
        assert limit.remaining == 30
    assert clock.sleepers == 0


async def test_cancelling_the_body_is_not_a_deadline(clock: ManualClock) -> None:
    async def work() -> None:
        async with supervise.deadline(clock, 30):
            await asyncio.Event().wait()

    async with supervise.Supervisor() as supervisor:
        task = supervisor.spawn("work", work())
        await clock.settle()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    assert clock.sleepers == 0


@pytest.fixture(autouse=True)
def _log_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


async def test_a_failure_that_explains_itself_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise explained_error.ExplainedError("port 80 is in use")

    async with supervise.Supervisor("demo") as supervisor:
        task = supervisor.spawn("listen", fail())
        with pytest.raises(explained_error.ExplainedError):
            await task
    (record,) = [record for record in caplog.records if "task failed" in record.message]
    assert "task=demo/listen reason=port 80 is in use" in record.message
    assert record.exc_info is None
