"""Wakes waiting pods that a change of ours lets fit, by a changed annotation of the pod.

kube-scheduler tries a pod again that an extender refused when something it watches changes; load
reports and strategies are not among that. Only pods that some node would take now are touched,
the oldest first, once after each attempt, and at a limited rate. Those that compete for quota are
looked at as soon as some is freed, by priority and age, and no more are woken than it has room for.
When a Reservation has got its node or has ended, pods are looked at right away as well, also when
the scheduler has refused one without having asked about the node that keeps capacity for it.
"""

import dataclasses
import logging
from collections.abc import Callable, Iterator

from api import names, resources
from api.wire import durations
from extender.framework import pipeline
from extender.requeue import lines, queueing_hints, unschedulable_pods
from extender.settings import NudgeSettings
from extender.state import claims, deltas, ledger, records
from extender.state.reservations import reservation_claims
from kube.client import client as clients
from kube.client import errors
from kube.informers import store
from process.runtime import clock as clocks
from process.runtime import metrics, token_bucket

logger = logging.getLogger(__name__)

_TICK_SECONDS = 1.0
_LONGEST_TICK_SECONDS = 10.0
_TOGETHER_SECONDS = 0.02
"""How long changes are gathered that are looked at right away."""
_UNSEEN_SECONDS = 60.0
"""How long a pod waits that the scheduler has tried and the watch does not show."""
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
        parts.waiting.followers.append(self._look)
        self._judgements = queueing_hints.Judgements(changes)
        self._charges = lines.Charges(parts.waiting, parts.pods, cluster)
        self._bucket = token_bucket.Bucket(settings.per_second, settings.burst)
        self._in_line = token_bucket.Bucket(settings.in_line_per_second, settings.in_line_burst)
        self._nap = clocks.Nap(parts.clock)
        self._writing = 0.0
        self._has_lines, self._looked_at = False, 0
        self._nudges = registry.counter(
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
        if _is_reservation(delta) or (lines_concern and self._parts.plugins.frees(delta)):
            self._look()

    def _look(self) -> None:
        self._nap.wake()

    async def run(self) -> None:
        """Look for ever; changes within one tick are looked at together."""
        clock, taken = self._parts.clock, 0.0
        while True:
            # However many wait, looking takes a tenth of the time at most.
            pause = min(max(_TICK_SECONDS, 10 * taken), _LONGEST_TICK_SECONDS)
            began = clock.monotonic()
            await self._nap.rest(pause)
            rested = clock.monotonic() - began
            if rested < pause:
                least = min(10 * taken, _LONGEST_TICK_SECONDS) - rested
                await clock.sleep(max(_TOGETHER_SECONDS, least))
            started, self._writing = clock.monotonic(), 0.0
            if self._settings.enabled:
                await self.once()
            taken = max(clock.monotonic() - started - self._writing, 0.0)

    async def once(self) -> None:
        """Wake who fits now, as far as the rate allows."""
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
            found = None if self._is_gone(waiter) else self._due(looks, waiter, line)
            if found is None:
                continue
            node, is_kept = found
            bucket = self._in_line if line else self._bucket
            if not bucket.take(parts.clock.monotonic()):
                if line:
                    continue
                return
            if looks.may_be_left_out(waiter, node, kept=is_kept):
                await self._nominate(waiter, node)
            await self._wake_for(waiter, node, is_in_line=bool(line))
            looks = self._looks()
        await self._preemptors()

    def _is_gone(self, waiter: unschedulable_pods.UnschedulablePod) -> bool:
        """Whether a pod has not been there for a while; it is not waited for any longer.

        It may have been deleted while the scheduler asked about it, before the answer was noted.
        """
        parts, request = self._parts, waiter.request
        pod = parts.pods.get(request.key)
        if pod is not None and pod.uid == request.uid:
            return False
        if parts.clock.now() - waiter.tried_at < _UNSEEN_SECONDS:
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
        is_kept = looks.is_kept_for(waiter, node)
        pause = self._settings.pause_seconds
        is_due = queueing_hints.is_due(fitting, pause, now, at_once=is_kept or bool(line))
        return (node, is_kept) if is_due else None

    async def _wake_for(
        self, waiter: unschedulable_pods.UnschedulablePod, node: str, *, is_in_line: bool
    ) -> None:
        """Wake a pod that a node would take."""
        parts, request = self._parts, waiter.request
        fitting = parts.waiting.get(request.key) or waiter
        because = f"{node} would take it"
        if not await self._wake(request.key, request.uid, waiter.tried_at, because):
            return
        now, pod = parts.clock.now(), parts.pods.get(request.key)
        parts.waiting.woken(fitting, now)
        parts.waiting.served(request.key)
        if is_in_line and pod is not None and pod.uid == request.uid:
            self._charges.add(pod, node, now)
        self._nudges.labels("quota" if is_in_line else "fits").inc()

    async def _nominate(self, waiter: unschedulable_pods.UnschedulablePod, node: str) -> None:
        """Have the scheduler look first at a node that its sample of nodes may leave out again."""
        parts, request = self._parts, waiter.request
        body = {"metadata": {"uid": request.uid}, "status": {"nominatedNodeName": node}}
        namespace, _, name = request.key.partition("/")
        started = parts.clock.monotonic()
        try:
            await parts.client.patch(
                resources.PODS,
                name,
                body,
                namespace=namespace,
                subresource="status",
                kind=clients.Patch.STRATEGIC,
                brief=True,
            )
        except errors.KubeError as error:
            logger.info("pod could not be nominated pod=%s error=%s", request.key, error)
        finally:
            self._writing += parts.clock.monotonic() - started

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
            if await self._wake(key, uid, preemptor.at, because):
                parts.waiting.settled(key, uid)
                self._nudges.labels("victims").inc()

    async def _wake(self, key: str, uid: str, tried_at: float, because: str) -> bool:
        """Change the annotation of exactly this pod; whether nothing is left to be done for it.

        The scheduler may ask about a pod before our watch shows it.
        """
        parts = self._parts
        pod = parts.pods.get(key)
        if pod is None or pod.uid != uid or pod.node:
            is_shown = pod is not None and pod.uid == uid
            if is_shown or parts.clock.now() - tried_at >= _UNSEEN_SECONDS:
                parts.waiting.settled(key, uid)
            return False
        namespace, _, name = key.partition("/")
        notes = {names.ANNOTATION_NUDGE: durations.precise_moment(parts.clock.now())}
        # The uid guards against another pod of that name.
        body = {"metadata": {"uid": uid, "annotations": notes}}
        started = parts.clock.monotonic()
        try:
            await parts.client.patch(
                resources.PODS,
                name,
                body,
                namespace=namespace,
                kind=clients.Patch.STRATEGIC,
                brief=True,
            )
        except errors.KubeError as error:
            logger.info("pod could not be woken pod=%s error=%s", key, error)
            return False
        finally:
            self._writing += parts.clock.monotonic() - started
        logger.info("pod woken pod=%s because=%s", key, because)
        return True


def _is_reservation(delta: deltas.Delta) -> bool:
    """Whether a Reservation takes owners from now on, for which they may wait, or keeps nothing."""
    if not isinstance(delta, deltas.ClaimDelta):
        return False
    if delta.after is None:
        return delta.before is not None and reservation_claims.offered(delta.before) is not None
    return _takes_owners(delta.after) and not _takes_owners(delta.before)


def _takes_owners(claim: claims.Claim | None) -> bool:
    """Whether a claim is a Reservation that has its node and has not to wait for pods to end."""
    offered = reservation_claims.offered(claim) if claim is not None else None
    is_shown = claim is not None and claim.evidence == claims.SHOWN
    return offered is not None and is_shown and not offered.waiting
