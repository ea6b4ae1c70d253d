"""Time as a dependency: one protocol, the real clock, one that tests move, and a nap."""

import asyncio
import bisect
import contextlib
import functools
import time
from collections.abc import Iterator
from typing import Any, Final, Protocol

# Not every system has one that counts while the machine sleeps.
_SINCE_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)
_IDLE_ROUNDS: Final = 2


class Clock(Protocol):
    """What a process may know about time."""

    def now(self) -> float:
        """Return the wall clock in seconds since the epoch; it may jump."""

    def monotonic(self) -> float:
        """Return seconds that only ever grow; the base of every duration and deadline."""

    async def sleep(self, seconds: float) -> None:
        """Wait for a duration; zero or less still lets other tasks run once."""


class SystemClock:
    """The clock of the machine."""

    # Asked many times for each pod that is placed, so no function of ours stands in between.
    now = staticmethod(time.time)
    """The wall clock in seconds since the epoch."""
    monotonic = staticmethod(
        time.monotonic
        if _SINCE_BOOT is None
        else functools.partial(time.clock_gettime, _SINCE_BOOT)
    )
    """The monotonic clock in seconds; on Linux it counts while the machine sleeps.

    A lease must have ended for a leader that was suspended, not only for everybody else.
    """

    async def sleep(self, seconds: float) -> None:
        """Wait for a real duration."""
        await asyncio.sleep(max(0.0, seconds))


class Nap:
    """A rest of one task that others may cut short; waking it early counts for its next rest."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._woken = asyncio.Event()
        self._scope: asyncio.Timeout | None = None

    async def rest(self, seconds: float | None) -> None:
        """Sleep for a duration, for ever with None, or until woken."""
        if seconds is None:
            await self._woken.wait()
        elif not self._woken.is_set():
            try:
                async with asyncio.timeout(None) as self._scope:
                    await self._clock.sleep(seconds)
            except TimeoutError:
                pass
            finally:
                # Also where the sleeper was cancelled: nothing is left to be woken.
                self._scope = None
        self._woken.clear()

    def wake(self) -> None:
        """End the rest; any number of times before the sleeper runs is once."""
        self._woken.set()
        # An expiring scope must not be asked again: it would raise in the task that wakes us.
        scope, self._scope = self._scope, None
        if scope is not None:
            scope.reschedule(asyncio.get_running_loop().time())


class ManualClock:
    """A clock that stands still until it is advanced; the event loop keeps real time."""

    def __init__(self, now: float = 1_700_000_000.0, *, turns: int = 25) -> None:
        self._wall = now
        self._elapsed = 0.0
        self._turns = turns
        self._order = 0
        self._pollers = 0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Return the virtual wall clock."""
        return self._wall

    def monotonic(self) -> float:
        """Return the virtual seconds that were advanced so far."""
        return self._elapsed

    @property
    def sleepers(self) -> int:
        """How many tasks wait for this clock."""
        return len(self._sleepers)

    @property
    def next_wake(self) -> float | None:
        """Seconds until the earliest sleeper is due, None without sleepers."""
        return max(0.0, self._sleepers[0][0] - self._elapsed) if self._sleepers else None

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced past the duration."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._order += 1
        entry = (self._elapsed + seconds, self._order, asyncio.get_running_loop().create_future())
        bisect.insort(self._sleepers, entry)
        try:
            await entry[2]
        finally:
            # A cancelled sleeper must not stay behind as a wake-up that no task waits for.
            if entry in self._sleepers:
                self._sleepers.remove(entry)

    async def advance(self, seconds: float) -> None:
        """Move both clocks forward, waking sleepers in the order of their time.

        Before time moves on, the woken tasks get `turns` rounds of the event loop, enough to
        reach their next wait through a few exchanges on local sockets.
        """
        if seconds < 0:
            raise ValueError(f"a monotonic clock cannot go back by {-seconds} s; use jump()")
        end = self._elapsed + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._move(self._sleepers[0][0])
            self._wake()
            await self.settle()
        self._move(end)
        await self.settle()

    def skip(self) -> bool:
        """Move both clocks to the earliest sleeper and wake it; False without sleepers.

        For event loops that know when nothing is left to do at the present instant.
        """
        if not self._sleepers:
            return False
        self._move(self._sleepers[0][0])
        self._wake()
        return True

    def jump(self, seconds: float) -> None:
        """Move the wall clock only, as an operator or NTP would; durations do not notice."""
        self._wall += seconds

    async def settle(self) -> None:
        """Let every runnable task go on until it waits, as far as `turns` rounds reach.

        Ends early where the event loop has nothing left to run: no task is runnable, no thread
        of its pool works, and no socket was ready in this round or in the one before.
        """
        loop = asyncio.get_running_loop()
        idle = 0
        for _ in range(self._turns):
            await asyncio.sleep(0)
            idle = idle + 1 if _idle(loop, self._pollers) else 0
            if idle == _IDLE_ROUNDS:
                return

    @contextlib.contextmanager
    def polling(self) -> Iterator[None]:
        """Tell the clock that a task runs in every round of the loop, to look at something.

        Such a task would keep `settle` from seeing that all others wait.
        """
        self._pollers += 1
        try:
            yield
        finally:
            self._pollers -= 1

    def _move(self, instant: float) -> None:
        if instant > self._elapsed:
            self._wall += instant - self._elapsed
            # Assigned, not added: rounding must not leave us just short of a sleeper's instant.
            self._elapsed = instant

    def _wake(self) -> None:
        """Wake everybody who is due at this very instant, in the order of their calls."""
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, future = self._sleepers.pop(0)
            if not future.done():
                future.set_result(None)


def _idle(loop: Any, pollers: int) -> bool:
    """Whether a loop runs nothing but these tasks; False for a loop that does not show it."""
    # Only the loops of asyncio itself show what they will run; others get every round.
    ready, pool = getattr(loop, "_ready", None), getattr(loop, "_default_executor", None)
    if ready is None or len(ready) > pollers:
        return False
    # A thread that is done has scheduled what follows before it counts as idle.
    return pool is None or pool._idle_semaphore._value >= len(pool._threads)  # noqa: SLF001 - no public name
