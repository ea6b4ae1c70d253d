"""Proof that the view is current, asked for when no scheduler has called for a while.

An extender that was not called may have been cut off, or its scheduler did not lead.
Before it answers again it must have seen every pod that was bound meanwhile: a barrier proves it.
A kind whose objects grant something of their own needs a barrier of its own.

The other kinds need less, and their watches must only have been heard within a bound. A node that
changed or left is caught by the scheduler's own filters and by the kubelet, both of which look
later. A load report carries its own time and expires. Settings and switches take effect a little
later in every process.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from extender.settings import FreshnessSettings
from kube.client import errors
from kube.informers import barrier as barriers
from kube.informers import reflector
from process.runtime import clock as clocks
from process.runtime import metrics

logger = logging.getLogger(__name__)

_REOPEN_SECONDS: Final = 10.0
"""How long a silent watch may take to be opened again."""
_BUCKETS: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5)


class _BehindError(Exception):
    """A watch that no barrier covers was not heard for too long."""


class ConsistencyCheck:
    """Remembers when the view was last needed, and proves it current if that was long ago."""

    def __init__(
        self,
        proven: Sequence[barriers.Barrier[Any]],
        others: Sequence[reflector.Reflector[Any]],
        clock: clocks.Clock,
        settings: FreshnessSettings,
        registry: metrics.Registry,
    ) -> None:
        self._barriers = proven
        self._others = others
        self._clock = clock
        self._settings = settings
        self._seconds = registry.histogram(
            "koord_extender_consistency_check_seconds",
            "Time to prove after a silence that the view is current, by outcome.",
            ("outcome",),
            _BUCKETS,
        )
        self._proven_at: float | None = None
        self._wanted: Sequence[int] = ()
        self._wanted_at = 0.0
        self._running: asyncio.Future[str] | None = None

    def trusted(self) -> bool:
        """Whether the view is recent without asking; being needed keeps it so."""
        now = self._clock.monotonic()
        if not self._is_recent(now):
            return False
        self._proven_at = now
        return True

    async def doubt(self) -> str:
        """Return why the view cannot be trusted now; empty if it can."""
        return "" if self.trusted() else await self._proved()

    async def background_doubt(self) -> str:
        """Return the same for work that no scheduler has asked for.

        It is no call: however often there is such work, the view is proven again in time.
        """
        return "" if self._is_recent(self._clock.monotonic()) else await self._proved()

    async def _proved(self) -> str:
        if self._running is not None:
            # One proof serves all who wait: in turn each would fail long after its caller has gone.
            return await asyncio.shield(self._running)
        self._running = done = asyncio.get_running_loop().create_future()
        answer = "the proof that the view of the cluster is current was interrupted"
        try:
            answer = await self._proof()
        finally:
            self._running = None
            done.set_result(answer)
        return answer

    async def _proof(self) -> str:
        with self._timed() as outcome:
            try:
                async with asyncio.timeout(self._settings.proof_seconds):
                    await self._prove()
            except (TimeoutError, _BehindError) as error:
                outcome[:] = ["behind"]
                said = str(error) or "the view of the cluster could not be proven current in time"
                logger.info("view is not current reason=%s", said)
                return said
            except errors.KubeError as error:
                return f"the view of the cluster cannot be compared: {error}"
            outcome[:] = ["current"]
        self._wanted = ()
        self._proven_at = self._clock.monotonic()
        return ""

    @contextlib.contextmanager
    def _timed(self) -> Iterator[list[str]]:
        outcome, started = ["failed"], time.perf_counter()
        try:
            yield outcome
        finally:
            self._seconds.labels(outcome[0]).observe(time.perf_counter() - started)

    def _is_recent(self, now: float) -> bool:
        least = now - self._settings.idle_seconds
        if self._proven_at is not None and self._proven_at >= least:
            return True
        listed = [barrier.current_at for barrier in self._barriers]
        return all(at is not None and at >= least for at in listed)

    async def _prove(self) -> None:
        """Wait until the watch has told as much as the API server knew when first asked."""
        behind = self._silent()
        if (
            not self._wanted
            or self._clock.monotonic() - self._wanted_at > self._settings.idle_seconds
        ):
            # What was newest when it was asked long ago proves nothing about today.
            self._wanted_at, self._wanted = self._clock.monotonic(), ()
            self._wanted = [await one.place() for one in self._barriers]
        for barrier, version in zip(self._barriers, self._wanted, strict=True):
            await barrier.reached(version)
        if behind:
            raise _BehindError(f"the view of the cluster is not current: {', '.join(behind)}")

    def _silent(self) -> list[str]:
        """Return which other watches were not heard for too long, and open them again."""
        longest = self._settings.silence_seconds + _REOPEN_SECONDS
        silent = [
            one for one in self._others if one.contact.age > longest and not one.contact.missing
        ]
        for one in silent:
            one.hasten()
        return [f"{one.name} not heard of for {one.contact.age:.0f} s" for one in silent]
