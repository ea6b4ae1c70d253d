"""What changed between two versions of an object, as far as a scheduler cares; pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from simulator.scheduler import scheduling_queue

Object = Mapping[str, Any]
Happening = scheduling_queue.Happening


def of_node(old: Object | None, new: Object | None) -> Iterator[Happening]:
    """Yield what a new version of a node may mean to waiting pods; heartbeats mean nothing."""
    if new is None:
        yield Happening.NODE_OTHER
        return
    if old is None:
        yield Happening.NODE_ADDED
        return
    if _status(old, "allocatable") != _status(new, "allocatable"):
        yield Happening.NODE_CAPACITY
    if _meta(old, "labels") != _meta(new, "labels"):
        yield Happening.NODE_LABELS
    before, after = old.get("spec", {}), new.get("spec", {})
    freed = before.get("unschedulable") and not after.get("unschedulable")
    if freed or before.get("taints") != after.get("taints"):
        yield Happening.NODE_TAINTS
    if _meta(old, "annotations") != _meta(new, "annotations") or _states(old) != _states(new):
        yield Happening.NODE_OTHER


def of_pod(old: Object, new: Object) -> Happening:
    """Return what a new version of a waiting pod may mean to it."""
    before, after = _declared(old), _declared(new)
    if before == after:
        return Happening.OWN_STATUS
    same = before["spec"].get("tolerations") == after["spec"].get("tolerations")
    return Happening.OWN_CHANGE if same else Happening.OWN_TOLERATIONS


def _declared(pod: Object) -> dict[str, Any]:
    told = ("resourceVersion", "managedFields", "generation")
    meta = {key: value for key, value in pod["metadata"].items() if key not in told}
    return {"metadata": meta, "spec": pod["spec"]}


def _status(node: Object, field: str) -> Any:
    return (node.get("status") or {}).get(field)


def _meta(node: Object, field: str) -> Any:
    return node["metadata"].get(field) or {}


def _states(node: Object) -> dict[str, str]:
    conditions = _status(node, "conditions") or ()
    return {one.get("type", ""): one.get("status", "") for one in conditions}
