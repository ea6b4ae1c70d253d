"""What a PodMigrationJob does next, computed from the API objects alone. Pure.

Nothing but the objects is remembered, so that any process can go on where another one was killed.
Each plan writes the status of the job at most once; the watch brings the job back for the rest.
"""

import dataclasses

from api import names
from api.koordinator import event_reasons, migration, scheduling
from descheduler.migration.plan import (
    conditions,
    evicting,
    facts,
    gang_barrier,
    reserving,
    settling,
    steps,
    suspension,
)
from descheduler.model import objects


def planned(given: facts.Facts, rules: facts.Rules, now: float) -> steps.Plan:
    """Return the next step of a job; `now` is in seconds since the epoch."""
    job = given.job
    if job.leaves_at >= 0:
        return steps.Plan("is being deleted; its Reservation goes with it")
    if not job.is_open:
        return _ended(given)
    if job.spec.paused:
        return steps.Plan("is paused")
    stands = suspension.planned(given, now)
    if stands is not None:
        return stands
    ends = facts.deadline(given, rules)
    if ends is not None and now >= ends:
        return failure(given, conditions.TIMEOUT, _late(given, rules), now)
    plan = _open(given, rules, now)
    if ends is None:
        return plan
    again = ends - now if plan.again_in is None else min(plan.again_in, ends - now)
    return dataclasses.replace(plan, again_in=again)


def failure(
    given: facts.Facts, reason: event_reasons.Reason, message: str, now: float
) -> steps.Plan:
    """Plan the end of a job without success; its Reservation goes when the watch shows that."""
    fields = conditions.failed(given.job.status, reason, message, now)
    told = steps.Tell(reason, message, warning=True)
    return steps.Plan(f"failed: {message}", (steps.PatchStatus(fields), told))


def has_passed(job: objects.Job) -> bool:
    """Whether arbitration has let a job begin."""
    return job.annotations.get(names.ANNOTATION_PASSED_ARBITRATION) == "true"


def _ended(given: facts.Facts) -> steps.Plan:
    """Plan for a job in a phase that it never leaves: nothing stays reserved for it."""
    held, job = given.reservation, given.job
    if held is None or not facts.owns(job, held):
        return steps.Plan(f"has ended: {job.phase}")
    used_up = held.raw.status.phase in (scheduling.SUCCEEDED, scheduling.FAILED)
    if held.raw.metadata.deletion_timestamp is not None or (
        job.phase == conditions.SUCCEEDED and used_up
    ):
        return steps.Plan(f"has ended: {job.phase}")
    message = f"{job.phase}, so Reservation {held.name} is deleted"
    return steps.Plan(message, (steps.DeleteReservation(held.name, held.uid),))


def _late(given: facts.Facts, rules: facts.Rules) -> str:
    seconds = facts.ttl(given.job, rules) or 0.0
    said = given.job.status.message
    return f"not finished within {seconds:g} s{f'; the last was: {said}' if said else ''}"


def _open(given: facts.Facts, rules: facts.Rules, now: float) -> steps.Plan:
    job = given.job
    broken = gang_barrier.broken(given)
    if broken is not None:
        return _told(given, broken, now)
    if job.phase == conditions.PENDING:
        return _beginning(given, now) if has_passed(job) else steps.Plan("waits for arbitration")
    is_moving = facts.has_begun(job) or gang_barrier.moves(given)
    if given.held_back_seconds > 0 and not is_moving:
        return steps.Plan(
            "its workload or namespace was disturbed often enough of late",
            again_in=max(given.held_back_seconds, facts.LOOK_AGAIN_SECONDS),
        )
    if facts.mode(job, rules) == migration.EVICT_DIRECTLY:
        return _directly(given, rules, now)
    return _reservation_first(given, rules, now)


def _beginning(given: facts.Facts, now: float) -> steps.Plan:
    """Plan the first step: which pod exactly is meant, then the phase Running."""
    job, pod = given.job, given.pod
    named = job.spec.pod_ref
    if not (named.namespace and named.name):
        return failure(given, conditions.INVALID_POD_REF, "podRef needs namespace and name", now)
    if pod is None:
        return failure(given, conditions.MISSING_POD, f"there is no pod {job.pod_key}", now)
    if pod.leaves_at >= 0:
        return failure(given, conditions.MISSING_POD, f"pod {job.pod_key} is being deleted", now)
    if not named.uid:
        return steps.Plan(f"moves the pod with uid {pod.uid}", (steps.PatchJob(_identity(given)),))
    fields = {"phase": conditions.RUNNING}
    told = steps.Tell("Migrating", f"moves pod {job.pod_key} off node {pod.node}")
    return steps.Plan("begins", (steps.PatchStatus(fields), told))


def _identity(given: facts.Facts) -> dict[str, object]:
    pod = given.pod
    assert pod is not None
    body: dict[str, object] = {"spec": {"podRef": {"uid": pod.uid}}}
    controller = pod.controller
    if controller is not None:
        notes = {names.ANNOTATION_MIGRATION_WORKLOAD: controller.uid}
        body["metadata"] = {"annotations": notes}
    return body


def _directly(given: facts.Facts, rules: facts.Rules, now: float) -> steps.Plan:
    plan = _evicted(given, rules, now)
    if plan is not None:
        return plan
    return settling.succeeded(given, f'Pod "{given.job.pod_key}" has been evicted', (), now)


def _reservation_first(given: facts.Facts, rules: facts.Rules, now: float) -> steps.Plan:
    found = reserving.planned(given, rules, now)
    if found is not None:
        return _told(given, found, now)
    if reserving.is_for_pending_pod(given):
        return _told(given, settling.pending(given, now), now)
    plan = _evicted(given, rules, now)
    return plan if plan is not None else _told(given, settling.planned(given, now), now)


def _evicted(given: facts.Facts, rules: facts.Rules, now: float) -> steps.Plan | None:
    """Plan the eviction; None once the pod is gone."""
    found = gang_barrier.held_up(given, rules) or evicting.planned(given, rules, now)
    return None if found is None else _told(given, found, now)


def _told(given: facts.Facts, found: steps.Plan | steps.Failure, now: float) -> steps.Plan:
    if isinstance(found, steps.Failure):
        return failure(given, found.reason, found.message, now)
    return found
