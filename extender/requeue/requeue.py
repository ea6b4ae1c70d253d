"""Wakes waiting pods that a change of ours lets fit, by a changed annotation of the pod.

kube-scheduler tries a pod again that an extender refused when something it watches changes; load
reports and strategies are not among that. Only pods that some node would take now are touched,
the oldest first, once after each attempt, and at a limited rate.
"""

import dataclasses
import logging
from collections.abc import Callable

from api import names, resources
from api.wire import durations
from extender.framework import pipeline
from extender.requeue import queueing_hints, token_bucket, unschedulable_pods
from extender.settings import NudgeSettings
from extender.state import ledger, records
from kube.client import client as clients
from kube.client import errors
from kube.informers import store
from process.runtime import clock as clocks
from process.runtime import metrics

logger = logging.getLogger(__name__)

_TICK_SECONDS = 1.0
_LONGEST_TICK_SECONDS = 10.0
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
        changes = queueing_hints.Changes()
        parts.books.cluster.followers.append(changes.follow)
        self._judgements = queueing_hints.Judgements(changes)
        self._bucket = token_bucket.Bucket(settings.per_second, settings.burst)
        self._nudges = registry.counter(
            "koord_extender_nudges_total", "Waiting pods woken, by what changed.", ("because",)
        )
        registry.gauge(
            "koord_extender_waiting_pods", "Pods that every node refused when last tried."
        ).set_function(lambda: len(parts.waiting))

    async def run(self) -> None:
        """Look for ever; changes within one tick are looked at together."""
        clock, taken = self._parts.clock, 0.0
        while True:
            # However many wait, looking takes a tenth of the time at most.
            await clock.sleep(min(max(_TICK_SECONDS, 10 * taken), _LONGEST_TICK_SECONDS))
            started = clock.monotonic()
            if self._settings.enabled:
                await self.once()
            taken = clock.monotonic() - started

    async def once(self) -> None:
        """Wake who fits now, as far as the rate allows."""
        parts = self._parts
        if not len(parts.waiting):
            # While the cluster is being listed, looking at it would compute all of it in one go.
            await self._preemptors()
            return
        looks = self._looks()
        for number, waiter in enumerate(parts.waiting, start=1):
            if number % _SLICE == 0:
                await parts.clock.sleep(0)
                looks = self._looks()
            now = parts.clock.now()
            if waiter.woken():
                continue
            node = looks.node_for(waiter)
            since = (waiter.fits_since or now) if node else 0.0
            fitting = parts.waiting.fits(waiter, since)
            if not node or not queueing_hints.is_due(fitting, self._settings.pause_seconds, now):
                continue
            if not self._bucket.take(parts.clock.monotonic()):
                return
            if await self._wake(waiter.request.key, waiter.request.uid, f"{node} would take it"):
                parts.waiting.woken(fitting, parts.clock.now())
                parts.waiting.served(waiter.request.key)
                self._nudges.labels("fits").inc()
            looks = self._looks()
        await self._preemptors()

    def _looks(self) -> queueing_hints.Looks:
        parts = self._parts
        return queueing_hints.Looks(
            parts.plugins, parts.books.cluster, parts.clock.now(), self._judgements
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
        try:
            await parts.client.patch(resources.PODS, name, body, namespace=namespace)
        except errors.KubeError as error:
            logger.info("pod could not be woken pod=%s error=%s", key, error)
            return False
        logger.info("pod woken pod=%s because=%s", key, because)
        return True
