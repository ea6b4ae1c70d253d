"""Phases, conditions and reasons of a PodMigrationJob, and the status that they add up to. Pure."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from api.koordinator import migration
from api.kubernetes import meta
from domain.reservations import conditions

PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
"""A phase, and the type of the condition that says how a job has ended."""
FAILED: Final = "Failed"
ABORTED: Final = "Aborted"
"""Set by people alone; the controller never writes it."""
COMPLETE: Final = "Complete"
"""`status.status` of a job that has succeeded."""

# Types of conditions.
RESERVATION_CREATED: Final = "ReservationCreated"
RESERVATION_SCHEDULED: Final = "ReservationScheduled"
EVICTION: Final = "Eviction"
POD_SCHEDULED: Final = "PodScheduled"
POD_BOUND_RESERVATION: Final = "PodBoundReservation"
RESERVATION_BOUND: Final = "ReservationBound"
BOUND_POD_READY: Final = "BoundPodReady"
SUSPENDED: Final = "Suspended"
"""Ours: the live switch lets no pod move; the ttl counts from the moment at which this ends."""

# Reasons.
TIMEOUT: Final = "Timeout"
FAILED_CREATE_RESERVATION: Final = "FailedCreateReservation"
RESERVATION_EXPIRED: Final = "ReservationExpired"
UNSCHEDULABLE: Final = "Unschedulable"
FORBIDDEN: Final = "ForbiddenMigratePod"
MISSING_POD: Final = "MissingPod"
MISSING_RESERVATION: Final = "MissingReservation"
INVALID_POD_REF: Final = "InvalidPodRef"
EVICTION_BEGUN: Final = "EvictionBegun"
"""Ours: written before the pod is evicted, so that the next leader knows that it may be gone."""
EVICTING: Final = "Evicting"
FAILED_EVICT: Final = "FailedEvict"
EVICT_COMPLETE: Final = "EvictComplete"
WAIT_FOR_OWNER: Final = "WaitForPodBindReservation"
WAIT_FOR_READY: Final = "WaitForBoundPodReady"
WAIT_FOR_ARBITRATION: Final = "WaitForArbitration"
"""Ours, of a Pending job: the message says which limit does not let it begin."""
SWITCHED_OFF: Final = "SwitchedOff"
RESUMED: Final = "Resumed"
GROUP_FAILED: Final = "GroupFailed"
"""Ours: another pod that had to move together with this one cannot."""

_LONGEST: Final = 1024
"""Characters of a message."""


class Change(NamedTuple):
    """A condition as it should be from now on."""

    kind: str
    is_true: bool
    reason: str
    message: str = ""


def state(status: migration.Status, kind: str) -> meta.LooseCondition | None:
    """Return the condition of this type."""
    return meta.condition(status.conditions, kind)


def holds(status: migration.Status, kind: str) -> bool:
    """Whether the condition of this type is true."""
    found = state(status, kind)
    return found is not None and found.status == "True"


def told_at(status: migration.Status, kind: str) -> float | None:
    """Return when the condition of this type was written last."""
    found = state(status, kind)
    return None if found is None else found.last_probe_time


def says(status: migration.Status, change: Change) -> bool:
    """Whether a condition says that already, in the same words."""
    found = state(status, change.kind)
    if found is None:
        return False
    wanted = ("True" if change.is_true else "False", change.reason, change.message[:_LONGEST])
    return (found.status, found.reason, found.message) == wanted


def changed(
    status: migration.Status, changes: Iterable[Change], now: float, **more: Any
) -> dict[str, Any]:
    """Return the fields of the status that a change of conditions sets; `more` sets others.

    The last change is what `status`, `reason` and `message` repeat, unless `more` names them.
    """
    conditions_now, last = list(status.conditions), None
    for change in changes:
        written = _condition(conditions_now, change, now)
        kept = [one for one in conditions_now if one.type != change.kind]
        conditions_now, last = [*kept, written], change
    fields: dict[str, Any] = {"conditions": [conditions.written(one) for one in conditions_now]}
    if last is not None:
        fields |= {
            "status": last.kind,
            "reason": last.reason,
            "message": last.message[:_LONGEST],
        }
    return {**fields, **more}


def failed(status: migration.Status, reason: str, message: str, now: float) -> dict[str, Any]:
    """Return the fields of the status of a job that ends without success."""
    ended = changed(status, (Change(SUCCEEDED, False, reason, message),), now)
    words = {"reason": reason, "message": message[:_LONGEST]}
    return {"phase": FAILED, "conditions": ended["conditions"], **words}


def _condition(
    present: Iterable[meta.LooseCondition], change: Change, now: float
) -> meta.LooseCondition:
    before = meta.condition(present, change.kind)
    word = "True" if change.is_true else "False"
    since_then = now
    if before is not None and before.status == word and before.last_transition_time is not None:
        since_then = before.last_transition_time
    return meta.LooseCondition(
        type=change.kind,
        status=word,
        reason=change.reason,
        message=change.message[:_LONGEST],
        last_probe_time=now,
        last_transition_time=since_then,
    )
