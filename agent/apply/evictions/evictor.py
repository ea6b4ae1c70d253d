"""Ask the API server to evict pods: within budgets, at a limited rate, never twice for one pod."""

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, Protocol

import msgspec

from agent.model import edits
from api.wire import durations
from kube.client import client as clients
from kube.client import errors
from kube.controllers import recorder
from process.runtime import clock as clocks
from process.runtime import metrics

_logger = logging.getLogger(__name__)
EVICTED: Final = "evictPodSuccess"
REFUSED: Final = "evictPodFail"
STOP_SECONDS = 10.0
"""What the kubelet takes beside the grace period until a pod has left."""
AWAY_SECONDS = 15.0
"""How long an API server that did not answer is not asked again where killing stands in."""


class Limits(msgspec.Struct, frozen=True):
    """How fast pods may be evicted from this node."""

    burst: int = 5
    """How many at once ..."""
    per_minute: float = 10.0
    """... and how many in the long run."""
    first_pause_seconds: float = 5.0
    """How long a pod is left alone after its budget refused, twice as long each time ..."""
    longest_pause_seconds: float = 60.0
    """... up to this."""
    patience_seconds: float = 30.0
    """How long what an evicted pod uses counts as given back."""
    longest_grace_seconds: int | None = None
    """Grace period of evicted pods, at most; None leaves it to each pod."""


class _Refusal(msgspec.Struct, frozen=True):
    until: float
    pause: float


class Killer(Protocol):
    """What ends containers where no API server can be asked to evict their pod."""

    def may(self, eviction: edits.Eviction) -> bool:
        """Tell whether it has come to that."""

    def kill(self, eviction: edits.Eviction) -> str:
        """End the containers of a pod; return what was done, raise OSError."""


class Answer(msgspec.Struct, frozen=True):
    """What became of one: `evicted`, `would have evicted`, `refused`, `failed` or `killed`."""

    outcome: str
    eviction: edits.Eviction
    reason: str

    def as_event(self, at: float) -> dict[str, Any]:
        """Return it as a line of the audit log."""
        return {
            "createdAt": durations.moment(at),
            "type": "pod",
            "namespace": self.eviction.namespace,
            "name": self.eviction.name,
            "uid": self.eviction.uid,
            "reason": self.outcome,
            "message": self.reason,
        }


