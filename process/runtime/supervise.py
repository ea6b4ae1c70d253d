"""Tasks with names: eternal ones that must never end, short ones that must not be left behind."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from process.configuration import explained_error
from process.runtime import clock as clocks

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class TaskError(explained_error.ExplainedError):
    """An eternal task ended; the cause, if it raised, is chained."""


class Supervisor:
    """Runs the tasks of one process part and stops them in reverse order of their start.

    An eternal task that returns has failed just like one that raises: either way `failed` is
    set, which the process takes as the order to stop.
    """

    def __init__(self, name: str = "process", *, stop_seconds: float = 10.0) -> None:
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._name = name
        self._stop_seconds = stop_seconds
        self._eternal: dict[asyncio.Task[None], str] = {}
        self._brief: dict[asyncio.Task[Any], str] = {}
        self._stopping = False

    async def __aenter__(self) -> Self:
        """Start with no tasks."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop every task; a failure that was not seen yet is raised."""
        await self.stop()
        if error is None and self.failed.done():
            self.failed.result()

    def start(self, name: str, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start an eternal task from a coroutine function without arguments."""
        if self._stopping:
            raise RuntimeError(f"{self._name} is stopping; task {name} was not started")
        task = _create(function(), f"{self._name}/{name}")
        self._eternal[task] = name
        task.add_done_callback(self._ended)

    def spawn(self, name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task that is expected to end; it is cancelled if it has not by the end."""
        if self._stopping:
            work.close()
            raise RuntimeError(f"{self._name} is stopping; task {name} was not started")
        task = _create(work, f"{self._name}/{name}")
        self._brief[task] = name
        task.add_done_callback(self._finished)
        return task

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks that run, eternal ones first."""
        return (*self._eternal.values(), *self._brief.values())

    async def stopped(self) -> None:
        """Wait until a task fails and raise its TaskError."""
        # The future is shared: a waiter that stops must not cancel it for the others.
        await asyncio.shield(self.failed)

    async def stop(self) -> None:
        """Cancel short-lived tasks, then eternal ones, youngest first, each fully ended."""
        self._stopping = True
        deadline = asyncio.get_running_loop().time() + self._stop_seconds
        brief = list(self._brief)
        for task in brief:
            task.cancel()
        await self._ending(brief, deadline)
        for eternal in reversed(list(self._eternal)):
            eternal.cancel()
            await self._ending([eternal], deadline)

    async def _ending(self, tasks: list[asyncio.Task[Any]], deadline: float) -> None:
        if not tasks:
            return
        left = max(0.05, deadline - asyncio.get_running_loop().time())
        _, late = await asyncio.wait(tasks, timeout=left)
        for task in late:
            _logger.error(
                "task did not stop in time task=%s seconds=%s", task.get_name(), self._stop_seconds
            )

    def _ended(self, task: asyncio.Task[None]) -> None:
        name = self._eternal.pop(task)
        if task.cancelled():
            if self._stopping:
                return
            cause: BaseException | None = None
            text = f"task {name} was cancelled, but not by its supervisor"
        else:
            cause = task.exception()
            if cause is None:
                if self._stopping:
                    return
                text = f"task {name} returned, but it must run until the process stops"
            else:
                text = f"task {name} failed: {type(cause).__name__}: {cause}"
        _logger.error("task ended supervisor=%s reason=%s", self._name, text, exc_info=cause)
        if self.failed.done():
            return
        failure = TaskError(text)
        failure.__cause__ = cause
        self.failed.set_exception(failure)
        self.failed.exception()  # Seen: it is logged above, so the loop need not complain.

    def _finished(self, task: asyncio.Task[Any]) -> None:
        name = self._brief.pop(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is None or isinstance(error, TaskError):
            return
        trace = None if isinstance(error, explained_error.ExplainedError) else error
        _logger.error("task failed task=%s/%s reason=%s", self._name, name, error, exc_info=trace)


class Deadline:
    """A time limit on a clock that may be moved while it runs."""

    def __init__(self, clock: clocks.Clock, seconds: float) -> None:
        self._clock = clock
        self._end = clock.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Seconds until the limit."""
        return self._end - self._clock.monotonic()

    def extend(self, seconds: float) -> None:
        """Let the limit be this many seconds from now."""
        self._end = self._clock.monotonic() + seconds


@contextlib.asynccontextmanager
async def deadline(clock: clocks.Clock, seconds: float) -> AsyncIterator[Deadline]:
    """Interrupt the body with TimeoutError when it lasts longer on the given clock."""
    limit = Deadline(clock, seconds)
    loop = asyncio.get_running_loop()

    async def watch(scope: asyncio.Timeout) -> None:
        while (left := limit.remaining) > 0:
            await clock.sleep(left)
        if scope.when() is None:
            scope.reschedule(loop.time())

    async with asyncio.timeout(None) as scope:
        alarm = _create(watch(scope), "deadline")
        try:
            yield limit
        finally:
            alarm.cancel()
            await asyncio.wait([alarm])


def _create(work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
    # What `asyncio.create_task` does, in one call instead of four.
    return asyncio.Task(work, name=name)
