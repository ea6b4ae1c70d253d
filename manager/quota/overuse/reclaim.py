"""Takes loans back: evicts borrowers for pods that their quota is entitled to run.

What a pod is evicted for is expected on its node: ``status.nominatedNodeName`` says so first, and
the extender keeps the room from everybody else. Then all victims are asked for in a dry run, and
counted together against disruption budgets, and evicted through the Eviction API. Where one is
refused all the same, others are chosen. A pod that does not start although its victims have left is
tried again later, elsewhere.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Collection
from typing import Final

from domain.quota import reclaim
from kube.client import errors
from manager.quota import arguments, book
from manager.quota.overuse import disruptions, in_flight, reclaim_view, reclaim_writes
from manager.reconcile import apply
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics, token_bucket

logger = logging.getLogger(__name__)

NAME: Final = "quotareclaim"
SWITCH: Final = "quota-reclaim"
"""Its key among the live switches."""

RECLAIMED: Final = "QuotaReclaimed"
RECLAIMING: Final = "ReclaimingQuota"
WOULD_RECLAIM: Final = "WouldReclaimQuota"
REVOKED: Final = "QuotaRevoked"

_MOST_IN_A_ROUND: Final = 10
_MOST_LOOKED_AT: Final = 50
_NOMINATED_SECONDS: Final = 120.0


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How fast borrowers are evicted."""

    per_second: float = 10.0
    burst: int = 20
    distrust_seconds: float = 120.0
    """After how long without a node a pod may be given one though another seems to have room."""
    settle_seconds: float = 0.0
    """How long a new leader watches before it evicts anybody."""
    own_namespace: str = ""


