"""The status of a Reservation: owners, success, expiry, and removal. Pure."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from api import resources
from api.koordinator import scheduling
from api.wire import durations, quantity
from domain import wording
from domain.pods import resources as amounts
from domain.reservations import conditions
from manager.reconcile import actions
from manager.reservations import objects

LONGEST_REST: Final = 3600.0
"""Seconds after which a Reservation is looked at again at the latest."""
_WAITING_REST: Final = 30.0
"""The same of one that waits until running pods have ended."""
_USE: Final = frozenset({"currentOwners", "allocated"})


class Collection(NamedTuple):
    """How long Reservations are kept that have ended."""

    seconds: float = 86400.0
    off: bool = False


def planned(
    found: objects.ReservationObject,
    users: Iterable[objects.User],
    *,
    has_node: bool,
    collection: Collection,
    now: float,
) -> actions.Plan:
    """Plan the status of a Reservation with a node, or of one that has ended without one.

    `now` is in seconds since the epoch.
    """
    if found.ended:
        return _collected(found, has_node or not found.node, collection, now)
    if not has_node:
        return _failed(found, f"node {found.node} is gone", now)
    over = expired(found, now)
    if over is not None:
        return over
    left = math.inf if found.expires_at is None else found.expires_at - now
    found_users = sorted(
        # Nobody may have counted a pod that ended soon after it came.
        (one for one in users if found.allocate_once or not one.has_ended),
        key=lambda one: (one.has_ended, one.owner),
    )
    if found.phase == scheduling.WAITING:
        return _awaited(found, found_users, min(left, _WAITING_REST), now)
    return _counted(found, found_users, min(left, LONGEST_REST), now)


def _awaited(
    found: objects.ReservationObject, running: list[objects.User], again_in: float, now: float
) -> actions.Plan:
    """Plan for a Reservation that was placed over pods: it is Available once they have ended."""
    if not running:
        status = {
            "phase": scheduling.AVAILABLE,
            "currentOwners": [],
            "allocated": dict.fromkeys(found.allocated),
            "conditions": _ready(found, "True", conditions.AVAILABLE, "", now),
        }
        return actions.Plan(
            "the pods over which it was placed have ended", (_write(found, status),), 0.0
        )
    owners, total = _use(found, running)
    before = {name: value for name, value in amounts.amounts(found.allocated).items() if value}
    if owners == tuple(sorted(found.owners)) and total == before:
        pods = wording.count(len(owners), "pod", "pods")
        return actions.Plan(f"waits for {pods} to end", again_in=again_in)
    why = conditions.waits_for([f"{one.namespace}/{one.name}" for one in owners])
    status = {
        **_used(found, owners, total),
        "conditions": _ready(found, "False", conditions.WAITING, why, now),
    }
    return actions.Plan(why, (_write(found, status),), again_in)


def _ready(
    found: objects.ReservationObject, status: str, reason: str, why: str, now: float
) -> list[dict[str, Any]]:
    present = found.condition(conditions.READY)
    since = now
    if present is not None and present.status == status and present.last_transition_time:
        since = present.last_transition_time
    return conditions.replaced(
        found.conditions,
        conditions.condition(conditions.READY, status, reason, why, probed_at=now, since=since),
    )


def _use(
    found: objects.ReservationObject, users: list[objects.User]
) -> tuple[tuple[objects.OwnerPod, ...], dict[str, int]]:
    """Return the pods that use a Reservation, and what they request of it."""
    offered = amounts.amounts(found.allocatable)
    total: dict[str, int] = {}
    for user in users:
        total = amounts.add(total, {k: v for k, v in user.requests.items() if k in offered})
    return tuple(user.owner for user in users), {k: v for k, v in total.items() if v}


def _used(
    found: objects.ReservationObject, owners: tuple[objects.OwnerPod, ...], total: Mapping[str, int]
) -> dict[str, Any]:
    return {
        "currentOwners": [
            {"namespace": one.namespace, "name": one.name, "uid": one.uid} for one in owners
        ],
        "allocated": dict.fromkeys(found.allocated) | quantity.texts(total),
    }


def tells_use_alone(planned: actions.Plan) -> bool:
    """Whether a plan writes who uses a Reservation and how much of it, and nothing else."""
    return bool(planned.steps) and all(
        isinstance(step, actions.PatchStatus) and step.body["status"].keys() == _USE
        for step in planned.steps
    )


def expired(found: objects.ReservationObject, now: float) -> actions.Plan | None:
    """Plan the end of a Reservation whose time is over, with or without a node; None before."""
    if found.expires_at is None or now < found.expires_at:
        return None
    return _failed(found, f"it expired at {durations.moment(found.expires_at)}", now)


def _counted(
    found: objects.ReservationObject, users: list[objects.User], again_in: float, now: float
) -> actions.Plan:
    owners, total = _use(found, users)
    before = {name: value for name, value in amounts.amounts(found.allocated).items() if value}
    if total == before and owners == found.owners:
        return actions.Plan("the status names its owners", again_in=again_in)
    status = _used(found, owners, total)
    message = f"used by {wording.count(len(owners), 'pod', 'pods')}"
    if found.allocate_once and owners:
        only = f"{owners[0].namespace}/{owners[0].name}"
        status |= _ended(found, scheduling.SUCCEEDED, f"pod {only} uses it", now)
        message = f"used by {only}, so it has succeeded"
    return actions.Plan(message, (_write(found, status),), again_in)


def _failed(found: objects.ReservationObject, why: str, now: float) -> actions.Plan:
    status = _ended(found, scheduling.FAILED, why, now)
    told = actions.Tell(
        resources.RESERVATIONS, found.name, found.uid, conditions.EXPIRED, why, warning=True
    )
    return actions.Plan(why, (_write(found, status), told))


def _ended(found: objects.ReservationObject, phase: str, why: str, now: float) -> dict[str, Any]:
    ready = found.condition(conditions.READY)
    failed = phase == scheduling.FAILED
    reason = conditions.EXPIRED if failed else conditions.SUCCEEDED
    since = None if ready is None else ready.last_transition_time
    if since is None or (failed and ready is not None and ready.status == "True"):
        since = now
    ended = conditions.condition(conditions.READY, "False", reason, why, probed_at=now, since=since)
    return {"phase": phase, "conditions": conditions.replaced(found.conditions, ended)}


def _collected(
    found: objects.ReservationObject, has_node: bool, collection: Collection, now: float
) -> actions.Plan:
    """Plan the removal of a Reservation that ended long ago, or whose node is gone."""
    ready = found.condition(conditions.READY)
    reason = "" if ready is None else ready.reason
    if ready is None or collection.off or reason not in (conditions.EXPIRED, conditions.SUCCEEDED):
        return actions.Plan("has ended and stays")
    ended = ready.last_transition_time if reason == conditions.EXPIRED else ready.last_probe_time
    left = (found.created if ended is None else ended) + collection.seconds - now
    if left > 0 and has_node:
        return actions.Plan("has ended", again_in=min(left, LONGEST_REST))
    why = f"it ended {collection.seconds:.0f} s ago" if has_node else f"node {found.node} is gone"
    return actions.Plan(
        f"removed: {why}", (actions.Delete(resources.RESERVATIONS, found.name, found.uid),)
    )


def _write(found: objects.ReservationObject, status: Mapping[str, Any]) -> actions.PatchStatus:
    metadata = {"uid": found.uid, "resourceVersion": found.version}
    body = {"metadata": metadata, "status": status}
    return actions.PatchStatus(resources.RESERVATIONS, found.name, body)
