"""What was evicted of late, for the limits of workloads and namespaces."""

from collections.abc import Callable, Mapping
from typing import Final

from api import names
from descheduler.configuration import by_profile
from descheduler.migration import stores
from descheduler.migration.plan import facts, gang_barrier, object_limits
from descheduler.model import objects, podinfo
from process.runtime import clock as clocks

_ECHO_SECONDS: Final = 10.0
"""How long the watch may take to show that an eviction was announced."""
Replicas = Callable[[str], int]
"""How many pods the workload with this uid should have; 0 where it is not known."""


class EvictionHistory:
    """Remembers evictions for longer than their jobs exist, and learns from those at the start."""

    def __init__(
        self,
        seen: stores.Stores,
        limits: by_profile.ByProfile[object_limits.Limits],
        replicas: Replicas,
        clock: clocks.Clock,
    ) -> None:
        self._seen = seen
        self._limits = limits
        self._memory_seconds = object_limits.memory_seconds(limits.all())
        self._replicas = replicas
        self._clock = clock
        self._kept: dict[str, object_limits.Eviction] = {}
        """By uid of the job."""
        self._begun: dict[str, tuple[object_limits.Eviction, float]] = {}
        """The same of evictions announced a moment ago, and until when that may not be seen."""

    def begins(self, job: objects.Job) -> None:
        """Count an eviction that is announced now; pods of a group leave whatever others do."""
        if gang_barrier.group(job) or not self._memory_seconds:
            return
        pod = job.spec.pod_ref
        one = object_limits.Eviction(facts.workload(job), pod.namespace, self._clock.now())
        self._begun[job.uid] = one, self._clock.monotonic() + _ECHO_SECONDS

    def held_back(self, job: objects.Job, pod: podinfo.Pod) -> float:
        """Return for how many more seconds the limits of its profile forbid to evict a pod now.

        They count the evictions of all profiles.
        """
        if not self._memory_seconds:
            return 0.0
        known = self._known()
        if names.ANNOTATION_FORCE_EVICT in job.annotations:
            return 0.0
        limits = self._limits.of(facts.profile(job))
        controller = pod.controller
        workload = controller.uid if controller is not None else ""
        now = object_limits.Eviction(workload, pod.namespace, self._clock.now())
        most = limits.of_workload(self._replicas(workload)) if workload else 0
        past = [one for uid, one in known.items() if uid != job.uid]
        return object_limits.held_back(limits.limiters, now, most, past)

    def _known(self) -> Mapping[str, object_limits.Eviction]:
        oldest = self._clock.now() - self._memory_seconds
        for uid, one in object_limits.evictions(self._seen.jobs).items():
            self._kept.setdefault(uid, one)
        self._kept = {uid: one for uid, one in self._kept.items() if one.at >= oldest}
        now = self._clock.monotonic()
        self._begun = {uid: one for uid, one in self._begun.items() if one[1] > now}
        begun = {uid: one for uid, (one, _) in self._begun.items()}
        return {**begun, **object_limits.announced(self._seen.jobs), **self._kept}
