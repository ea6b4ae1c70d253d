"""The root quota that a profile keeps as large as a group of nodes."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

import msgspec

from api import names, resources
from api.koordinator import event_reasons, quota
from api.koordinator.metadata import annotations as payloads
from api.kubernetes import selectors
from api.wire import base, quantity
from domain import field_ownership
from manager.reconcile import actions

OWNER: Final = names.LABEL_QUOTA_PROFILE
"""The label by which a quota names its profile."""
RATIO_IGNORED: Final[event_reasons.Reason] = "RatioIgnored"
KEYS_IGNORED: Final[event_reasons.Reason] = "ResourceKeysIgnored"
UNREADABLE: Final[event_reasons.Reason] = "ProfileUnreadable"
UNBOUNDED: Final = (2**63 - 1) // 2000
"""What stands for no limit in a quota of the reference."""
_DEFAULT_KEYS: Final = (names.CPU, names.MEMORY)
_MOST_RESOURCES: Final = 256
_OFFSET, _PRIME, _WORD = 0xCBF29CE484222325, 0x100000001B3, 2**64


class Profile(msgspec.Struct, frozen=True, gc=False):
    """A profile, or why it cannot be read."""

    namespace: str
    name: str
    uid: str
    labels: dict[str, str]
    annotations: dict[str, str]
    spec: quota.ProfileSpec | None
    ratio: Fraction = Fraction(1)
    doubts: tuple[str, ...] = ()
    """What is wrong with it; a profile without a spec is of no use."""
    status: Mapping[str, Any] = {}
    generation: int | None = None


class Quota(msgspec.Struct, frozen=True, gc=False):
    """A quota as it stands, as far as a profile sets it."""

    version: str
    labels: dict[str, str]
    annotations: dict[str, str]
    min: dict[str, str]
    max: dict[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Sums:
    """What the nodes of a profile offer, scaled by its ratio."""

    total: Mapping[str, int]
    closed: Mapping[str, int]
    """What of it no pod can be placed on."""
    nodes: int
    closed_nodes: int
    keys: tuple[str, ...]
    """The resources that the quota limits."""
    doubt: str = ""
    """What was wrong with the list of these."""

    def guaranteed(self) -> dict[str, str]:
        """Return what the quota guarantees."""
        return {key: quantity.text(key, self.total.get(key, 0)) for key in self.keys}


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """What a node adds to a quota."""

    labels: Mapping[str, str]
    offered: Mapping[str, int]
    schedulable: bool


def profile(raw: Mapping[str, Any]) -> Profile:
    """Project a profile."""
    metadata, status = raw["metadata"], raw.get("status")
    found = Profile(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        spec=None,
        status=status if isinstance(status, Mapping) else {},
        generation=metadata.get("generation"),
    )
    try:
        read = quota.review_elastic_quota_profile(raw)
    except base.ReadError as wrong:
        return msgspec.structs.replace(found, doubts=(str(wrong),))
    value = read.value
    return msgspec.structs.replace(
        found, spec=value.spec, ratio=value.ratio, doubts=tuple(read.warnings)
    )


def present(raw: Mapping[str, Any]) -> Quota:
    """Project a quota."""
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    return Quota(
        version=metadata.get("resourceVersion", ""),
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        min={name: str(value) for name, value in (spec.get("min") or {}).items()},
        max={name: str(value) for name, value in (spec.get("max") or {}).items()},
    )


def tree_of(namespace: str, name: str) -> str:
    """Return the tree of a profile that names none."""
    return str(hashed(f"{namespace}/{name}".encode()))


def hashed(text: bytes) -> int:
    """Return the 64-bit FNV-1a hash."""
    found = _OFFSET
    for byte in text:
        found = (found ^ byte) * _PRIME % _WORD
    return found


def planned(wanted: Profile, there: Quota | None, sums: Sums) -> actions.Plan:
    """Plan the quota of a readable profile, and the name of its tree."""
    assert wanted.spec is not None
    tree = wanted.labels.get(names.LABEL_QUOTA_TREE) or tree_of(wanted.namespace, wanted.name)
    written: list[actions.Step | None] = []
    if tree != wanted.labels.get(names.LABEL_QUOTA_TREE):
        written.append(_named(wanted, tree))
    labels = {
        names.LABEL_QUOTA_PROFILE: wanted.name,
        **wanted.spec.quota_labels,
        names.LABEL_QUOTA_TREE: tree,
        names.LABEL_QUOTA_IS_ROOT: "true",
    }
    notes = {
        names.ANNOTATION_QUOTA_TOTAL: base.encoded(quantity.texts(sums.total)),
        names.ANNOTATION_QUOTA_UNSCHEDULABLE: base.encoded(quantity.texts(sums.closed)),
    }
    most = {
        key: quantity.text(key, UNBOUNDED * (1000 if key == names.CPU else 1)) for key in sums.keys
    }
    marks = {"labels": labels, "annotations": notes}
    message, step = _written(wanted, there, marks, {"min": sums.guaranteed(), "max": most})
    return actions.Plan(message, tuple(one for one in (*written, step) if one is not None))


def _named(wanted: Profile, tree: str) -> actions.Merge:
    body = {"metadata": {"labels": {names.LABEL_QUOTA_TREE: tree}}}
    return actions.Merge(resources.ELASTIC_QUOTA_PROFILES, wanted.name, body, wanted.namespace)


def _keys(annotations: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Return the resources that the quota limits, and what was wrong with their list."""
    try:
        return payloads.QUOTA_RESOURCE_KEYS.read(annotations) or _DEFAULT_KEYS, ""
    except base.ReadError as wrong:
        return _DEFAULT_KEYS, f"{wrong}; {', '.join(_DEFAULT_KEYS)} are used"


