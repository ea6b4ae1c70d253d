"""Which waiting jobs may begin: in an order, within limits, groups as a whole. Pure."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from descheduler.framework import protocols
from descheduler.framework.filtering import open_jobs
from descheduler.framework.pods import pod_order
from descheduler.migration.plan import conditions, facts, gang_barrier, job_plan
from descheduler.model import objects, picture, podinfo
from domain import wording

_BATCH_JOB: Final = "Job"


class Checks(Protocol):
    """Who may be migrated, as the profile says that a job names."""

    def permanent_refusal(self, profile: str, pod: podinfo.Pod) -> str:
        """Return why a pod may not move at all, empty where it may."""

    def present_refusal(
        self,
        profile: str,
        pod: podinfo.Pod,
        migrating: protocols.Migrating,
        along: protocols.Migrating,
    ) -> str:
        """Return what does not let a pod move now; `along` has the pods of its group as well."""


@dataclasses.dataclass(frozen=True, slots=True)
class Arbitration:
    """What became of the jobs that waited, by name."""

    passed: tuple[str, ...] = ()
    failed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Why they can never run."""
    waiting: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Why they do not run yet."""


def is_waiting(job: objects.Job) -> bool:
    """Whether arbitration decides about a job: it is new, and nothing holds it up."""
    is_new = job.phase == conditions.PENDING and not job_plan.has_passed(job)
    return is_new and job.leaves_at < 0 and not job.spec.paused


def counts(job: objects.Job) -> bool:
    """Whether a job takes part of the limits: it is open and was let through."""
    return job.is_open and (job.phase == conditions.RUNNING or job_plan.has_passed(job))


@dataclasses.dataclass(frozen=True, slots=True)
class _Unit:
    """Jobs that pass or wait together, with those of their pods that are there.

    A job without a pod passes, and fails for that reason at its first step.
    """

    jobs: Sequence[objects.Job]
    pods: Mapping[str, podinfo.Pod]

    def moved(self) -> Iterator[tuple[objects.Job, podinfo.Pod]]:
        """Yield the jobs whose pods are there, with these."""
        return ((job, self.pods[job.name]) for job in self.jobs if job.name in self.pods)


class _Counted:
    """The jobs that take part of the limits, and the pods that they move."""

    def __init__(self, seen: picture.Picture, jobs: Sequence[objects.Job]) -> None:
        self._seen, self._jobs = seen, list(jobs)
        self._migrating = open_jobs.OpenJobs(seen, jobs)
        self._along: open_jobs.OpenJobs | None = None
        """All of them, for the jobs of groups."""
        self._of_group: dict[str, list[objects.Job]] = {}
        for job in jobs:
            self._of_group.setdefault(gang_barrier.group(job), []).append(job)

    def add(self, unit: _Unit) -> None:
        """Count jobs that pass."""
        for pod in unit.pods.values():
            self._migrating.add(pod)
        for job in unit.jobs:
            self._jobs.append(job)
            if self._along is not None:
                self._along.put(job)

    def refusal(self, unit: _Unit, checks: Checks) -> str:
        """Return why these jobs do not begin yet; those of one group do not stand in its way."""
        first, migrating = unit.jobs[0], self._migrating
        group = gang_barrier.group(first)
        if not group:
            return _first_refusal(unit, checks, migrating, migrating)
        mine = self._of_group.get(group, ())
        there = len(unit.jobs) + len(mine)
        if there < gang_barrier.size(first):
            jobs = wording.count(gang_barrier.size(first), "job", "jobs")
            return f"{there} of {jobs} of its group {wording.form(there, 'is', 'are')} there"
        if self._along is None:
            self._along = open_jobs.OpenJobs(self._seen, self._jobs)
        with self._along.changed(more=unit.jobs), migrating.changed(fewer=mine):
            return _first_refusal(unit, checks, migrating, self._along)


def _first_refusal(
    unit: _Unit, checks: Checks, migrating: open_jobs.OpenJobs, along: open_jobs.OpenJobs
) -> str:
    found = (
        checks.present_refusal(facts.profile(job), pod, migrating, along)
        for job, pod in unit.moved()
    )
    return next(filter(None, found), "")


def arbitrated(
    seen: picture.Picture, pods: Mapping[str, podinfo.Pod], checks: Checks
) -> Arbitration:
    """Decide about all waiting jobs of a picture; `pods` are the pods of jobs, by job.

    A job that passes counts in the limits of those after it.
    """
    waiting = [job for job in seen.jobs.values() if is_waiting(job)]
    counting = [job for job in seen.jobs.values() if counts(job)]
    counted = _Counted(seen, counting)
    passed: list[str] = []
    failed: dict[str, str] = {}
    held: dict[str, str] = {}
    for unit in _units(ordered(waiting, pods, counting), seen.jobs):
        found = _Unit(unit, {job.name: pods[job.name] for job in unit if job.name in pods})
        never = {
            job.name: checks.permanent_refusal(facts.profile(job), pod)
            for job, pod in found.moved()
        }
        if any(never.values()):
            failed |= {name: why for name, why in never.items() if why}
            continue
        if why := counted.refusal(found, checks):
            held |= dict.fromkeys((job.name for job in unit), why)
            continue
        counted.add(found)
        passed += [job.name for job in unit]
    return Arbitration(tuple(passed), failed, held)


def ordered(
    waiting: Iterable[objects.Job],
    pods: Mapping[str, podinfo.Pod],
    counted: Iterable[objects.Job],
) -> list[objects.Job]:
    """Return jobs in the order in which they are decided about.

    Those of batch Jobs with the most moving pods come first, so that a Job that was begun is
    finished; the others in the order in which their pods would leave a node, and the newest first
    among those without a pod.
    """
    by_pod = sorted(
        waiting,
        key=lambda job: (
            (1, pod_order.key(pods[job.name])) if job.name in pods else (0, ()),
            -job.created,
            job.name,
        ),
    )
    moving: dict[str, int] = {}
    for job in counted:
        batch = _batch(pods.get(job.name))
        if batch:
            moving[batch] = moving.get(batch, 0) + 1
    ranks: dict[str, int] = {}
    for rank, job in enumerate(by_pod):
        ranks.setdefault(_batch(pods.get(job.name)) or job.uid, rank)

    def place(job: objects.Job) -> tuple[int, int]:
        batch = _batch(pods.get(job.name))
        return -moving.get(batch, 0), ranks[batch or job.uid]

    return sorted(by_pod, key=place)


def _batch(pod: podinfo.Pod | None) -> str:
    controller = pod.controller if pod is not None else None
    return controller.uid if controller is not None and controller.kind == _BATCH_JOB else ""


def _units(
    jobs: Iterable[objects.Job], every: Mapping[str, objects.Job]
) -> Iterator[Sequence[objects.Job]]:
    """Yield what passes or waits together: a job, or all waiting jobs of a group at its first."""
    by_group: dict[str, list[objects.Job]] = {}
    for job in every.values():
        group = gang_barrier.group(job)
        if group and is_waiting(job):
            by_group.setdefault(group, []).append(job)
    for job in jobs:
        group = gang_barrier.group(job)
        if not group:
            yield (job,)
        elif group in by_group:
            yield by_group.pop(group)
