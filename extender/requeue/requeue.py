"""Wakes waiting pods that a change of ours lets fit, by a changed annotation of the pod.

kube-scheduler tries a pod again that an extender refused when something it watches changes; load
reports and strategies are not among that. Only pods that some node would take now are touched,
the oldest first, once after each attempt, and at a limited rate. Those that compete for quota are
looked at as soon as some is freed, by priority and age, and no more are woken than it has room for.
"""

import dataclasses
import logging
from collections.abc import Callable, Iterator

from api import names, resources
from api.wire import durations
from extender.framework import pipeline
from extender.requeue import lines, queueing_hints, unschedulable_pods
from extender.settings import NudgeSettings
from extender.state import deltas, ledger, records
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
        """Look right away after what lets pods of a line pass."""
        waiting = len(self._parts.waiting)
        # Where nobody stood in a line when looked at last, a second is soon enough.
        concerns = waiting and (self._has_lines or waiting != self._looked_at)
        if concerns and self._parts.plugins.frees(delta):
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
            node = self._due(looks, waiter, is_in_line=bool(line))
            if not node:
                continue
            bucket = self._in_line if line else self._bucket
            if not bucket.take(parts.clock.monotonic()):
                if line:
                    continue
                return
            await self._wake_for(waiter, node, is_in_line=bool(line))
            looks = self._looks()
        await self._preemptors()

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
        self,
        looks: queueing_hints.Looks,
        waiter: unschedulable_pods.UnschedulablePod,
        *,
        is_in_line: bool,
    ) -> str:
        """Return the node for which a pod is to be woken now, empty where it is not."""
        parts, now = self._parts, self._parts.clock.now()
        if waiter.woken():
            return ""
        node = looks.node_for(waiter)
        fitting = parts.waiting.fits(waiter, (waiter.fits_since or now) if node else 0.0)
        pause = self._settings.pause_seconds
        is_due = queueing_hints.is_due(fitting, pause, now, in_line=is_in_line)
        return node if is_due else ""

    async def _wake_for(
        self, waiter: unschedulable_pods.UnschedulablePod, node: str, *, is_in_line: bool
    ) -> None:
        """Wake a pod that a node would take."""
        parts, request = self._parts, waiter.request
        fitting = parts.waiting.get(request.key) or waiter
        if not await self._wake(request.key, request.uid, f"{node} would take it"):
            return
        now, pod = parts.clock.now(), parts.pods.get(request.key)
        parts.waiting.woken(fitting, now)
        parts.waiting.served(request.key)
        if is_in_line and pod is not None and pod.uid == request.uid:
            self._charges.add(pod, node, now)
        self._nudges.labels("quota" if is_in_line else "fits").inc()

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
            if await self._wake(key, uid, f"its victims have left {node}"):
                parts.waiting.settled(key, uid)
                self._nudges.labels("victims").inc()

    async def _wake(self, key: str, uid: str, because: str) -> bool:
        """Change the annotation of exactly this pod; whether nothing is left to be done for it."""
        parts = self._parts
        pod = parts.pods.get(key)
        if pod is None or pod.uid != uid or pod.node:
            parts.waiting.settled(key, uid)
            return False
        namespace, _, name = key.partition("/")
        notes = {names.ANNOTATION_NUDGE: durations.precise_moment(parts.clock.now())}
        # The uid guards against another pod of that name.
        body = {"metadata": {"uid": uid, "annotations": notes}}
        started = parts.clock.monotonic()
        try:
            await parts.client.patch(resources.PODS, name, body, namespace=namespace)
        except errors.KubeError as error:
            logger.info("pod could not be woken pod=%s error=%s", key, error)
            return False
        finally:
            self._writing += parts.clock.monotonic() - started
        logger.info("pod woken pod=%s because=%s", key, because)
        return True
