"""How an agent comes and goes: what it says of the time without one, and what it leaves behind.

A restart, an upgrade and a crash hand the journal over, so that limits stand until the next agent
goes on. Only where no agent will follow is the node put back: the DaemonSet is gone, is going, or
does not select the node any more.
"""

import logging
from collections.abc import Callable
from types import TracebackType

import msgspec

from agent.informers import node_objects
from agent.loop import ticks
from agent.store import heartbeat
from kube.client import access as accesses
from process.http import health
from process.runtime import clock as clocks
from process.runtime import metrics

_logger = logging.getLogger(__name__)
_TRIES = 3
_PAUSE_SECONDS = 1.0


class Place(msgspec.Struct, frozen=True):
    """Whose agent this is and what becomes of its node when it is stopped."""

    namespace: str
    daemon_set: str
    on_stop: str
    enforces: bool


class Attendance:
    """Marks that an agent looks after this node, and ends that in order."""

    def __init__(
        self,
        place: Place,
        access: accesses.Access,
        clock: clocks.Clock,
        loop: ticks.Ticks,
        beat: heartbeat.Heartbeat,
    ) -> None:
        self.watched: node_objects.Watched | None = None
        """What is known of this node; forgotten once it was put back."""
        self._place, self._access, self._clock = place, access, clock
        self._loop, self._beat = loop, beat
        self._enforces = place.enforces

    def begin(
        self,
        figures: metrics.Registry,
        checks: health.Health,
        tell: Callable[[heartbeat.Gap], None],
    ) -> None:
        """Say for how long nothing restored what others wrote; warn of what cannot be kept."""
        checks.warn("heartbeat", lambda: self._beat.problem)
        if self.watched is not None:
            memory = self.watched.memory
            checks.warn("last known", lambda: memory.problem)
        gauge = figures.gauge(
            "koord_agent_unattended_seconds",
            "Time without an agent on this node before this one started.",
        )
        gap = self._beat.gap(self._clock.monotonic())
        if gap is None or not self._enforces:
            return
        gauge.set(gap.seconds)
        _logger.info("an agent was here seconds_ago=%.1f in_order=%s", gap.seconds, gap.handed_over)
        if not gap.handed_over:
            tell(gap)

    def tick(self) -> None:
        """Leave a mark after a good look."""
        if self._enforces and self._loop.enforcer.started:
            self._beat.mark(self._clock.monotonic())

    async def end(
        self,
        failure: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Hand over, or put the node back where no agent follows; a crash always hands over."""
        reason = None if failure is not None else await self._why()
        if reason is not None:
            await self._put_back(reason)
        elif self._loop.enforcer.entries:
            held = self._loop.enforcer.entries
            _logger.info("limits stand and are handed over to the next agent files=%d", held)
        if self._enforces and self._loop.enforcer.started:
            self._beat.mark(self._clock.monotonic(), handed_over=failure is None)
        self._beat.close()
        self._loop.stop()

    async def _put_back(self, reason: str) -> None:
        for number in range(_TRIES):
            if number:
                await self._clock.sleep(_PAUSE_SECONDS)
            self._loop.put_back(reason)
            if not self._loop.enforcer.entries:
                if self.watched is not None:
                    self.watched.memory.forget()
                return
        _logger.error(
            "files could not be put back, run `koord agent undo` on this node files=%d",
            self._loop.enforcer.entries,
        )

    async def _why(self) -> str | None:
        """Say why no agent follows; None where one does, or where that is unknown."""
        place = self._place
        if place.on_stop != "ask":
            return "settings: onStop is put-back" if place.on_stop == "put-back" else None
        from agent.informers import successor  # noqa: PLC0415 - 62 KiB, asked once, at the end

        node = self.watched.node if self.watched is not None else None
        where = place.namespace, place.daemon_set
        return await successor.missing(self._access, self._clock, where, node)
