"""Replaces what people named in a snapshot, the same name by the same substitute. Pure.

Kept are keys of labels, resource names, amounts, times, and the values of labels and annotations
that mean something to a program. What else people wrote becomes ``pod-1``, ``namespace-2`` or
``value-3``; a selector still finds what it found.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from api import names, resources
from cli.snapshot import format as formats
from cli.snapshot import projection

Raw = dict[str, Any]

_QUOTA_LABELS: Final = frozenset({names.LABEL_QUOTA_NAME, names.LABEL_QUOTA_PARENT})
_FIXED: Final = frozenset({"true", "false", "linux", "windows", "amd64", "arm64", "default", ""})
"""Values that say nothing about anybody."""
_KEPT_NAMESPACES: Final = frozenset({"default", "kube-system", names.NAMESPACE})
_KIND_OF: Final = {
    "pods": "pod",
    "nodes": "node",
    "namespaces": "namespace",
    "priorityclasses.scheduling.k8s.io": "class",
    "poddisruptionbudgets.policy": "budget",
    resources.ELASTIC_QUOTA_PROFILES.review_name(): "profile",
    **{one.review_name(): "quota" for one in resources.QUOTA_RESOURCES},
}
_NUMBERS: Final = frozenset("-0123456789")


class _Names:
    """Substitutes given so far, by kind of name."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._count: dict[str, int] = {}

    def of(self, kind: str, name: str) -> str:
        if not name or (kind == "quota" and name in names.RESERVED_QUOTAS):
            return name
        if kind == "namespace" and name in _KEPT_NAMESPACES:
            return name
        if kind == "class" and name.startswith(("system-", "koord-")):
            return name
        found = self._given.get((kind, name))
        if found is None:
            self._count[kind] = self._count.get(kind, 0) + 1
            found = self._given[kind, name] = f"{kind}-{self._count[kind]}"
        return found

    def value(self, key: str, value: str) -> str:
        """Return the substitute of a label's value."""
        if key in _QUOTA_LABELS:
            return self.of("quota", value)
        if value in _FIXED or set(value) <= _NUMBERS:
            return value
        if key == "kubernetes.io/hostname":
            return self.of("node", value)
        if key == "kubernetes.io/metadata.name":
            return self.of("namespace", value)
        if projection.ours(key) and key != names.LABEL_QUOTA_TREE:
            return value
        return self.of("value", value)


def renamed(snapshot: formats.Snapshot) -> formats.Snapshot:
    """Return the snapshot with substitutes for names; two snapshots share none of them."""
    given = _Names()
    found = {
        resource: tuple(_object(resource, dict(one), given) for one in objects)
        for resource, objects in snapshot.objects.items()
    }
    return msgspec.structs.replace(snapshot, objects=found, unreadable=(), redaction="names")


def _object(resource: str, one: Raw, given: _Names) -> Raw:
    if resource == resources.CONFIG_MAPS.review_name():
        return one
    kind = _KIND_OF.get(resource, "object")
    one["metadata"] = _metadata(kind, one["metadata"], given)
    if resource == "pods":
        one["spec"] = _pod_spec(one.get("spec") or {}, given)
        one["status"] = _pod_status(one.get("status") or {}, given)
    elif kind in {"budget", "profile"}:
        one["spec"] = _selectors(one.get("spec") or {}, given)
        if isinstance(one["spec"].get("quotaName"), str):
            one["spec"]["quotaName"] = given.of("quota", one["spec"]["quotaName"])
    elif kind == "quota" and isinstance(one.get("status"), Mapping):
        one["status"] = {k: v for k, v in one["status"].items() if k != "conditions"}
    elif kind == "node":
        one["spec"] = _node_spec(one.get("spec") or {}, given)
    return one


