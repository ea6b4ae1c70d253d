"""After the eviction: the new pod takes the Reservation and becomes ready. Pure."""

from collections.abc import Sequence

from api.koordinator import scheduling
from api.kubernetes import meta
from descheduler.migration.plan import conditions, facts, steps
from descheduler.model import objects


def planned(given: facts.Facts, now: float) -> steps.Plan | steps.Failure:
    """Plan until the new pod is ready on the reserved place."""
    held = given.reservation
    assert held is not None
    taken = new_owner(given.job, held)
    if taken is None:
        if held.raw.status.phase == scheduling.SUCCEEDED:
            return steps.Failure(
                conditions.FORBIDDEN, f"Reservation {held.name} ended without a new pod"
            )
        return _waiting(
            given,
            conditions.Change(
                conditions.POD_BOUND_RESERVATION,
                False,
                conditions.WAIT_FOR_OWNER,
                f"no pod uses Reservation {held.name} yet",
            ),
            now,
        )
    name = f"{taken.namespace}/{taken.name}"
    if not conditions.holds(given.job.status, conditions.RESERVATION_BOUND):
        message = f'Pod "{name}" uses Reservation "{held.name}"'
        change = conditions.Change(conditions.RESERVATION_BOUND, True, "", message)
        reference = {"namespace": taken.namespace, "name": taken.name, "uid": taken.uid}
        fields = conditions.changed(given.job.status, (change,), now, podRef=reference)
        return steps.Plan(message, (steps.PatchStatus(fields),))
    owner = given.owner
    if owner is not None and not owner.has_ended and not owner.ready:
        change = conditions.Change(
            conditions.BOUND_POD_READY, False, conditions.WAIT_FOR_READY, f'waits for Pod "{name}"'
        )
        return _waiting(given, change, now)
    done = (
        conditions.Change(conditions.BOUND_POD_READY, True, ""),
        conditions.Change(conditions.POD_BOUND_RESERVATION, True, ""),
    )
    node = held.raw.status.node_name
    message = f'Pod "{given.job.pod_key}" was moved to node "{node}", where it is Pod "{name}"'
    return succeeded(given, message, done, now)


def pending(given: facts.Facts, now: float) -> steps.Plan | steps.Failure:
    """Plan for a pod that had no node: it is scheduled where the Reservation is."""
    held, pod = given.reservation, given.pod
    assert held is not None
    if pod is None:
        return steps.Failure(conditions.MISSING_POD, f"pod {given.job.pod_key} is gone")
    taken = new_owner(given.job, held)
    if taken is not None and taken.uid != pod.uid:
        return steps.Failure(
            conditions.FORBIDDEN,
            f"Reservation {held.name} is bound by pod {taken.namespace}/{taken.name}",
        )
    if pod.node:
        message = f'Assign Pod "{given.job.pod_key}" to node "{pod.node}"'
        change = conditions.Change(conditions.POD_SCHEDULED, True, "", message)
        return succeeded(given, message, (change,), now)
    refused = next((one.reason for one in pod.conditions if one.kind == "PodScheduled"), "")
    change = conditions.Change(
        conditions.POD_SCHEDULED,
        False,
        conditions.UNSCHEDULABLE,
        f'Pod "{given.job.pod_key}" has no node yet{f": {refused}" if refused else ""}',
    )
    return _waiting(given, change, now)


def succeeded(
    given: facts.Facts, message: str, changes: Sequence[conditions.Change], now: float
) -> steps.Plan:
    """Plan the good end of a job."""
    ended = conditions.Change(conditions.SUCCEEDED, True, conditions.COMPLETE, message)
    fields = conditions.changed(given.job.status, (*changes, ended), now)
    fields |= {
        "phase": conditions.SUCCEEDED,
        "status": conditions.COMPLETE,
        "reason": "",
        "message": message,
    }
    told = steps.Tell(conditions.COMPLETE, message)
    return steps.Plan(message, (steps.PatchStatus(fields), told))


def new_owner(job: objects.Job, held: objects.Reservation) -> meta.ObjectReference | None:
    """Return the pod that uses a Reservation, if it is not the one that moves."""
    moved = job.spec.pod_ref.uid
    owners = held.raw.status.current_owners
    own = [one for one in owners if one.uid == moved]
    return next((one for one in owners if one.uid != moved), own[0] if own else None)


def _waiting(given: facts.Facts, change: conditions.Change, now: float) -> steps.Plan:
    message = change.message
    if conditions.says(given.job.status, change):
        return steps.Plan(message, again_in=facts.LOOK_AGAIN_SECONDS)
    fields = conditions.changed(given.job.status, (change,), now)
    return steps.Plan(message, (steps.PatchStatus(fields),), facts.LOOK_AGAIN_SECONDS)
