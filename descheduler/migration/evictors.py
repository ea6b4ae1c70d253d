"""How a pod is made to leave: by the Eviction API, by deletion, or by a note to another client."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from api import resources
from api.koordinator.metadata import annotations, payloads
from descheduler.migration.plan import facts, steps
from descheduler.model import objects, podinfo
from kube.client import client as clients
from process.runtime import clock as clocks
from process.runtime import token_bucket


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How many pods are evicted at most, of all workloads together."""

    per_second: float = 10.0
    burst: int = 1


class Evictors:
    """Evicts pods, so many per second; exactly the pod that a job means, never its successor."""

    def __init__(
        self, api: clients.Client, rules: facts.Rules, clock: clocks.Clock, pace: Pace
    ) -> None:
        self._api = api
        self._rules = rules
        self._clock = clock
        self._per_second = pace.per_second
        self._bucket = token_bucket.ClockedBucket(clock, pace.per_second, pace.burst)

    def pause(self) -> float:
        """Take a token; return 0, or how long to wait where there is none."""
        return 0.0 if self._bucket.take() else 1.0 / self._per_second

    async def evict(self, job: objects.Job, pod: podinfo.Pod, how: steps.Evict) -> None:
        """Evict a pod, or only ask whether that is allowed; what is refused is raised."""
        options = self._options(job)
        grace = options.get("gracePeriodSeconds")
        seconds = grace if isinstance(grace, int) else None
        if how.policy == facts.DELETE:
            await self._api.delete(
                resources.PODS, pod.name, pod.namespace, uid=pod.uid, grace_seconds=seconds
            )
        elif how.policy == facts.SOFT:
            await self._annotate(pod, how, options)
        else:
            await self._api.evict(
                pod.namespace,
                pod.name,
                uid=pod.uid,
                grace_seconds=seconds,
                dry_run=how.is_trial,
            )

    def _options(self, job: objects.Job) -> Mapping[str, Any]:
        written = job.spec.delete_options
        return self._rules.of(job).delete_options if written is None else written.wire()

    async def _annotate(
        self, pod: podinfo.Pod, how: steps.Evict, options: Mapping[str, Any]
    ) -> None:
        asked = payloads.SoftEviction(
            timestamp=self._clock.now(),
            delete_options=dict(options),
            initiator=how.trigger,
            reason=how.reason,
        )
        notes = annotations.SOFT_EVICTION.entry(asked)
        body = {"metadata": {"uid": pod.uid, "annotations": notes}}
        await self._api.patch(resources.PODS, pod.name, body, namespace=pod.namespace)
