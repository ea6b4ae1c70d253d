"""The Reservation of a job: created, placed on another node, or not to be had. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from api import names, resources
from api.koordinator import scheduling
from api.kubernetes import meta
from descheduler.migration.plan import conditions, facts, gang_barrier, steps
from descheduler.model import objects
from domain.reservations import conditions as reserved

_UNPLACED: Final = ("", scheduling.PENDING)
_AGAIN_SECONDS: Final = 10.0
"""Pause before a Reservation is created again that the API server has refused."""


def planned(
    given: facts.Facts, rules: facts.Rules, now: float
) -> steps.Plan | steps.Failure | None:
    """Plan until the Reservation has a node; None: it has one, and the pod may be evicted."""
    job, held = given.job, given.reservation
    named = reference(job)
    if named is None:
        return _creation(given)
    if held is None or named.uid not in ("", held.uid):
        return steps.Failure(
            conditions.MISSING_RESERVATION, f"there is no Reservation {named.name} any more"
        )
    if names.LABEL_RESERVATION_ORDER not in held.labels:
        labels = {names.LABEL_RESERVATION_ORDER: str(int(now * 1000))}
        patch = steps.PatchReservation(held.name, held.uid, {"metadata": {"labels": labels}})
        return steps.Plan(f"puts Reservation {held.name} in order", (patch,))
    if not conditions.holds(job.status, conditions.RESERVATION_CREATED):
        change = conditions.Change(
            conditions.RESERVATION_CREATED, True, "", f"Reservation {held.name} is there"
        )
        return _write(given, change, now)
    unplaced = _unplaced(given, held, rules, now)
    return _placed(given, held, now) if unplaced is None else unplaced


def reference(job: objects.Job) -> meta.ObjectReference | None:
    """Return which Reservation a job names, none before one was created."""
    options = job.spec.reservation_options
    named = options.reservation_ref if options is not None else None
    return named if named is not None and named.name else None


def expected_name(job: objects.Job) -> str:
    """Return under which name the Reservation of a job is created."""
    options = job.spec.reservation_options
    template = options.template if options is not None else None
    metadata = template.get("metadata") if template is not None else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) and name else job.uid


def referenced(job: objects.Job, found: objects.Reservation) -> steps.Plan | steps.Failure:
    """Plan to name the Reservation that was created, or that was there under its name."""
    if not facts.owns(job, found):
        return steps.Failure(
            conditions.FAILED_CREATE_RESERVATION,
            f"Reservation {found.name} exists and was not made for this job; name it in "
            "spec.reservationOptions.reservationRef to use it, or choose another name",
        )
    kind = resources.RESERVATIONS
    named = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": found.name,
        "uid": found.uid,
    }
    body = {"spec": {"reservationOptions": {"reservationRef": named}}}
    return steps.Plan(f"uses Reservation {found.name}", (steps.PatchJob(body),))


def not_created(given: facts.Facts, why: str, now: float) -> steps.Plan:
    """Plan what is said where the Reservation could not be created for now."""
    change = conditions.Change(
        conditions.RESERVATION_CREATED, False, conditions.FAILED_CREATE_RESERVATION, why
    )
    if conditions.says(given.job.status, change):
        return steps.Plan(why, again_in=_AGAIN_SECONDS)
    plan = _write(given, change, now)
    told = steps.Tell(conditions.FAILED_CREATE_RESERVATION, why, warning=True)
    return steps.Plan(why, (*plan.steps, told), _AGAIN_SECONDS)


def may_be_used(job: objects.Job, held: objects.Reservation) -> bool:
    """Whether a Reservation keeps a place for the pod of a job at this moment."""
    named, status = reference(job), held.raw.status
    return (
        named is not None
        and named.uid in ("", held.uid)
        and status.phase == scheduling.AVAILABLE
        and bool(status.node_name)
        and held.raw.metadata.deletion_timestamp is None
    )


def is_kept(given: facts.Facts, held: objects.Reservation) -> bool:
    """Whether the pod of a job may still leave: a place is kept for it, or for its group."""
    is_used = held.raw.status.phase == scheduling.SUCCEEDED
    return may_be_used(given.job, held) or (is_used and gang_barrier.moves(given))


def is_for_pending_pod(given: facts.Facts) -> bool:
    """Whether the Reservation is for this very pod, which had no node when it was made."""
    held = given.reservation
    owners = () if held is None else held.raw.spec.owners
    return bool(owners) and all(
        one.object is not None
        and bool(one.object.uid)
        and one.controller is None
        and one.label_selector is None
        for one in owners
    )


def _creation(given: facts.Facts) -> steps.Plan | steps.Failure:
    if given.pod is None:
        return steps.Failure(conditions.MISSING_POD, f"pod {given.job.pod_key} is gone")
    if given.reservation is not None:
        return referenced(given.job, given.reservation)
    return steps.Plan("creates its Reservation", (steps.CreateReservation(),))


def _unplaced(
    given: facts.Facts, held: objects.Reservation, rules: facts.Rules, now: float
) -> steps.Plan | steps.Failure | None:
    """Plan for a Reservation without a node, or one that has ended; None: pods may use it."""
    status, name = held.raw.status, held.name
    if status.phase == scheduling.FAILED:
        ready = meta.condition(status.conditions, reserved.READY)
        why = ready.message if ready is not None else ""
        if ready is None or ready.reason == reserved.EXPIRED:
            return steps.Failure(
                conditions.RESERVATION_EXPIRED, f"Reservation {name} has ended: {why}"
            )
        return steps.Failure(conditions.UNSCHEDULABLE, f"Reservation {name} failed: {why}")
    if status.phase == scheduling.SUCCEEDED:
        if _may_have_been_used(given):
            return None
        return steps.Failure(
            conditions.FORBIDDEN, f"Reservation {name} is already bound by another Pod"
        )
    scheduled = meta.condition(status.conditions, reserved.SCHEDULED)
    refused = scheduled is not None and scheduled.status == "False"
    if refused and not conditions.holds(given.job.status, conditions.RESERVATION_SCHEDULED):
        assert scheduled is not None
        return _unschedulable(given, scheduled, rules, now)
    if status.phase in _UNPLACED or not status.node_name:
        return steps.Plan(f"Reservation {name} waits for a node", again_in=facts.LOOK_AGAIN_SECONDS)
    if status.phase != scheduling.AVAILABLE:
        return steps.Plan(
            f"Reservation {name} is {status.phase}", again_in=facts.LOOK_AGAIN_SECONDS
        )
    return None


def _may_have_been_used(given: facts.Facts) -> bool:
    """Whether a Reservation that a pod uses does not speak against the move.

    The new pod of another job may have taken the place while their group is on its way. Then a
    place of the group is left for this pod, which has to follow.
    """
    if gang_barrier.moves(given) or is_for_pending_pod(given):
        return True
    return facts.may_have_left(given.job, given.pod)


def _unschedulable(
    given: facts.Facts, scheduled: meta.LooseCondition, rules: facts.Rules, now: float
) -> steps.Plan | steps.Failure:
    """Plan for a Reservation that finds no node; one that may go to one node only is given up."""
    change = conditions.Change(
        conditions.RESERVATION_SCHEDULED, False, conditions.UNSCHEDULABLE, scheduled.message
    )
    told = conditions.state(given.job.status, conditions.RESERVATION_SCHEDULED)
    since = now if told is None or told.last_transition_time is None else told.last_transition_time
    target = given.job.annotations.get(names.ANNOTATION_MIGRATION_TARGET, "")
    if target and now - since >= rules.patience_seconds:
        return steps.Failure(
            conditions.UNSCHEDULABLE, f"node {target} does not take it: {scheduled.message}"
        )
    if conditions.says(given.job.status, change):
        left = since + rules.patience_seconds - now if target else None
        return steps.Plan(f"unschedulable: {scheduled.message}", again_in=left)
    plan = _write(given, change, now)
    event = steps.Tell(conditions.UNSCHEDULABLE, scheduled.message, warning=True)
    return steps.Plan(plan.message, (*plan.steps, event))


def _placed(
    given: facts.Facts, held: objects.Reservation, now: float
) -> steps.Plan | steps.Failure | None:
    node = held.raw.status.node_name
    stays = given.pod is not None and given.pod.node == node
    if stays and not facts.has_begun(given.job) and not is_for_pending_pod(given):
        return steps.Failure(
            conditions.FORBIDDEN, f"Reservation {held.name} is on the node of the pod, {node}"
        )
    if conditions.holds(given.job.status, conditions.RESERVATION_SCHEDULED):
        return None
    message = f'Reservation "{held.name}" is on node "{node}"'
    change = conditions.Change(conditions.RESERVATION_SCHEDULED, True, "", message)
    return _write(given, change, now, nodeName=node)


def _write(given: facts.Facts, change: conditions.Change, now: float, **more: Any) -> steps.Plan:
    fields = conditions.changed(given.job.status, (change,), now, **more)
    return steps.Plan(change.message, (steps.PatchStatus(fields),))