def summed(wanted: Profile, spec: quota.ProfileSpec, nodes: Iterable[Node]) -> Sums:
    """Add up what the nodes of a profile offer, and what of it no pod can be placed on.

    One node may offer thousands of resources, more than a quota takes: those of most nodes count.
    """
    total: dict[str, int] = {}
    closed: dict[str, int] = {}
    chosen = [one for one in nodes if selectors.matches(spec.node_selector, one.labels)]
    for node in chosen:
        for resource, amount in node.offered.items():
            total[resource] = total.get(resource, 0) + amount
            if not node.schedulable:
                closed[resource] = closed.get(resource, 0) + amount
    keys, doubt = _keys(wanted.annotations)
    if len(total) > _MOST_RESOURCES:
        often = collections.Counter(resource for node in chosen for resource in node.offered)
        order = sorted(
            total, key=lambda resource: (resource not in keys, -often[resource], resource)
        )
        total = {resource: total[resource] for resource in order[:_MOST_RESOURCES]}
        closed = {resource: amount for resource, amount in closed.items() if resource in total}
    if wanted.ratio != 1:
        total, closed = _scaled(total, wanted.ratio), _scaled(closed, wanted.ratio)
    shut = sum(not node.schedulable for node in chosen)
    return Sums(total, closed, len(chosen), shut, keys, doubt)


def _scaled(amounts: Mapping[str, int], ratio: Fraction) -> dict[str, int]:
    return {resource: int(amount * ratio) for resource, amount in amounts.items()}


def _written(
    wanted: Profile,
    there: Quota | None,
    marks: Mapping[str, Mapping[str, str]],
    limits: Mapping[str, Mapping[str, str]],
) -> tuple[str, actions.Step | None]:
    assert wanted.spec is not None
    name, resource = wanted.spec.quota_name, resources.ELASTIC_QUOTAS
    if there is None:
        made = {names.LABEL_CREATED_BY: field_ownership.MANAGER}
        labels = {**marks["labels"], **made}
        body: dict[str, Any] = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "namespace": wanted.namespace, **marks, "labels": labels},
            "spec": dict(limits),
        }
        return f"quota {name} made", actions.Apply(resource, name, body, wanted.namespace)
    metadata = {
        part: changed
        for part, values in marks.items()
        if (changed := _differing(values, getattr(there, part)))
    }
    spec = {
        side: {**dict.fromkeys(getattr(there, side).keys() - values.keys()), **values}
        for side, values in limits.items()
        if not _same(values, getattr(there, side))
    }
    if not metadata and not spec:
        return f"quota {name} is as it should be", None
    guarded = {**metadata, "resourceVersion": there.version} if there.version else metadata
    body = {"metadata": guarded, **({"spec": spec} if spec else {})}
    return f"quota {name} updated", actions.Merge(resource, name, body, wanted.namespace)


def _differing(values: Mapping[str, str], present: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in values.items() if present.get(key) != value}


def _same(values: Mapping[str, str], present: Mapping[str, str]) -> bool:
    return values.keys() == present.keys() and all(
        quantity.equal(value, present[key]) for key, value in values.items()
    )
