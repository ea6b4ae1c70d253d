"""Carries out restarts of gangs: evicts their pods within disruption budgets and a rate."""

import dataclasses
from typing import Final, NamedTuple

from kube.client import errors
from manager.gangs import objects, restart_plan
from manager.reconcile import actions, apply
from process.runtime import clock as clocks
from process.runtime import metrics, token_bucket

_AGAIN_SECONDS: Final = 10.0
_LONGEST_SECONDS: Final = 600.0
"""After how long a restart ends although a budget still keeps some of the pods."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How fast pods of gangs are evicted, of all gangs together."""

    per_second: float = 50.0
    burst: int = 100


class Progress(NamedTuple):
    """How far a restart has come."""

    again_in: float | None = None
    """Seconds after which to try again; None where it is over."""
    kept: int = 0
    """Pods that run on because disruption budgets have kept them for too long."""


@dataclasses.dataclass(slots=True)
class _UnderWay:
    """A restart of which some pods have still to leave."""

    restart: restart_plan.Restart
    started: float
    left: dict[str, objects.GangPod]
    """By uid."""
    noted: bool = False
    """Whether the PodGroups say that their pods start anew."""


class Restarts:
    """The restarts of one process: those under way, and when each gang had its last one."""

    def __init__(self, pace: Pace, clock: clocks.Clock, registry: metrics.Registry) -> None:
        self._clock = clock
        self._bucket = token_bucket.ClockedBucket(clock, pace.per_second, pace.burst)
        self._under_way: dict[str, _UnderWay] = {}
        self._last: dict[str, float] = {}
        self.results = registry.counter(
            "koord_gang_restarts_total",
            "Gangs below their minimum whose pods are to start anew, by what became of it.",
            ("result",),
            known=(("restarted",), ("would-restart",), ("delayed",), ("incomplete",)),
        )
        self._evictions = registry.counter(
            "koord_gang_evictions_total",
            "Evictions of pods of gangs that restart.",
            ("result",),
            known=(("evicted",), ("refused",)),
        )

    def last(self, gang_id: str) -> float | None:
        """Return when this process restarted a gang last, in seconds since the epoch."""
        return self._last.get(gang_id)

    def is_under_way(self, gang_id: str) -> bool:
        """Whether pods of a gang have still to be evicted."""
        return gang_id in self._under_way

    async def refused(self, writer: apply.Writer, restart: restart_plan.Restart) -> str:
        """Ask for all evictions without carrying them out; return what a budget says against it.

        A budget that allows some of them at a time is met only later: then the others follow as it
        allows them.
        """
        for pod in restart.pods:
            if said := await self._evict(writer, pod, dry_run=True):
                return said
        return ""

    def start(self, gang_id: str, restart: restart_plan.Restart) -> None:
        """Begin to restart a gang; once that is noted, its pods leave with `go_on`."""
        now = self._clock.now()
        self._forget(now)
        self._last |= dict.fromkeys(restart.gangs, now)
        left = {pod.uid: pod for pod in restart.pods}
        self._under_way[gang_id] = _UnderWay(restart, self._clock.monotonic(), left)
        self.results.labels("restarted").inc()

    def unnoted(self, gang_id: str) -> restart_plan.Restart | None:
        """Return the restart that is under way and not noted yet."""
        under_way = self._under_way.get(gang_id)
        return None if under_way is None or under_way.noted else under_way.restart

    def noted(self, gang_id: str) -> bool:
        """Remember that the restart is noted; return whether it is still under way."""
        under_way = self._under_way.get(gang_id)
        if under_way is None:
            return False
        under_way.noted = True
        return True

    async def go_on(self, writer: apply.Writer, gang_id: str) -> Progress:
        """Evict what is left of a restart; what a budget keeps is tried again for a while."""
        under_way = self._under_way[gang_id]
        for uid, pod in tuple(under_way.left.items()):
            if not await self._evict(writer, pod, dry_run=False):
                del under_way.left[uid]
            if self._under_way.get(gang_id) is not under_way:
                return Progress()  # Another replica leads by now.
        kept = len(under_way.left)
        if kept and self._clock.monotonic() < under_way.started + _LONGEST_SECONDS:
            return Progress(_AGAIN_SECONDS)
        del self._under_way[gang_id]
        if kept:
            self.results.labels("incomplete").inc()
        return Progress(kept=kept)

    def forget(self, gang_id: str) -> None:
        """Forget what is under way of a gang that is gone."""
        self._under_way.pop(gang_id, None)

    def drop(self) -> None:
        """Forget what is under way, at the end of a term of leadership."""
        self._under_way.clear()

    async def _evict(self, writer: apply.Writer, pod: objects.GangPod, *, dry_run: bool) -> str:
        """Evict a pod; return what a disruption budget says against it."""
        step = actions.Evict(pod.namespace, pod.name, pod.uid, dry_run)
        if not dry_run:
            await self._bucket.wait()
        try:
            await writer.carry_out(actions.Plan("evicts a pod of a gang", (step,)))
        except (errors.NotFound, errors.Conflict):
            return ""  # It has left already.
        except errors.TooManyRequests as error:
            self._evictions.labels("refused").inc()
            return f"pod {pod.key} may not be evicted now: {error}"
        if not dry_run:
            self._evictions.labels("evicted").inc()
        return ""

    def _forget(self, now: float) -> None:
        pause = restart_plan.PAUSE_SECONDS
        self._last = {name: at for name, at in self._last.items() if now < at + pause}
