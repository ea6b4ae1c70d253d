"""Python's garbage collector, made to stop the process for a few milliseconds at most.

Left alone it looks at every container in the process from time to time, which takes 30 to 100 ms
where much is kept. Here it only ever looks at newcomers, while there are few of them; what is
still needed then is frozen, which means that the collector does not look at it again. Most of it
goes when its last reference does, frozen or not. What was frozen and became a cycle later is found
by a look at everything. That takes 60 ms for what imports alone have made, and two or three times
as much in a large cluster, so that it comes only after memory has grown by half while the process
is idle, or has doubled.
"""

import asyncio
import contextlib
import dataclasses
import gc
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Final, Literal

from process.runtime import metrics, supervise

logger = logging.getLogger(__name__)

# Python's own collections, by how many containers came: `Collector` counts them as well, so that
# these are only for bursts between two of its looks. The third never comes.
_YOUNG: Final = (10_000, 2, 1_000_000_000)
_DRAIN_SECONDS: Final = 1.0
_BUCKETS: Final = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """When the collector looks at what."""

    look_seconds: float = 0.1
    """How often newcomers are counted."""
    worth_counting_seconds: float = 0.05
    """After less work they are not counted: there are few, and counting takes up to half a ms."""
    newcomers: int = 5000
    """How many are looked at in one go; about a millisecond for every 3,000."""
    pass_seconds: float = 10.0
    """After how long they are looked at even if they are few."""
    review_seconds: float = 300.0
    """How often memory is compared with what it was after the last look at everything."""
    idle_growth: float = 1.5
    """How much it must have grown for a look at everything while the process is idle."""
    busy_growth: float = 2.0
    """The same while the process is at work."""
    idle_share: float = 0.05
    """The share of a core up to which a process is idle."""


class Collector:
    """Decides when Python collects garbage; one for a whole interpreter."""

    def __init__(
        self,
        limits: Limits,
        monotonic: Callable[[], float] = time.monotonic,
        worked: Callable[[], float] = time.thread_time,
        blocks: Callable[[], int] = sys.getallocatedblocks,
    ) -> None:
        """`worked` is the processor time that was used so far, `blocks` the memory in use.

        Memory counts in blocks, because counting what is frozen takes as long as a stall may.
        """
        self._limits = limits
        self._monotonic = monotonic
        self._worked = worked
        self._blocks = blocks
        self._passed = monotonic()
        self._due = self._passed + limits.review_seconds
        self._mark = monotonic(), worked()
        self._counted = self._mark[1]
        self._base: int | None = None
        self.frozen = 0
        """How often newcomers were frozen."""
        self.full = 0
        """How often everything was looked at."""

    async def run(self) -> None:
        """Look for ever."""
        # The collector lives in real time, as the event loop does.
        while True:
            await asyncio.sleep(self._limits.look_seconds)
            self.look()

    def look(self) -> None:
        """Do what is due; short, except for a look at everything."""
        now, limits = self._monotonic(), self._limits
        if now - self._passed >= limits.pass_seconds or self._are_many():
            self._passed = now
            self._pass()
        if now >= self._due:
            self._due = now + self._review(now)
        elif now - self._mark[0] >= 1.0:
            self._mark = now, self._worked()

    def _are_many(self) -> bool:
        """Tell whether there are many newcomers; who has hardly worked since has made few."""
        worked = self._worked()
        if worked - self._counted < self._limits.worth_counting_seconds:
            return False
        many = _newcomers() > self._limits.newcomers
        self._counted = self._worked()
        return many

    def _pass(self) -> None:
        """Look at the newcomers; freeze them where the next look would be long otherwise."""
        gc.collect()
        if _newcomers() > self._limits.newcomers // 2:
            gc.freeze()
            self.frozen += 1

    def _review(self, now: float) -> float:
        """Look at everything if memory has grown; return after how long to ask again."""
        limits = self._limits
        blocks = self._blocks()
        if self._base is None:
            # A process that has just started has grown by what it is there for.
            self._base = blocks
        factor = blocks / self._base
        if factor < limits.idle_growth:
            return limits.review_seconds
        if factor < limits.busy_growth and not self._is_idle(now):
            return limits.pass_seconds
        self.look_at_everything(factor)
        return limits.review_seconds

    def look_at_everything(self, factor: float = 1.0) -> None:
        """Collect every generation, what was frozen as well; as long as all of it takes."""
        started = time.perf_counter()
        gc.unfreeze()
        found = gc.collect()
        gc.freeze()
        self.full += 1
        self._base = self._blocks()
        logger.info(
            "looked at everything seconds=%.3f growth=%.2f garbage=%d",
            time.perf_counter() - started,
            factor,
            found,
        )

    def _is_idle(self, now: float) -> bool:
        since, before = self._mark
        return self._worked() - before <= self._limits.idle_share * max(now - since, 1e-3)


def _newcomers() -> int:
    """Count what is not frozen.

    Python's own count is of no use: it falls with everything old that goes, so that newcomers pile
    up unseen where each takes the place of another.
    """
    return len(gc.get_objects())


@contextlib.asynccontextmanager
async def running(limits: Limits | None = None) -> AsyncIterator[Collector]:
    """Take over from Python; what is here now is taken to stay as long as the process."""
    before, kept_before = gc.get_threshold(), gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_YOUNG)
    kept = Collector(limits or Limits())
    try:
        async with supervise.Supervisor("collector") as supervisor:
            supervisor.start("look", kept.run)
            yield kept
    finally:
        gc.set_threshold(*before)
        # What was left out before, as the modules of a process that starts others, stays left out.
        if not kept_before:
            gc.unfreeze()


class Timing:
    """Measures how long collections stop the process."""

    def __init__(self, registry: metrics.Registry) -> None:
        self._seconds = registry.histogram(
            "koord_process_collection_seconds",
            "How long Python's garbage collector stopped the process, by generation.",
            ["generation"],
            buckets=_BUCKETS,
        )
        self._longest = registry.gauge(
            "koord_process_longest_collection_seconds",
            "The longest collection since the start of the process, by generation.",
            ["generation"],
        )
        self._started = 0.0
        self._seen: list[tuple[int, float]] = []
        self._most = [0.0, 0.0, 0.0]

    def note(self, phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        """Take in the begin or the end of a collection."""
        # It may begin anywhere, in the middle of a metric as well: those are changed later.
        if phase == "start":
            self._started = time.perf_counter()
        else:
            self._seen.append((info["generation"], time.perf_counter() - self._started))

    async def run(self) -> None:
        """Measure for ever."""
        gc.callbacks.append(self.note)
        try:
            while True:
                await asyncio.sleep(_DRAIN_SECONDS)
                self.drain()
        finally:
            gc.callbacks.remove(self.note)

    def drain(self) -> None:
        """Show what was seen."""
        seen, self._seen = self._seen, []
        for generation, seconds in seen:
            self._seconds.labels(str(generation)).observe(seconds)
            if seconds > self._most[generation]:
                self._most[generation] = seconds
                self._longest.labels(str(generation)).set(seconds)