def _metadata(kind: str, metadata: Mapping[str, Any], given: _Names) -> Raw:
    found = dict(metadata)
    found["name"] = given.of(kind, found["name"])
    found.pop("generateName", None)
    if "namespace" in found:
        found["namespace"] = given.of("namespace", found["namespace"])
    if "uid" in found:
        found["uid"] = given.of("uid", found["uid"])
    for part in ("labels", "annotations"):
        written = found.get(part) or {}
        if written:
            found[part] = _texts(part, written, given)
    if found.get("ownerReferences"):
        found["ownerReferences"] = [_owner(owner, given) for owner in found["ownerReferences"]]
    return found


def _texts(part: str, written: Mapping[str, str], given: _Names) -> Raw:
    if part == "labels":
        return {key: given.value(key, value) for key, value in written.items()}
    # What schedulers wrote names nodes and pods inside; only what quotas say is needed.
    kept = {
        key: value
        for key, value in written.items()
        if key.startswith("quota.scheduling.koordinator.sh/")
    }
    bound = kept.pop(names.ANNOTATION_QUOTA_NAMESPACES, "")
    if bound:
        kept[names.ANNOTATION_QUOTA_NAMESPACES] = json.dumps(
            [given.of("namespace", name) for name in _list(bound)]
        )
    return kept


def _list(text: str) -> Iterable[str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else ()


def _owner(owner: Mapping[str, Any], given: _Names) -> Raw:
    found = dict(owner)
    found["name"] = given.of("owner", str(owner.get("name", "")))
    found["uid"] = given.of("uid", str(owner.get("uid", "")))
    return found


def _pod_spec(spec: Mapping[str, Any], given: _Names) -> Raw:
    found = dict(spec)
    if found.get("nodeName"):
        found["nodeName"] = given.of("node", found["nodeName"])
    if found.get("priorityClassName"):
        found["priorityClassName"] = given.of("class", found["priorityClassName"])
    for part in ("containers", "initContainers"):
        if found.get(part):
            found[part] = [
                {**one, "name": f"container-{i}"} for i, one in enumerate(found[part], 1)
            ]
    if found.get("nodeSelector"):
        found["nodeSelector"] = {k: given.value(k, v) for k, v in found["nodeSelector"].items()}
    if found.get("affinity"):
        found["affinity"] = _selectors(found["affinity"], given)
    if found.get("tolerations"):
        found["tolerations"] = [_taint(one, given) for one in found["tolerations"]]
    return found


def _pod_status(status: Mapping[str, Any], given: _Names) -> Raw:
    found = dict(status)
    if found.get("nominatedNodeName"):
        found["nominatedNodeName"] = given.of("node", found["nominatedNodeName"])
    if found.get("containerStatuses"):
        found["containerStatuses"] = [
            {**one, "name": f"container-{i}"} for i, one in enumerate(found["containerStatuses"], 1)
        ]
    return found


def _node_spec(spec: Mapping[str, Any], given: _Names) -> Raw:
    found = dict(spec)
    if found.get("taints"):
        found["taints"] = [_taint(one, given) for one in found["taints"]]
    return found


def _taint(one: Mapping[str, Any], given: _Names) -> Raw:
    found = dict(one)
    if isinstance(found.get("value"), str):
        found["value"] = given.value(str(found.get("key", "")), found["value"])
    return found


def _selectors(part: Any, given: _Names) -> Any:
    """Rename the values inside selectors, at any depth."""
    if isinstance(part, list):
        return [_selectors(inner, given) for inner in part]
    if not isinstance(part, Mapping):
        return part
    found: Raw = {}
    for key, inner in part.items():
        if key == "matchLabels" and isinstance(inner, Mapping):
            found[key] = {k: given.value(k, str(v)) for k, v in inner.items()}
        elif key == "namespaces" and isinstance(inner, list):
            found[key] = [given.of("namespace", str(name)) for name in inner]
        elif key == "values" and isinstance(inner, list):
            label = str(part.get("key", ""))
            found[key] = [_selected(label, str(value), given) for value in inner]
        else:
            found[key] = _selectors(inner, given)
    return found


def _selected(label: str, value: str, given: _Names) -> str:
    return given.of("node", value) if label == "metadata.name" else given.value(label, value)
