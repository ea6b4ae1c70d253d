"""Gathers what a job is decided on: from the watches, and from the API server where they lag."""

import dataclasses
from collections.abc import Callable

from api.koordinator import scheduling
from api.kubernetes import meta
from descheduler.migration import reads, stores, turns
from descheduler.migration.plan import conditions, facts, gang_barrier, reserving, settling
from descheduler.model import objects, podinfo

HeldBack = Callable[[objects.Job, podinfo.Pod], float]
"""For how many more seconds limits forbid to evict this pod."""


class JobFacts:
    """Gathers facts.

    Watches of several kinds tell of changes in any order: a job may be known before its pod. So
    what ends a job by its absence is absent only where the API server says so.
    """

    def __init__(
        self, seen: stores.Stores, read: reads.Reads, held_back: HeldBack, turn: turns.Turns
    ) -> None:
        self._seen = seen
        self._turns = turn
        self._read = read
        self._held_back = held_back

    async def of(self, job: objects.Job) -> facts.Facts:
        """Return the facts about a job as far as they are known now."""
        if not job.is_open:
            return facts.Facts(job, reservation=self._seen.reservation(job))
        held = await self._reservation(job)
        pod = await self._pod(job, held)
        members, budgets = self._group(job)
        return facts.Facts(
            job,
            pod=pod,
            reservation=held,
            owner=await self._owner(job, held),
            group=members,
            budgets=budgets,
            ahead=self._turns.ahead(job),
            held_back_seconds=self._held_back(job, pod) if pod is not None else 0.0,
        )

    async def confirmed(self, given: facts.Facts) -> facts.Facts:
        """Return the facts with all jobs of the group read anew, and none whose place is lost."""
        members = []
        for member in given.group:
            job = await self._read.job(member.job.name)
            if job is None:
                continue
            found = facts.Member(job, member.pod)
            if gang_barrier.is_on_its_way(found) or await self._has_place(job):
                members.append(found)
        return dataclasses.replace(given, group=tuple(members))

    async def _has_place(self, job: objects.Job) -> bool:
        """Whether the Reservation of a job may still be used, where one is still to be used."""
        named = reserving.reference(job)
        if named is None or not job.is_open:
            return True
        held = await self._read.reservation(named.name)
        return held is not None and reserving.may_be_used(job, held)

    async def _pod(self, job: objects.Job, held: objects.Reservation | None) -> podinfo.Pod | None:
        """Return the pod that moves; None where it is gone or another one has its name."""
        wanted, found = job.spec.pod_ref, self._seen.pods.get(job.pod_key)
        is_known = found is not None and wanted.uid in ("", found.uid)
        if is_known and not _is_doubtful(job, held):
            return found
        if conditions.holds(job.status, conditions.EVICTION):
            return None
        found = await self._read.pod(wanted.namespace, wanted.name)
        return found if found is not None and wanted.uid in ("", found.uid) else None

    async def _reservation(self, job: objects.Job) -> objects.Reservation | None:
        found, named = self._seen.reservation(job), reserving.reference(job)
        if found is not None or named is None:
            return found
        return await self._read.reservation(named.name)

    async def _owner(
        self, job: objects.Job, held: objects.Reservation | None
    ) -> podinfo.Pod | None:
        """Return the pod that uses the Reservation; None where there is none, or it is gone."""
        named = settling.new_owner(job, held) if held is not None else None
        return None if named is None else await self._named(named)

    async def _named(self, named: meta.ObjectReference) -> podinfo.Pod | None:
        found = self._seen.pods.get(f"{named.namespace}/{named.name}")
        if found is None or found.uid != named.uid:
            found = await self._read.pod(named.namespace, named.name)
        return found if found is not None and found.uid == named.uid else None

    def _group(
        self, job: objects.Job
    ) -> tuple[tuple[facts.Member, ...], tuple[objects.Budget, ...]]:
        if not gang_barrier.group(job):
            return (), ()
        members = tuple(
            facts.Member(one, self._seen.pods.get(one.pod_key)) for one in self._seen.group(job)
        )
        namespaces = sorted({one.job.spec.pod_ref.namespace for one in members})
        budgets = (budget for name in namespaces for budget in self._seen.budgets_of(name))
        return members, tuple(budgets)


def _is_doubtful(job: objects.Job, held: objects.Reservation | None) -> bool:
    """Whether the pod may be gone although the watch still shows it.

    Its eviction was announced and never told to be accepted, and a pod uses the Reservation: that
    is its successor, or another one was faster.
    """
    is_used = held is not None and held.raw.status.phase == scheduling.SUCCEEDED
    return is_used and facts.has_begun(job) and not facts.was_accepted(job)
