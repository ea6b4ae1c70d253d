"""Taking a drain back: which of its jobs end, and which go on since their pods leave. Pure."""

import collections
import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from descheduler.migration.plan import conditions, facts, gang_barrier
from descheduler.model import objects, podinfo
from domain import wording

_MOST: Final = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """The open jobs of a drain."""

    ends: Sequence[objects.Job] = ()
    """Nothing of them has left."""
    undecided: Sequence[objects.Job] = ()
    """The same, but an eviction has been announced, and may be accepted at this moment."""
    goes_on: Sequence[objects.Job] = ()
    """Their pods, or pods of their groups, are leaving or have left."""


def needs_pod(job: objects.Job) -> bool:
    """Whether its pod alone tells if a job has evicted it."""
    return facts.has_begun(job) and not facts.was_accepted(job)


def judged(jobs: Collection[objects.Job], pods: Mapping[str, podinfo.Pod | None]) -> Judged:
    """Return which jobs may end; `pods` has, by name of the job, those that are needed."""
    left = {job.name for job in jobs if facts.may_have_left(job, pods.get(job.name))}
    moving = {gang_barrier.group(job) for job in jobs if job.name in left} - {""}
    announced = {_unit(job) for job in jobs if job.is_open and _is_announced(job)}
    ends: list[objects.Job] = []
    undecided: list[objects.Job] = []
    goes_on: list[objects.Job] = []
    for job in jobs:
        if not job.is_open or job.leaves_at >= 0:
            continue
        if job.name in left or gang_barrier.group(job) in moving:
            goes_on.append(job)
        elif _unit(job) in announced:
            undecided.append(job)
        else:
            ends.append(job)
    return Judged(ends, undecided, goes_on)


def lines(goes_on: Sequence[objects.Job]) -> Iterator[str]:
    """Yield which moves go on and why."""
    by_group: dict[str, list[str]] = collections.defaultdict(list)
    for job in goes_on:
        by_group[gang_barrier.group(job)].append(job.pod_key)
    for group, keys in sorted(by_group.items()):
        moves = wording.count(len(keys), "move goes on", "moves go on")
        if group:
            gang = group.partition("@")[0]
            why = f"since a pod of gang {gang} is leaving already, which moves as a whole"
        else:
            why = f"since {wording.form(len(keys), 'its pod is', 'their pods are')} leaving already"
        more = f" and {len(keys) - _MOST} more" if len(keys) > _MOST else ""
        yield f"{moves}, {why}: {', '.join(sorted(keys)[:_MOST])}{more}"


def _unit(job: objects.Job) -> tuple[str, str]:
    """Return what ends as a whole: a group, or a job that is in none."""
    group = gang_barrier.group(job)
    return (group, "") if group else ("", job.name)


def _is_announced(job: objects.Job) -> bool:
    told = conditions.state(job.status, conditions.EVICTION)
    return told is not None and told.reason == conditions.EVICTION_BEGUN
