"""Keys that need work: each once, never in two workers, later if asked, slower after failures."""

import asyncio
import heapq
import math
import random

from kube.controllers import backoff
from process.runtime import clock as clocks


class Queue:
    """A keyed work queue on the time of a clock; ``run`` brings the delayed keys in."""

    def __init__(
        self,
        clock: clocks.Clock,
        *,
        rng: random.Random | None = None,
        first_pause_seconds: float = 0.1,
        longest_pause_seconds: float = 300.0,
    ) -> None:
        self._clock = clock
        self._rng = rng or random.Random()
        self._first_pause = first_pause_seconds
        self._longest_pause = longest_pause_seconds
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self._wanted: set[str] = set()
        self._worked: set[str] = set()
        self._failures: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self._order: list[tuple[float, str]] = []
        self._nap = clocks.Nap(clock)

    def __len__(self) -> int:
        """How many keys wait for a worker."""
        return len(self._wanted)

    @property
    def delayed(self) -> int:
        """How many keys wait for their time."""
        return len(self._due)

    @property
    def idle(self) -> bool:
        """Whether nothing waits for a worker or is with one."""
        return not self._wanted and not self._worked

    def add(self, key: str) -> None:
        """Ask for work on a key now; asking twice is asking once."""
        if key in self._wanted:
            return
        self._wanted.add(key)
        if key not in self._worked:
            self._ready.put_nowait(key)

    def add_after(self, key: str, seconds: float) -> None:
        """Ask for work on a key later; of several times the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if due >= self._due.get(key, float("inf")):
            return
        self._due[key] = due
        heapq.heappush(self._order, (due, key))
        if self._order[0] == (due, key):
            self._nap.wake()

    def retry(self, key: str, *, at_least: float = 0.0, at_most: float = math.inf) -> float:
        """Ask for work on a key after a failure; return the pause, longer each time."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = backoff.pause(failures, self._first_pause, self._longest_pause, self._rng)
        pause = max(min(pause, at_most), at_least)
        self.add_after(key, pause)
        return pause

    def forget(self, key: str) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    def failures(self, key: str) -> int:
        """Return how often in a row a key has failed."""
        return self._failures.get(key, 0)

    async def get(self) -> str:
        """Wait for a key; it is in no other worker until ``done``."""
        key = await self._ready.get()
        self._wanted.discard(key)
        self._worked.add(key)
        return key

    def done(self, key: str) -> None:
        """Give a key back; if it was asked for meanwhile, it is ready again."""
        self._worked.discard(key)
        if key in self._wanted:
            self._ready.put_nowait(key)

    async def run(self) -> None:
        """Bring in delayed keys for ever."""
        while True:
            self._bring_due()
            now = self._clock.monotonic()
            await self._nap.rest(self._order[0][0] - now if self._order else None)

    def _bring_due(self) -> None:
        now = self._clock.monotonic()
        while self._order and self._order[0][0] <= now:
            due, key = heapq.heappop(self._order)
            # An entry that was overtaken by an earlier time has no effect.
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
