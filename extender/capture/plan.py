"""What is written on a Reservation to place it, and whether it may still be placed. Pure.

Two writes, each only if the object has not changed since it was read: first its annotations, with
what plug-ins allocated and the number of the attempt; then its status, which alone places it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from api import names
from api.koordinator import scheduling
from api.koordinator.metadata import annotations, protected_metadata
from api.wire import base, quantity
from domain.pods import resources
from domain.reservations import conditions

TERMINAL: Final = frozenset({scheduling.SUCCEEDED, scheduling.FAILED})


class Target(NamedTuple):
    """The Reservation that a stand-in names."""

    name: str
    uid: str
    generation: str = ""
    """The generation from which the stand-in was made."""
    over: tuple[str, ...] = ()
    """Uids of running pods over which it is placed: the stand-in asks for what they do not hold."""


def target(pod: Mapping[str, Any]) -> Target | None:
    """Return which Reservation a pod stands in for, None where it does not say."""
    notes = (pod.get("metadata") or {}).get("annotations") or {}
    name = notes.get(names.ANNOTATION_STAND_IN_NAME)
    uid = notes.get(names.ANNOTATION_STAND_IN_UID)
    generation = notes.get(names.ANNOTATION_STAND_IN_GENERATION)
    if isinstance(name, str) and isinstance(uid, str) and isinstance(generation, str):
        over = notes.get(names.ANNOTATION_STAND_IN_PODS)
        pods = tuple(filter(None, over.split(","))) if isinstance(over, str) else ()
        return Target(name, uid, generation, pods)
    return None


def refusal(raw: Mapping[str, Any] | None, wanted: Target) -> str:
    """Return why a Reservation, as it was read, is not placed any more; its stand-in is useless."""
    if raw is None or uid(raw) != wanted.uid:
        return f"Reservation {wanted.name} is gone"
    status = raw.get("status") or {}
    if status.get("nodeName"):
        return f"Reservation {wanted.name} is on node {status['nodeName']} already"
    if status.get("phase") in TERMINAL:
        return f"Reservation {wanted.name} has ended: {status['phase']}"
    if (raw.get("metadata") or {}).get("deletionTimestamp"):
        return f"Reservation {wanted.name} is being deleted"
    if str((raw.get("metadata") or {}).get("generation", "")) != wanted.generation:
        return f"Reservation {wanted.name} was changed since"
    return ""


class RunningPod(NamedTuple):
    """A pod over which a Reservation is placed."""

    uid: str
    namespace: str
    name: str
    requests: Mapping[str, int]


class Capture(NamedTuple):
    """One attempt to place a Reservation on a node."""

    target: Target
    node: str
    version: str
    """The resource version at which it was read."""
    annotations: Mapping[str, str | None]
    """None: an earlier attempt wrote it, and it is removed."""
    status: Mapping[str, Any]
    placed: Mapping[str, Any]
    """The Reservation as it will be, as the API server would show it."""

    def first(self) -> dict[str, Any]:
        """Return the patch of the annotations; it moves the version, so that late writes fail."""
        return {
            "metadata": {
                "uid": self.target.uid,
                "resourceVersion": self.version,
                "annotations": dict(self.annotations),
            }
        }

    def second(self, version: str) -> dict[str, Any]:
        """Return the patch of the status, at the version that the first one has made."""
        return {
            "metadata": {"uid": self.target.uid, "resourceVersion": version},
            "status": dict(self.status),
        }


def fence(wanted: Target, attempt: str) -> dict[str, Any]:
    """Return the patch that makes a status fail that may still be on its way."""
    notes = {names.ANNOTATION_CAPTURE: attempt}
    return {"metadata": {"uid": wanted.uid, "annotations": notes}}


def planned(
    raw: Mapping[str, Any],
    node: str,
    granted: Mapping[str, str],
    attempt: str,
    now: float,
    over: Sequence[RunningPod] = (),
) -> Capture | str:
    """Return what is written to place a Reservation, or why that cannot be said.

    `granted` are the annotations of what plug-ins allocated; `now` is in seconds since the epoch;
    `over` are running pods over which it is placed: it waits until they have ended.
    """
    try:
        written = scheduling.read_reservation(raw)
        offered = _offered(written)
    except (base.ReadError, quantity.QuantityError) as wrong:
        return f"Reservation {written_name(raw)} cannot be read: {wrong}"
    before = (raw.get("metadata") or {}).get("annotations") or {}
    stale = dict.fromkeys(key for key in protected_metadata.ALLOCATIONS if key in before)
    notes: dict[str, str | None] = {**stale, **granted, names.ANNOTATION_CAPTURE: attempt}
    old = (raw.get("status") or {}).get("allocatable") or {}
    status: dict[str, Any] = {
        "phase": scheduling.WAITING if over else scheduling.AVAILABLE,
        "nodeName": node,
        "allocatable": dict.fromkeys(old) | quantity.texts(offered),
        "conditions": conditions.placed(node, now, [f"{one.namespace}/{one.name}" for one in over]),
    }
    if over:
        status["currentOwners"] = [
            {"namespace": one.namespace, "name": one.name, "uid": one.uid} for one in over
        ]
        status["allocated"] = quantity.texts(_held(over, offered))
    metadata = raw.get("metadata") or {}
    kept = {key: text for key, text in {**before, **notes}.items() if text is not None}
    shown = {**status, "allocatable": quantity.texts(offered)}
    return Capture(
        target=Target(written.name, written.metadata.uid),
        node=node,
        version=written.metadata.resource_version,
        annotations=notes,
        status=status,
        placed={**raw, "metadata": {**metadata, "annotations": kept}, "status": shown},
    )


def shortfall(
    offered: Mapping[str, int], over: Sequence[RunningPod], asked: Mapping[str, int]
) -> str:
    """Return of which resource a stand-in asks for less than the running pods leave to reserve."""
    left = resources.subtract(offered, _held(over, offered))
    lacks = (name for name, value in sorted(left.items()) if value > asked.get(name, 0))
    return next(lacks, "")


def _held(over: Sequence[RunningPod], offered: Mapping[str, int]) -> dict[str, int]:
    """Return what running pods request of what is reserved."""
    total: dict[str, int] = {}
    for one in over:
        total = resources.add(total, {k: v for k, v in one.requests.items() if k in offered})
    return total


def _offered(written: scheduling.Reservation) -> dict[str, int]:
    """Return what the template requests, overlaid by what devices really gave."""
    requested = resources.pod_requests(written.pod)
    resized = annotations.RESERVATION_RESIZE.read(written.metadata.annotations)
    return requested | (resources.amounts(resized.resources) if resized else {})


def uid(raw: Mapping[str, Any]) -> str:
    """Return the uid of an object."""
    return str((raw.get("metadata") or {}).get("uid", ""))


def version(raw: Mapping[str, Any]) -> str:
    """Return the resource version of an object."""
    return str((raw.get("metadata") or {}).get("resourceVersion", ""))


def written_name(raw: Mapping[str, Any]) -> str:
    """Return the name of an object."""
    return str((raw.get("metadata") or {}).get("name", ""))


def node(raw: Mapping[str, Any]) -> str:
    """Return the node of a Reservation, empty where it has none."""
    return str((raw.get("status") or {}).get("nodeName") or "")
