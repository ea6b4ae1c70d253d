"""What reclaim writes: evictions, nominations and events about pods."""

import http
import logging
from collections.abc import Sequence
from typing import Final

from api import resources
from api.koordinator import event_reasons
from domain.quota import reclaim
from kube.client import errors
from manager.quota import objects
from manager.quota.overuse import disruptions
from manager.reconcile import actions, apply
from process.runtime import clock as clocks
from process.runtime import metrics, token_bucket

logger = logging.getLogger(__name__)

_REFUSED_SECONDS: Final = 30.0


class Evictor:
    """Evicts within disruption budgets and a rate; leaves pods alone whose eviction was refused."""

    def __init__(
        self,
        bucket: token_bucket.ClockedBucket,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._bucket = bucket
        self._clock = clock
        self._refused: dict[str, float] = {}
        self.evictions = registry.counter(
            "koord_quota_evictions_total",
            "Evictions of borrowers, by what became of them.",
            ("result",),
        )

    @property
    def refused(self) -> frozenset[str]:
        """The uids of pods whose eviction was refused a moment ago."""
        now = self._clock.monotonic()
        self._refused = {uid: until for uid, until in self._refused.items() if until > now}
        return frozenset(self._refused)

    async def turn(self) -> None:
        """Wait until one more pod may be evicted."""
        await self._bucket.wait()

    async def may_all_leave(
        self,
        writer: apply.Writer,
        victims: Sequence[reclaim.Holder],
        budgets: disruptions.Disruptions,
    ) -> bool:
        """Whether pods may be evicted now, all of them one after the other."""
        for victim in victims:
            if not await self.evict(writer, victim, dry_run=True):
                return False
        kept = await budgets.kept(victims)
        for victim in victims:
            if victim.uid in kept:
                self._spare(victim, "its disruption budget does not allow as many at once")
        return not kept

    async def evict(
        self, writer: apply.Writer, victim: reclaim.Holder, *, dry_run: bool = False
    ) -> bool:
        """Evict a pod; False where that is refused for now, as by a disruption budget."""
        namespace, _, name = victim.key.partition("/")
        step = actions.Evict(namespace, name, victim.uid, dry_run)
        try:
            await writer.carry_out(actions.Plan("evicts a borrower", (step,)))
        except (errors.NotFound, errors.Conflict):
            return True  # It has left already.
        except errors.ApiError as error:
            unknown = error.status > http.HTTPStatus.INTERNAL_SERVER_ERROR
            if unknown or isinstance(error, errors.Unauthorized):
                raise  # It may have been carried out, or says nothing about this pod.
            # Also of a pod with two budgets, which the API server answers with 500.
            self._spare(victim, str(error), error.retry_after or 0.0)
            return False
        if not dry_run:
            self.evictions.labels("evicted").inc()
        return True

    def _spare(self, victim: reclaim.Holder, why: str, seconds: float = 0.0) -> None:
        """Leave a pod alone for a while, so that others are chosen."""
        pause = max(_REFUSED_SECONDS, seconds)
        self._refused[victim.uid] = self._clock.monotonic() + pause
        self.evictions.labels("refused").inc()
        logger.info("eviction is refused pod=%s reason=%s", victim.key, why)


async def nominate(writer: apply.Writer, pod: objects.QuotaPod, node: str) -> None:
    """Say on which node a pod is expected; empty: on none."""
    namespace, _, name = pod.key.partition("/")
    body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node or None}}
    step = actions.PatchPod(namespace, name, body, "status")
    await writer.carry_out(actions.Plan("nominates a node", (step,)))


async def tell(
    writer: apply.Writer,
    about: reclaim.Waiter | reclaim.Holder,
    reason: event_reasons.Reason,
    note: str,
    *,
    warning: bool = False,
) -> None:
    """Post an event about a pod."""
    namespace, _, name = about.key.partition("/")
    step = actions.Tell(resources.PODS, name, about.uid, reason, note, warning, namespace)
    await writer.carry_out(actions.Plan("tells", (step,)))
