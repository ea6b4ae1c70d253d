"""Metrics of migration: jobs by phase, how long they take, and evictions by result."""

import collections
import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Final

from descheduler.migration.plan import conditions, facts
from descheduler.model import objects, podinfo
from process.runtime import clock as clocks
from process.runtime import metrics

_PHASES: Final = (
    conditions.PENDING,
    conditions.RUNNING,
    conditions.SUCCEEDED,
    conditions.FAILED,
    conditions.ABORTED,
)
_FINAL: Final = (conditions.SUCCEEDED, conditions.FAILED)
_MODES: Final = ("ReservationFirst", "EvictDirectly")
_BUCKETS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0)


class JobMetrics:
    """What the leader has done, and what every replica sees."""

    def __init__(self, registry: metrics.Registry, rules: facts.Rules, clock: clocks.Clock) -> None:
        self._rules = rules
        self._clock = clock
        self._pods = metrics.LabelValues()
        self._evicted = registry.counter(
            "koord_descheduler_pods_evicted_total",
            "Evictions by result; strategy is the plug-in that wanted the pod to leave.",
            ("result", "strategy", "namespace", "node"),
        )
        self._seconds = registry.histogram(
            "koord_migration_seconds",
            "Time from the creation of a job to its end.",
            ("mode", "phase"),
            buckets=_BUCKETS,
        )
        for mode, phase in itertools.product(_MODES, _FINAL):
            # From the start, or the first job of each would not count in a rate.
            self._seconds.labels(mode, phase)
        self._ended = registry.counter(
            "koord_migration_ended_total",
            "Jobs that ended, by phase and reason.",
            ("phase", "reason"),
            known=((conditions.SUCCEEDED, conditions.COMPLETE),),
        )
        self._jobs = registry.table(
            "koord_migration_jobs", "Jobs by phase and mode.", ("phase", "mode")
        )

    def count(self, jobs: Iterable[objects.Job]) -> None:
        """Export how many jobs there are of each phase and mode."""
        found: collections.Counter[tuple[str, ...]] = collections.Counter(
            {(phase, mode): 0 for phase in _PHASES for mode in _MODES}
        )
        for job in jobs:
            phase, mode = job.phase, facts.mode(job, self._rules)
            # Both are free text for those that may write them: unknown words add no series.
            if phase in _PHASES and mode in _MODES:
                found[phase, mode] += 1
        self._jobs.replace(found)

    def progressed(self, job: objects.Job, fields: Mapping[str, Any]) -> None:
        """Count a job that has just ended."""
        phase = fields.get("phase")
        if phase not in _FINAL:
            return
        mode = facts.mode(job, self._rules)
        self._ended.labels(phase, fields.get("reason") or conditions.COMPLETE).inc()
        self._seconds.labels(mode if mode in _MODES else "", phase).observe(
            max(0.0, self._clock.now() - job.created)
        )

    def evicted(self, result: str, strategy: str, pod: podinfo.Pod) -> None:
        """Count an eviction that was accepted or refused."""
        self._evicted.labels(result, *self._pods.of(strategy, pod.namespace, pod.node)).inc()