class Evictor:
    """Carries out what the latest tick wants; what it no longer wants is not sent any more."""

    def __init__(
        self,
        client: clients.Client,
        clock: clocks.Clock,
        events: recorder.Recorder,
        figures: metrics.Registry,
        *,
        tell: Callable[[Answer], None],
        limits: Limits | None = None,
    ) -> None:
        self.problem: str | None = None
        """Why the last eviction failed for a reason other than a budget, None when it did not."""
        self.killer: Killer | None = None
        """What ends containers while the API server is away; None where nothing may."""
        self._client = client
        self._clock = clock
        self._events = events
        self._tell = tell
        self._limits = limits or Limits()
        self._away_until = -math.inf
        self._wanted: dict[str, edits.Eviction] = {}
        self._evicted: dict[str, float] = {}
        self._refused: dict[str, _Refusal] = {}
        self._told: set[tuple[str, str]] = set()
        self._tokens, self._filled = float(self._limits.burst), clock.monotonic()
        self._changed = asyncio.Event()
        self._counted = figures.counter(
            "koord_agent_evictions_total", "Evictions of pods by outcome.", ["outcome"]
        )

    @property
    def leaving(self) -> frozenset[str]:
        """The uids of pods that were evicted and will have left soon: their use goes by itself."""
        now = self._clock.monotonic()
        return frozenset(uid for uid, until in self._evicted.items() if until > now)

    @property
    def refused(self) -> frozenset[str]:
        """The uids of pods that could not be evicted a moment ago, or were and take long to stop.

        What they use is used: another pod has to go.
        """
        now = self._clock.monotonic()
        slow = [uid for uid, until in self._evicted.items() if until <= now]
        return frozenset(uid for uid, one in self._refused.items() if one.until > now).union(slow)

    def want(
        self,
        evictions: Iterable[edits.Eviction],
        present: Collection[str] | None,
        observed: Iterable[edits.Eviction] = (),
    ) -> None:
        """Take what one tick wants and which pods are here (None where that is not known).

        What is only observed is reported, each pod once per feature as long as it is asked for.
        """
        if present is not None:
            for memory in (self._evicted, self._refused):
                for uid in memory.keys() - set(present):
                    del memory[uid]
        self._wanted = {one.uid: one for one in evictions if one.uid not in self._evicted}
        would = {(one.uid, one.feature): one for one in observed if one.uid not in self._evicted}
        for what, one in would.items():
            if what not in self._told:
                self._answer("would have evicted", one, one.reason)
        self._told = set(would)
        if self._wanted:
            self._changed.set()

    def cease(self) -> None:
        """Send nothing more of what was asked for; what is on its way cannot be called back."""
        self._wanted = {}

    async def run(self) -> None:
        """Evict for ever."""
        while True:
            eviction = self._next()
            if eviction is None:
                await self._pause()
                continue
            self._tokens -= 1
            await self._evict(eviction)

    def _next(self) -> edits.Eviction | None:
        """Return what may be sent right now."""
        now = self._clock.monotonic()
        rate = self._limits.per_minute / 60
        self._tokens = min(self._limits.burst, self._tokens + (now - self._filled) * rate)
        self._filled = now
        # Half a billionth of a token is rounding, not patience.
        if self._tokens < 1 - 1e-9:
            return None
        return next((e for uid, e in self._wanted.items() if self._due(uid) <= now), None)

    def _due(self, uid: str) -> float:
        refusal = self._refused.get(uid)
        return refusal.until if refusal else 0.0

    async def _pause(self) -> None:
        """Wait for a wish, or until one that is there may be sent."""
        if not self._wanted:
            self._changed.clear()
            await self._changed.wait()
            return
        now = self._clock.monotonic()
        token = max(0.0, 1 - self._tokens) * 60 / self._limits.per_minute
        due = min(self._due(uid) for uid in self._wanted) - now
        # The wish may be withdrawn meanwhile; then the next look finds nothing and waits again.
        await self._clock.sleep(max(token, due, 0.001))

    async def _evict(self, eviction: edits.Eviction) -> None:
        del self._wanted[eviction.uid]
        if self._clock.monotonic() < self._away_until and self._kills(eviction):
            return
        grace = _least(eviction.grace_seconds, self._limits.longest_grace_seconds)
        # On its way: the next tick must not ask a second time.
        self._evicted[eviction.uid] = self._gone_at(eviction, grace)
        try:
            await self._client.evict(
                eviction.namespace, eviction.name, uid=eviction.uid, grace_seconds=grace
            )
        except (errors.NotFound, errors.Conflict):
            # It left by itself, or another pod has its name by now.
            return
        except errors.TooManyRequests as error:
            self._refuse(eviction)
            self._answer("refused", eviction, f"a disruption budget forbids it for now: {error}")
            return
        except errors.KubeError as error:
            if isinstance(error, errors.Unreachable | errors.ServerFailure) and self._may_kill(
                eviction
            ):
                # It is asked for again in the next tick, if it is still wanted. A list of pods
                # that came meanwhile may have left it out.
                self._evicted.pop(eviction.uid, None)
                self._away_until = self._clock.monotonic() + AWAY_SECONDS
            else:
                self._refuse(eviction)
            self.problem = f"{eviction.namespace}/{eviction.name} cannot be evicted: {error}"
            self._answer("failed", eviction, str(error))
            return
        self.problem = None
        self._refused.pop(eviction.uid, None)
        self._answer("evicted", eviction, eviction.reason)

    def _gone_at(self, eviction: edits.Eviction, grace: int | None) -> float:
        """Return until when a pod counts as one that will have left soon."""
        seconds = _least(grace, eviction.own_grace_seconds) or 0
        now = self._clock.monotonic()
        return now + seconds + STOP_SECONDS if seconds <= self._limits.patience_seconds else now

    def _may_kill(self, eviction: edits.Eviction) -> bool:
        return self.killer is not None and self.killer.may(eviction)

    def _kills(self, eviction: edits.Eviction) -> bool:
        """End the containers of a pod while the API server is away, where that may be."""
        if self.killer is None or not self.killer.may(eviction):
            return False
        # Its containers may come back; others have their turn before it is killed again.
        self._refuse(eviction)
        try:
            said = self.killer.kill(eviction)
        except OSError as error:
            self._answer("failed", eviction, f"the API server is away, and killing failed: {error}")
        else:
            self._answer("killed", eviction, f"the API server is away; {said}")
        return True

    def _refuse(self, eviction: edits.Eviction) -> None:
        """Leave a pod alone for a while; the next victim is tried meanwhile."""
        self._evicted.pop(eviction.uid, None)
        limits, before = self._limits, self._refused.get(eviction.uid)
        pause = min(
            before.pause * 2 if before else limits.first_pause_seconds,
            limits.longest_pause_seconds,
        )
        self._refused[eviction.uid] = _Refusal(self._clock.monotonic() + pause, pause)

    def _answer(self, outcome: str, eviction: edits.Eviction, reason: str) -> None:
        self._counted.labels(outcome.replace(" ", "-")).inc()
        self._tell(Answer(outcome, eviction, reason))
        _logger.info(
            "%s pod=%s/%s uid=%s reason=%r",
            outcome,
            eviction.namespace,
            eviction.name,
            eviction.uid,
            reason,
        )
        if outcome == "would have evicted":
            return
        pod = recorder.Regarding("v1", "Pod", eviction.name, eviction.namespace, eviction.uid)
        good = outcome in ("evicted", "killed")
        note = eviction.reason if good else f"{eviction.reason}; {reason}"
        self._events.event(pod, "Warning", EVICTED if good else REFUSED, note, action="Evicting")


def _least(one: int | None, other: int | None) -> int | None:
    """Return the smaller of two grace periods, of which either may be left open."""
    return min((seconds for seconds in (one, other) if seconds is not None), default=None)
