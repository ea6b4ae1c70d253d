"""Wakes waiting pods that a change of ours lets fit, by a changed annotation of the pod.

kube-scheduler tries a pod again that an extender refused when something it watches changes; load
reports and strategies are not among that. Only pods that some node would take now are touched,
the oldest first, once after each attempt, and at a limited rate. Those that compete for quota are
looked at as soon as some is freed, by priority and age, and no more are woken than it has room for.
When a Reservation has ended, pods are looked at right away as well. When one has got its node, or
the scheduler has refused a pod without having asked about the node that keeps capacity for it, or
too early, just the pods that this concerns are, however long it takes to look at all of them.
"""

import dataclasses
from collections.abc import Callable, Iterator

from extender.framework import pipeline
from extender.requeue import lines, queueing_hints, unschedulable_pods, writes
from extender.settings import NudgeSettings
from extender.state import (
    claims,
    cluster_state,
    deltas,
    ledger,
    records,
    status_nominations,
)
from extender.state.reservations import reservation_claims
from kube.client import client as clients
from kube.informers import store
from process.runtime import clock as clocks
from process.runtime import metrics, token_bucket

_TICK_SECONDS = 1.0
_LONGEST_TICK_SECONDS = 10.0
_TOGETHER_SECONDS = 0.02
"""How long changes are gathered that are looked at right away."""
_SHORTEST_SECONDS = 0.001
_KEPT_PAUSE_SECONDS = 0.1
"""How long a pod is left alone, for which capacity is kept, that was woken in vain for the first
time: it had been refused while it was told its node."""
_SOON_SECONDS = 1.0
"""Such a pod is looked at alone again where it is to be woken within so many seconds."""
_SLICE = 20
_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What waking works on."""

    client: clients.Client
    clock: clocks.Clock
    books: ledger.Ledger
    plugins: pipeline.Pipeline
    waiting: unschedulable_pods.UnschedulablePods
    pods: store.Store[records.PodRecord]


def retries(registry: metrics.Registry) -> Callable[[float], None]:
    """Return who hears how long a pod that fitted waited for its next attempt."""
    seconds = registry.histogram(
        "koord_extender_nudged_retry_seconds",
        "Time from when a waiting pod fitted until it was tried again after a nudge.",
        (),
        _BUCKETS,
    )
    return lambda taken: seconds.observe(taken)


class Requeuer:
    """Looks at waiting pods whenever something has changed, and wakes those that fit."""

    def __init__(self, parts: Parts, settings: NudgeSettings, registry: metrics.Registry) -> None:
        self._parts = parts
        self._settings = settings
        cluster = parts.books.cluster
        changes = queueing_hints.Changes()
        cluster.followers += [changes.follow, self._follow]
        parts.waiting.followers.append(self._passed_over)
        self._judgements = queueing_hints.Judgements(changes)
        self._charges = lines.Charges(parts.waiting, parts.pods, cluster)
        self._bucket = token_bucket.Bucket(settings.per_second, settings.burst)
        self._in_line = token_bucket.Bucket(settings.in_line_per_second, settings.in_line_burst)
        self._nap = clocks.Nap(parts.clock)
        self._is_urgent = False
        self._serves_at = 0.0
        """From when on pods are looked at again that something is kept for."""
        self._opened: set[str] = set()
        """Nodes on which a Reservation takes owners from now on."""
        self._kept: set[str] = set()
        """Keys of pods for which a node keeps capacity that the scheduler did not ask about."""
        self._writes = writes.Writes(parts.client, parts.clock, parts.pods, parts.waiting)
        self._has_lines, self._looked_at = False, 0
        self.woken = registry.counter(
            "koord_extender_nudges_total", "Waiting pods woken, by what changed.", ("because",)
        )
        registry.gauge(
            "koord_extender_waiting_pods", "Pods that every node refused when last tried."
        ).set_function(lambda: len(parts.waiting))

    def _follow(self, delta: deltas.Delta) -> None:
        """Look right away after what lets pods of a line pass, and when Reservations come or go."""
        waiting = len(self._parts.waiting)
        if not waiting:
            return
        # Where no pod stood in a line when looked at last, a second is soon enough.
        lines_concern = self._has_lines or waiting != self._looked_at
        if opened := _opened(delta):
            self._opened.add(opened)
        kept = _nominated(delta, self._parts.books.cluster)
        self._kept |= kept
        urgent = _ends(delta) or (lines_concern and self._parts.plugins.frees(delta))
        self._is_urgent |= urgent
        if opened or kept or urgent:
            self._nap.wake()

    def _passed_over(self, key: str) -> None:
        self._kept.add(key)
        self._nap.wake()

    @property
    def judged(self) -> int:
        """How often all nodes were judged for pods that wait."""
        return self._judgements.made

    async def run(self) -> None:
        """Look for ever; changes within one tick are looked at together."""
        clock, taken = self._parts.clock, 0.0
        while True:
            await self._rest(taken)
            started, self._writes.seconds = clock.monotonic(), 0.0
            if self._settings.enabled:
                await self.once()
            taken = max(clock.monotonic() - started - self._writes.seconds, 0.0)

    async def _rest(self, taken: float) -> None:
        """Rest until all are to be looked at, but for those that something is kept for."""
        clock = self._parts.clock
        # However many wait, looking takes a tenth of the time at most.
        least = min(max(10 * taken, _TOGETHER_SECONDS), _LONGEST_TICK_SECONDS)
        began = clock.monotonic()
        while True:
            now = clock.monotonic()
            left = began + (least if self._is_urgent else max(_TICK_SECONDS, least)) - now
            if left < _SHORTEST_SECONDS:
                break
            concerned = bool(self._opened or self._kept)
            if concerned and now >= self._serves_at:
                await clock.sleep(_TOGETHER_SECONDS)
                await self._serve()
                continue
            if concerned:
                left = min(left, max(self._serves_at - now, _SHORTEST_SECONDS))
            await self._nap.rest(left)
            if self._is_urgent:
                await clock.sleep(_TOGETHER_SECONDS)
        self._is_urgent = False

    async def _serve(self) -> None:
        """Wake those pods that something is kept for since they were looked at."""
        clock = self._parts.clock
        started, self._writes.seconds = clock.monotonic(), 0.0
        if self._settings.enabled and len(self._parts.waiting):
            await self._look_at_owners()
        else:
            self._opened, self._kept = set(), set()
        ended = clock.monotonic()
        taken = max(ended - started - self._writes.seconds, 0.0)
        least = _KEPT_PAUSE_SECONDS if self._kept else 0.0
        self._serves_at = ended + min(max(10 * taken, least), _LONGEST_TICK_SECONDS)

    async def _look_at_owners(self) -> None:
        parts = self._parts
        nodes, keys = self._opened, self._kept
        self._opened, self._kept = set(), set()
        looks = self._looks()
        for number, waiter in enumerate(parts.waiting, start=1):
            if number % _SLICE == 0:
                await parts.clock.sleep(0)
                looks = self._looks()
            if waiter.request.key not in keys and not looks.keep(waiter, looks.rows(nodes)):
                continue
            line = parts.plugins.line(waiter.request, parts.books.cluster.view())
            if line:
                # Its turn is not known without a look at all of them.
                self._is_urgent = True
            elif await self._let_try(looks, waiter, line) is False:
                return
            looks = self._looks()

    async def once(self) -> None:
        """Requeue the pods that fit now, within the rate."""
        parts = self._parts
        if not len(parts.waiting):
            # While the cluster is being listed, looking at it would compute all of it in one go.
            await self._preemptors()
            return
        looks = self._looks()
        for number, (waiter, line) in enumerate(self._ordered(), start=1):
            if number % _SLICE == 0:
                await parts.clock.sleep(0)
                looks = self._looks()
            tried = await self._let_try(looks, waiter, line)
            if tried is False:
                return
            if tried:
                looks = self._looks()
        await self._preemptors()

    async def _let_try(
        self, looks: queueing_hints.Looks, waiter: unschedulable_pods.UnschedulablePod, line: str
    ) -> bool | None:
        """Wake a pod if it is to be woken: whether the rate allows that, None for a pod that stays.

        A pod of a line that the rate does not allow is left alone, and others have their turn.
        """
        found = None if self._is_gone(waiter) else self._due(looks, waiter, line)
        if found is None:
            return None
        node, is_kept = found
        bucket = self._in_line if line else self._bucket
        if not bucket.take(self._parts.clock.monotonic()):
            return None if line else False
        if looks.may_be_left_out(waiter, node, kept=is_kept):
            await self._writes.nominate(waiter.request, node)
            if waiter.passed_over and self._parts.waiting.get(waiter.request.key) is None:
                # It was tried there meanwhile; another write would let its binding fail.
                return True
        await self._wake_for(waiter, node, is_in_line=bool(line))
        return True

    def _is_gone(self, waiter: unschedulable_pods.UnschedulablePod) -> bool:
        """Whether a pod has not been there for a while; it is not waited for any longer.

        It may have been deleted while the scheduler asked about it, before the answer was noted.
        """
        parts, request = self._parts, waiter.request
        pod = parts.pods.get(request.key)
        if pod is not None and pod.uid == request.uid:
            return False
        if parts.clock.now() - waiter.tried_at < writes.UNSEEN_SECONDS:
            return False
        parts.waiting.settled(request.key, request.uid)
        return True

    def _ordered(self) -> Iterator[tuple[unschedulable_pods.UnschedulablePod, str]]:
        """Go through those that wait, each with its line, and still do when their turn comes."""
        parts = self._parts
        view, plugins = parts.books.cluster.view(), parts.plugins
        waiters = tuple(parts.waiting)
        found = {one.request.key: plugins.line(one.request, view) for one in waiters}
        self._has_lines, self._looked_at = any(found.values()), len(waiters)
        for one in lines.in_line(waiters, lambda request: found[request.key]):
            waiter = parts.waiting.get(one.request.key)
            if waiter is not None:
                yield waiter, found[one.request.key]

    def _due(
        self, looks: queueing_hints.Looks, waiter: unschedulable_pods.UnschedulablePod, line: str
    ) -> tuple[str, bool] | None:
        """Return the node for which a pod is to be woken now, and whether it is kept for the pod.

        None where it is not to be woken.
        """
        parts, now = self._parts, self._parts.clock.now()
        if waiter.woken():
            return None
        node = looks.node_for(waiter)
        fitting = parts.waiting.fits(waiter, (waiter.fits_since or now) if node else 0.0)
        if not node:
            return None
        is_kept, pause = looks.is_kept_for(waiter, node), self._settings.pause_seconds
        if is_kept:
            pause = min(pause, _KEPT_PAUSE_SECONDS)
        left = queueing_hints.due_in(fitting, pause, now, at_once=is_kept or bool(line))
        if is_kept and not line and 0 < left <= _SOON_SECONDS:
            self._kept.add(waiter.request.key)
        return (node, is_kept) if left <= 0 else None

    async def _wake_for(
        self, waiter: unschedulable_pods.UnschedulablePod, node: str, *, is_in_line: bool
    ) -> None:
        """Wake a pod that a node would take."""
        parts, request = self._parts, waiter.request
        fitting = parts.waiting.get(request.key) or waiter
        because = f"{node} would take it"
        if not await self._writes.wake(request.key, request.uid, waiter.tried_at, because):
            return
        now, pod = parts.clock.now(), parts.pods.get(request.key)
        parts.waiting.woken(fitting, now)
        parts.waiting.served(request.key)
        if is_in_line and pod is not None and pod.uid == request.uid:
            self._charges.add(pod, node, now)
        self.woken.labels("quota" if is_in_line else "fits").inc()

    def _looks(self) -> queueing_hints.Looks:
        parts, now = self._parts, self._parts.clock.now()
        shown = self._charges.view(now)
        return queueing_hints.Looks(
            parts.plugins, parts.books.cluster, now, self._judgements, shown
        )

    async def _preemptors(self) -> None:
        """Wake pods whose victims have left without the scheduler having looked again."""
        parts = self._parts
        for key, uid, node in tuple(queueing_hints.freed(parts.waiting, parts.books.cluster)):
            preemptor = parts.waiting.preemptor(key)
            if preemptor is None or preemptor.uid != uid:
                continue
            if parts.clock.now() - preemptor.at < self._settings.pause_seconds:
                continue
            if not self._bucket.take(parts.clock.monotonic()):
                return
            parts.waiting.served(key)
            because = f"its victims have left {node}"
            if await self._writes.wake(key, uid, preemptor.at, because):
                parts.waiting.settled(key, uid)
                self.woken.labels("victims").inc()


def _opened(delta: deltas.Delta) -> str:
    """Return the node of a Reservation that takes owners from now on; empty where none does."""
    if not isinstance(delta, deltas.ClaimDelta) or delta.after is None:
        return ""
    opens = _takes_owners(delta.after) and not _takes_owners(delta.before)
    return delta.after.node if opens else ""


def _nominated(delta: deltas.Delta, cluster: cluster_state.ClusterState) -> set[str]:
    """Return the keys of pods that their nominated node may take from now on.

    kube-scheduler does not try them again by itself where it has seen before this process that
    others have left for them, and perhaps has cleared their nominations.
    """
    if not isinstance(delta, deltas.ClaimDelta) or not cluster.is_nominated():
        return set()
    before, after = delta.before, delta.after
    if after is not None:
        return {after.pod.key} if status_nominations.is_cleared(after) else set()
    if before is None or before.kind not in claims.FIRM:
        return set()
    on_node = cluster.claims_on(before.node)
    return {one.pod.key for one in on_node if status_nominations.is_by_scheduler(one)}


def _ends(delta: deltas.Delta) -> bool:
    """Whether a Reservation keeps nothing from now on."""
    if not isinstance(delta, deltas.ClaimDelta) or delta.after is not None:
        return False
    return delta.before is not None and reservation_claims.offered(delta.before) is not None


def _takes_owners(claim: claims.Claim | None) -> bool:
    """Whether a claim is a Reservation that has its node and has not to wait for pods to end."""
    offered = reservation_claims.offered(claim) if claim is not None else None
    is_shown = claim is not None and claim.evidence == claims.SHOWN
    return offered is not None and is_shown and not offered.waiting
