"""Reclaims under way: pods for which borrowers leave, until they have a node or are given up."""

import dataclasses
import logging
from collections.abc import Container
from typing import Final

from domain.quota import reclaim
from kube.client import errors
from manager.quota import book, objects
from manager.quota.overuse import reclaim_writes
from manager.reconcile import apply
from process.runtime import clock as clocks
from process.runtime import metrics

logger = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 60.0
_LONGEST_PAUSE: Final = 3600.0
_AGAIN_SECONDS: Final = 5.0
_ARRIVES_SECONDS: Final = 30.0


@dataclasses.dataclass(slots=True)
class _Pending:
    """A pod for which borrowers leave."""

    node: str
    victims: frozenset[str]
    nominated_at: float
    left_at: float | None = None
    """Since when all victims are gone."""
    given_up: bool = False
    """Whether a victim stays after all, so that the pod is helped in another way."""

    def observe(self, present: Container[str], now: float) -> None:
        """Take in which pods there are."""
        if any(victim in present for victim in self.victims):
            self.left_at = None
        elif self.left_at is None:
            self.left_at = now

    def is_in_vain(self, now: float) -> bool:
        """Whether all victims have left for long and the pod has not started."""
        return self.left_at is not None and now - self.left_at >= _ARRIVES_SECONDS


@dataclasses.dataclass(slots=True)
class _Failed:
    """A pod that was not helped."""

    pause: float
    until: float
    avoided: set[str] = dataclasses.field(default_factory=set)


class InFlight:
    """Follows each pod that is nominated for what borrowers leave; ends what does not help it."""

    def __init__(self, seen: book.Book, clock: clocks.Clock, registry: metrics.Registry) -> None:
        self._book = seen
        self._clock = clock
        self._pending: dict[str, _Pending] = {}
        self._failed: dict[str, _Failed] = {}
        self._helped = registry.counter(
            "koord_quota_reclaims_total",
            "Pods for which borrowers were evicted, by whether they have started.",
            ("result",),
        )

    @property
    def expected(self) -> dict[str, str]:
        """The nodes on which pods are expected, by uid."""
        return {uid: one.node for uid, one in self._pending.items()}

    def may_try(self, uid: str, now: float) -> bool:
        """Whether a pod may be helped now: no borrowers leave for it, and it is not paused."""
        failed = self._failed.get(uid)
        return uid not in self._pending and (failed is None or now >= failed.until)

    def avoided(self, uid: str) -> frozenset[str]:
        """Return the nodes that were tried for a pod in vain."""
        failed = self._failed.get(uid)
        return frozenset(failed.avoided) if failed is not None else frozenset()

    def begin(self, found: reclaim.Reclaim) -> None:
        """Follow a pod that was nominated, and whose victims are about to be evicted."""
        victims = frozenset(victim.uid for victim in found.victims)
        self._pending[found.waiter.uid] = _Pending(found.node, victims, self._clock.monotonic())

    def give_up(self, uid: str, *, some_left: bool) -> None:
        """Let a pod be helped in another way: one of its victims stays.

        `some_left` says whether others have left; what they held counts as free in the next plan.
        """
        self._pending[uid].given_up = True
        if some_left:
            self._helped.labels("in-vain").inc()

    def fail(self, uid: str, node: str) -> None:
        """Leave a pod alone for a while, longer each time."""
        before = self._failed.get(uid)
        pause = min(before.pause * 2, _LONGEST_PAUSE) if before is not None else _FIRST_PAUSE
        avoided = before.avoided if before is not None else set[str]()
        if node:
            avoided.add(node)
        self._failed[uid] = _Failed(pause, self._clock.monotonic() + pause, avoided)

    def forget_failures(self, uid: str) -> None:
        """Forget what did not help a pod: it waits no longer."""
        self._failed.pop(uid, None)

    async def settle(self, writer: apply.Writer, now: float) -> None:
        """Follow those for whom borrowers leave until they have a node."""
        for uid, pending in tuple(self._pending.items()):
            pod = self._book.pods.get(uid)
            if pod is None or pod.node or pod.terminating:
                del self._pending[uid]
                self._failed.pop(uid, None)
                if not pending.given_up:
                    started = pod is not None and pod.node
                    self._helped.labels("started" if started else "gone").inc()
                continue
            pending.observe(self._book.pods, now)
            try:
                if pending.given_up or pending.is_in_vain(now):
                    await self._end(writer, pod, pending)
                elif pod.nominated != pending.node and now >= pending.nominated_at + _AGAIN_SECONDS:
                    # The scheduler clears it for many reasons; the room is still meant for it.
                    pending.nominated_at = now
                    await reclaim_writes.nominate(writer, pod, pending.node)
            except errors.KubeError as error:
                logger.info("nomination is not written pod=%s error=%s", pod.key, error)

    async def _end(self, writer: apply.Writer, pod: objects.QuotaPod, pending: _Pending) -> None:
        """Withdraw a nomination; an error leaves it to the next round."""
        if pod.nominated in ("", pending.node):
            # Empty also means that the watch has not shown the nomination yet.
            await reclaim_writes.nominate(writer, pod, "")
        del self._pending[pod.uid]
        if not pending.given_up:
            self.fail(pod.uid, pending.node)
            self._helped.labels("in-vain").inc()