class Reclaim:
    """Looks for entitled pods without a node, once per interval, for one term of leadership."""

    def __init__(
        self,
        seen: book.Book,
        live: switches.Switches,
        given: arguments.Arguments,
        pace: Pace,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._book = seen
        self._live = live
        self._arguments = given
        self._pace = pace
        self._clock = clock
        bucket = token_bucket.ClockedBucket(clock, pace.per_second, pace.burst)
        self._evictor = reclaim_writes.Evictor(bucket, clock, registry)
        self._stuck: dict[str, float] = {}
        self._leaving: set[str] = set()
        self._over: dict[str, float] = {}
        self._in_flight = in_flight.InFlight(seen, clock, registry)
        self._at = 0

    async def run(self, writer: apply.Writer, budgets: disruptions.Disruptions) -> None:
        """Reclaim until cancelled."""
        await self._clock.sleep(self._pace.settle_seconds)
        stop = self._book.listen(self._changed)
        try:
            for uid in tuple(self._book.pods):
                self._take(uid)
            while True:
                await self._clock.sleep(self._arguments.present.revoke_pod_interval)
                await self._round(writer, budgets)
        finally:
            stop()

    # --- What happens ---------------------------------------------------------------------------

    def _changed(self, changed: book.Changed) -> None:
        if changed.kind == book.POD:
            self._take(changed.key)

    def _take(self, uid: str) -> None:
        pod = self._book.pods.get(uid)
        if pod is not None and pod.terminating and pod.node:
            self._leaving.add(uid)
        else:
            self._leaving.discard(uid)
        waits = pod is not None and not (pod.node or pod.gates or pod.terminating)
        if waits and pod is not None and pod.unschedulable_since:
            self._stuck.setdefault(uid, self._clock.monotonic())
        else:
            self._stuck.pop(uid, None)
        if not waits:
            self._in_flight.forget_failures(uid)

    # --- What is done ---------------------------------------------------------------------------

    async def _round(self, writer: apply.Writer, budgets: disruptions.Disruptions) -> None:
        """Look once."""
        now = self._clock.monotonic()
        await self._in_flight.settle(writer, now)
        monitors = self._arguments.present.monitor_all_quotas
        if not self._live.asks or not (self._stuck or monitors):
            self._over.clear()
            return
        view = self._view()
        overdue = self._overdue(view.overdrawn(), now)
        if not overdue:
            return
        decided = await self._decide(view, overdue, now)
        for found in decided:
            await self._carry_out(writer, budgets, found)
        if monitors:
            gone = {victim.uid for found in decided for victim in found.victims}
            await self._revoke(writer, overdue, gone)

    def _view(self, gone: Collection[str] = ()) -> reclaim_view.View:
        """Return the cluster as it is now; `gone` are pods that count as being deleted already."""
        leaving, expected = {*self._leaving, *gone}, self._in_flight.expected
        return reclaim_view.View(self._book, leaving, expected, self._pace.own_namespace)

    def _overdue(self, over: set[str], now: float) -> frozenset[str]:
        """Return who has used too much for longer than the grace."""
        self._over = {name: self._over.get(name, now) for name in over}
        grace = self._arguments.present.delay_evict_time
        return frozenset(name for name, since in self._over.items() if now - since >= grace)

    async def _decide(
        self, view: reclaim_view.View, overdue: frozenset[str], now: float
    ) -> list[reclaim.Reclaim]:
        """Return whom to help, on one picture; between two pods others have their turn."""
        candidates = [uid for uid in self._stuck if self._may_try(uid, now)]
        if not candidates:
            return []
        self._at += view.look(overdue, self._at)
        decided: list[reclaim.Reclaim] = []
        hopeless: set[tuple[object, ...]] = set()
        for waiter in reclaim_view.waiters(self._book, candidates)[:_MOST_LOOKED_AT]:
            shape = (waiter.quota, waiter.requests, waiter.preemptible, waiter.requires)
            if shape in hopeless or waiter.uid not in self._stuck:
                continue
            await asyncio.sleep(0)
            terms = self._terms(view, waiter, overdue, now)
            found = reclaim.plan(view.tree, waiter, view.sites(), view.on_node, terms)
            if isinstance(found, reclaim.Nothing):
                hopeless.add(shape)
                continue
            view.carried_out(found)
            decided.append(found)
            if len(decided) >= _MOST_IN_A_ROUND:
                break
        return decided

    def _may_try(self, uid: str, now: float) -> bool:
        pod = self._book.pods.get(uid)
        if pod is None or not self._in_flight.may_try(uid, now):
            return False
        # Another reclaim makes room for it, unless that has not helped for long.
        return not pod.nominated or now - self._stuck[uid] >= _NOMINATED_SECONDS

    def _terms(
        self,
        view: reclaim_view.View,
        waiter: reclaim.Waiter,
        overdue: frozenset[str],
        now: float,
    ) -> reclaim.Terms:
        return reclaim.Terms(
            overdue=overdue,
            excluded=self._evictor.refused,
            avoided=self._in_flight.avoided(waiter.uid),
            promised=view.promised,
            distrusts_room=now - self._stuck.get(waiter.uid, now) >= self._pace.distrust_seconds,
        )

    async def _carry_out(
        self, writer: apply.Writer, budgets: disruptions.Disruptions, found: reclaim.Reclaim
    ) -> None:
        """Evict borrowers for a pod: all of them, as far as can be known before, or none."""
        logger.info("quota is reclaimed mode=%s plan=%s", self._live.mode, found.sentence)
        if not self._live.enforces:
            self._evictor.evictions.labels("would-evict").inc(len(found.victims))
            self._in_flight.fail(found.waiter.uid, "")
            await reclaim_writes.tell(writer, found.waiter, WOULD_RECLAIM, found.sentence)
            return
        waiter = self._book.pods.get(found.waiter.uid)
        if waiter is None or waiter.uid not in self._stuck:
            return  # It has found a node meanwhile.
        try:
            if not await self._evictor.may_all_leave(writer, found.victims, budgets):
                return
            await reclaim_writes.nominate(writer, waiter, found.node)
        except errors.KubeError as error:
            self._not_reclaimed(found, error)
            return
        self._in_flight.begin(found)
        await reclaim_writes.tell(writer, found.waiter, RECLAIMING, found.sentence)
        await self._evict(writer, found)

    async def _evict(self, writer: apply.Writer, found: reclaim.Reclaim) -> None:
        """Evict one borrower after the other; stop where one stays."""
        uid, some_left = found.waiter.uid, False
        try:
            for victim in found.victims:
                await self._evictor.turn()
                if not await self._evictor.evict(writer, victim):
                    self._in_flight.give_up(uid, some_left=some_left)
                    return
                some_left = True
                await reclaim_writes.tell(writer, victim, RECLAIMED, found.sentence, warning=True)
        except errors.KubeError as error:
            self._not_reclaimed(found, error)
            self._in_flight.give_up(uid, some_left=some_left)
            # It may be leaving all the same: no other pod does before the watch has shown that.
            self._in_flight.fail(uid, "")

    def _not_reclaimed(self, found: reclaim.Reclaim, error: errors.KubeError) -> None:
        self._evictor.evictions.labels("failed").inc()
        logger.warning("quota is not reclaimed pod=%s error=%s", found.waiter.key, error)

    async def _revoke(self, writer: apply.Writer, overdue: frozenset[str], gone: set[str]) -> None:
        """Evict pods of quotas that use too much, whether or not others wait."""
        for name in sorted(overdue):
            view = self._view(gone)
            figures = view.tree.figures(name)
            if figures is None:
                continue
            held = view.holders(
                pod for pod in self._book.of_quota(name) if pod.node and pod.uid not in gone
            )
            victims = reclaim.revoke(figures, held)
            self._over.pop(name, None)
            note = f"quota {name[:100]} has used more than it may for longer than the grace"
            try:
                for victim in victims:
                    if not self._live.enforces:
                        self._evictor.evictions.labels("would-evict").inc()
                        continue
                    await self._evictor.turn()
                    if not self._view(gone).is_overdrawn(name):
                        break  # Pods have left by themselves meanwhile.
                    if await self._evictor.evict(writer, victim):
                        gone.add(victim.uid)
                        await reclaim_writes.tell(writer, victim, REVOKED, note, warning=True)
            except errors.KubeError as error:
                self._evictor.evictions.labels("failed").inc()
                logger.warning("quota is not revoked quota=%s error=%s", name, error)
