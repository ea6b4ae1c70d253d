"""What a write makes of an object: pure rules of metadata, status and deletion."""

import enum
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]

PODS = ("", "pods")
# The finalizer of an owner that waits for its dependents.
FOREGROUND = "foregroundDeletion"
# The finalizer of an owner whose dependents are to stay.
ORPHAN = "orphan"
_POLICIES = {"Orphan": ORPHAN, "Foreground": FOREGROUND}
# Kinds whose real counterparts do not count generations.
UNCOUNTED = frozenset(
    {
        ("", "configmaps"),
        ("", "events"),
        ("", "namespaces"),
        ("", "nodes"),
        ("", "secrets"),
        ("", "serviceaccounts"),
        ("", "services"),
        ("coordination.k8s.io", "leases"),
        ("rbac.authorization.k8s.io", "roles"),
        ("rbac.authorization.k8s.io", "rolebindings"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
    }
)
# Kinds whose generation is one for ever.
STEADY = frozenset({("scheduling.k8s.io", "priorityclasses")})
# Kinds whose annotations count as well.
_ANNOTATED = frozenset({("apps", "deployments")})
# Kinds that own nothing, whatever a deletion says of dependents.
_CHILDLESS = frozenset({("", "events")})
_SCALARS = frozenset({str, int, float, bool, type(None)})


class Part(enum.Enum):
    """What an update may change."""

    WHOLE = "everything"
    MAIN = "everything but the status"
    STATUS = "the status, and the metadata of built-in kinds"
    STATUS_ONLY = "nothing but the status"


def copied(value: Any) -> Any:
    """Return a deep copy of a JSON value."""
    # Almost all are plain, and most are no containers; calls and asking the abstract classes take
    # most of the time of a write.
    kind = type(value)
    if kind is dict:
        return {
            key: inner if type(inner) in _SCALARS else copied(inner) for key, inner in value.items()
        }
    if kind is list:
        return [inner if type(inner) in _SCALARS else copied(inner) for inner in value]
    if kind in _SCALARS:
        return value
    if isinstance(value, Mapping):
        return {key: copied(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [copied(inner) for inner in value]
    return value


def timestamp(now: float) -> str:
    """Write seconds since the epoch as Kubernetes writes a Time."""
    return datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(now: float) -> str:
    """Write seconds since the epoch as Kubernetes writes a MicroTime."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def declared(value: Object) -> Object:
    """Return what a user declares: all but metadata and status."""
    return {key: inner for key, inner in value.items() if key not in ("metadata", "status")}


def grown(collection: tuple[str, str], old: Object, new: Object) -> bool:
    """Tell whether a write counts as a new generation."""
    if declared(new) != declared(old):
        return True
    before, after = (side["metadata"].get("annotations") or {} for side in (old, new))
    return collection in _ANNOTATED and before != after


def policy_of(collection: tuple[str, str], policy: str) -> str:
    """Return what a deletion says of dependents, where a kind can have some."""
    return "" if collection in _CHILDLESS else policy


def combined(old: Object, body: Mapping[str, Any], part: Part) -> Object:
    """Combine the stored object with what this kind of update may change."""
    new: Object
    if part is Part.STATUS_ONLY:
        new = copied(old)
        managed = body.get("metadata", {}).get("managedFields")
        if managed is not None:
            new["metadata"]["managedFields"] = copied(managed)
    else:
        new = copied(body)
        if part is Part.STATUS:
            new = {**declared(copied(old)), "metadata": new["metadata"]}
    source: Mapping[str, Any] = old if part is Part.MAIN else body
    new.pop("status", None)
    # To say nothing of a status is no reason to begin one.
    if source.get("status") or ("status" in source and "status" in old):
        new["status"] = copied(source["status"])
    before, meta = old["metadata"], new["metadata"]
    for owned in (
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
    ):
        meta.pop(owned, None)
        if owned in before:
            meta[owned] = before[owned]
    return new


def may_go(value: Object) -> bool:
    """Tell whether nothing keeps an object that is being deleted."""
    meta = value["metadata"]
    return (
        "deletionTimestamp" in meta
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
    )


def grace_period(collection: tuple[str, str], value: Object, wanted: int | None) -> int:
    """Return the grace period of a deletion; only pods on a node that still run have one."""
    if collection != PODS:
        return 0
    if wanted is None and "deletionGracePeriodSeconds" in value["metadata"]:
        return int(value["metadata"]["deletionGracePeriodSeconds"])
    spec = value.get("spec", {})
    finished = value.get("status", {}).get("phase") in ("Succeeded", "Failed")
    if not spec.get("nodeName") or finished:
        return 0
    asked = spec.get("terminationGracePeriodSeconds", 30) if wanted is None else wanted
    return max(0, int(asked))


def marked(old: Object, now: float, seconds: int, policy: str = "") -> Object:
    """Return an object marked for deletion; a shorter grace period replaces a longer one.

    The propagation policy says what becomes of dependents; finalizers carry it to the collector.
    """
    new: Object = copied(old)
    meta = new["metadata"]
    if policy:
        kept = [f for f in meta.get("finalizers") or () if f not in (ORPHAN, FOREGROUND)]
        meta["finalizers"] = [*kept, *((_POLICIES[policy],) if policy in _POLICIES else ())]
        if not meta["finalizers"]:
            del meta["finalizers"]
    before = meta.get("deletionGracePeriodSeconds", 0)
    if "deletionTimestamp" not in meta:
        if "generation" in meta:
            meta["generation"] += 1
        begun = now
    elif seconds < before:
        # Who is asked to leave sooner does not get the time again that has passed.
        begun = datetime.fromisoformat(meta["deletionTimestamp"]).timestamp() - before
    else:
        return new
    meta["deletionTimestamp"] = timestamp(begun + seconds)
    meta["deletionGracePeriodSeconds"] = seconds
    return new
