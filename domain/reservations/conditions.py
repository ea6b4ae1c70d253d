"""Conditions of a Reservation: `Scheduled` and `Ready`, with their reasons. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from api.kubernetes import meta
from api.wire import durations

SCHEDULED: Final = "Scheduled"
READY: Final = "Ready"
UNSCHEDULABLE: Final = "Unschedulable"
AVAILABLE: Final = "Available"
SUCCEEDED: Final = "Succeeded"
EXPIRED: Final = "Expired"
WAITING: Final = "Waiting"
_NAMED: Final = 5
"""Pods that a message names."""


def written(one: meta.LooseCondition) -> dict[str, Any]:
    """Return a condition as it stands, in the form of the API."""
    return condition(
        one.type,
        one.status,
        one.reason,
        one.message,
        probed_at=one.last_probe_time,
        since=one.last_transition_time,
    )


def condition(
    kind: str,
    status: str,
    reason: str,
    message: str,
    *,
    probed_at: float | None,
    since: float | None,
) -> dict[str, Any]:
    """Return a condition in the form of the API; moments are seconds since the epoch."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": None if probed_at is None else durations.moment(probed_at),
        "lastTransitionTime": None if since is None else durations.moment(since),
    }


def replaced(
    present: Iterable[meta.LooseCondition], changed: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return all conditions with one added or changed, the others as they stand."""
    kept = [written(one) for one in present if one.type != changed["type"]]
    return [*kept, changed]


def placed(node: str, now: float, over: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the conditions of a Reservation that has just got its node; there are no others.

    `over` are pods that still run in its place, as namespace/name.
    """
    ready = condition(READY, "True", AVAILABLE, "", probed_at=now, since=now)
    if over:
        ready = condition(READY, "False", WAITING, waits_for(over), probed_at=now, since=now)
    return [
        condition(SCHEDULED, "True", SCHEDULED, f"placed on {node}", probed_at=now, since=now),
        ready,
    ]


def waits_for(pods: Sequence[str]) -> str:
    """Return the message of a Reservation that was placed over pods which still run."""
    named = ", ".join(pods[:_NAMED])
    rest = f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else ""
    return f"waits until pods that run in its place have ended: {named}{rest}"
