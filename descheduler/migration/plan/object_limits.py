"""How often pods of one workload or namespace are moved: a token bucket played anew. Pure.

The evictions of the past are all that it needs. They are read off the jobs, so that a new leader
goes on with the same buckets.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from descheduler.configuration.arguments import migration as arguments
from descheduler.framework.filtering import workload_replicas
from descheduler.migration.plan import conditions, facts
from descheduler.model import objects

_NOT_ACCEPTED: Final = (None, conditions.EVICTION_BEGUN, conditions.FAILED_EVICT)
KEPT: Final = 1.5
"""How many times the duration of a limit an eviction is remembered."""


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """How often a profile lets pods of one workload or namespace be moved."""

    limiters: Mapping[str, arguments.ObjectLimiter] = dataclasses.field(default_factory=dict)
    most_per_workload: int | str | None = None
    """Of a workload whose limiter has no number: `maxMigratingPerWorkload`."""

    def of_workload(self, replicas: int) -> int:
        """Return how many of so many pods may be moved within the duration; 0: not limited."""
        limiter = self.limiters.get(arguments.WORKLOAD)
        if limiter is None:
            return 0
        written = self.most_per_workload if limiter.max_migrating is None else limiter.max_migrating
        return workload_replicas.limit(replicas, written)


class Eviction(NamedTuple):
    """One pod that was evicted."""

    workload: str
    """Uid of its controller; empty where it had none."""
    namespace: str
    at: float


def evictions(jobs: Iterable[objects.Job]) -> dict[str, Eviction]:
    """Return what jobs say about evictions that were accepted, by uid of the job."""
    return {job.uid: _eviction(job) for job in jobs if _reason(job) not in _NOT_ACCEPTED}


def announced(jobs: Iterable[objects.Job]) -> dict[str, Eviction]:
    """Return the evictions that are about to be tried, by uid of the job."""
    return {job.uid: _eviction(job) for job in jobs if _reason(job) == conditions.EVICTION_BEGUN}


def _reason(job: objects.Job) -> str | None:
    told = conditions.state(job.status, conditions.EVICTION)
    return None if told is None else told.reason


def _eviction(job: objects.Job) -> Eviction:
    told = conditions.state(job.status, conditions.EVICTION)
    at = told.last_transition_time if told is not None else None
    workload = facts.workload(job)
    return Eviction(workload, job.spec.pod_ref.namespace, job.created if at is None else at)


def held_back(
    limiters: Mapping[str, arguments.ObjectLimiter],
    of: Eviction,
    most_of_workload: int,
    past: Iterable[Eviction],
) -> float:
    """Return for how many more seconds limits forbid an eviction now, 0 where they do not.

    `of` is the eviction as it would be now; `most_of_workload` is how many pods of its workload may
    be moved within the duration.
    """
    known = list(past)
    longest = 0.0
    for name, limiter in limiters.items():
        if name == arguments.WORKLOAD:
            same = [one.at for one in known if of.workload and one.workload == of.workload]
            most = most_of_workload if of.workload else 0
        else:
            same = [one.at for one in known if one.namespace == of.namespace]
            most = limiter.max_migrating if isinstance(limiter.max_migrating, int) else 0
        if most > 0 and limiter.duration > 0:
            rate = most / limiter.duration
            longest = max(longest, _missing(same, rate, limiter.burst or 1, of.at))
    return longest


def _missing(past: Iterable[float], rate: float, size: int, now: float) -> float:
    """Return how long it takes until there is a token."""
    tokens, last = float(size), None
    for at in sorted(min(one, now) for one in past):
        if last is not None:
            tokens = min(size, tokens + (at - last) * rate)
        tokens, last = tokens - 1, at
    if last is not None:
        tokens = min(size, tokens + (now - last) * rate)
    return max(0.0, (1 - tokens) / rate)


def memory_seconds(of_profiles: Iterable[Limits]) -> float:
    """Return how long evictions are remembered: the limits of any profile count those of all."""
    durations = (one.duration for each in of_profiles for one in each.limiters.values())
    return KEPT * max(durations, default=0.0)
