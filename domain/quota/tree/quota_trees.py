"""Which quota a pod belongs to, and which nodes its tree of quotas is made of. Pure."""

import dataclasses
import types
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from api import names
from api.koordinator import quota
from api.koordinator.metadata import annotations
from api.kubernetes import meta
from api.wire import base, quantity

NODE_AFFINITY: Final = "nodeAffinity"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_YOUNGEST: Final = "~"
"""After every RFC 3339 time."""
_NOTHING: Final[Mapping[str, int]] = types.MappingProxyType({})


class Member(NamedTuple):
    """What admission has to know of a quota; amounts as ``quantity.amount`` counts."""

    name: str
    namespace: str
    tree: str = ""
    is_parent: bool = False
    namespaces: tuple[str, ...] = ()
    parent: str = names.ROOT_QUOTA
    is_root: bool = False
    """Whether it is the root of a tree of its own."""
    is_forced: bool = False
    """Whether it may be written although amounts do not add up (allow-force-update)."""
    minimum: Mapping[str, int] = _NOTHING
    cap: Mapping[str, int] = _NOTHING
    """The most it may use: the smaller of max and hard."""
    guaranteed: Mapping[str, int] = _NOTHING
    """What the scheduler says is guaranteed at this moment."""
    created: str = ""
    """When it was created, RFC 3339; empty for one that is not stored yet."""
    group: str = ""
    """API group of the object."""

    @property
    def key(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class Pool(NamedTuple):
    """The nodes that a tree of quotas shares out, as an ElasticQuotaProfile says it."""

    key: str
    tree: str
    selector: meta.LabelSelector


@dataclasses.dataclass(frozen=True, slots=True)
class Trees:
    """All quotas and pools, found by what pods know."""

    by_name: Mapping[str, Member] = dataclasses.field(default_factory=dict)
    by_namespace: Mapping[str, Member] = dataclasses.field(default_factory=dict)
    pools: Mapping[str, Pool] = dataclasses.field(default_factory=dict)
    """Tree to its pool."""
    children: Mapping[str, tuple[Member, ...]] = dataclasses.field(default_factory=dict)
    """Quota name to the quotas below it, by name."""

    def with_named(self, name: str, found: Iterable[Member]) -> "Trees":
        """Return the same trees where these quotas alone have a name."""
        others = (one for one in self.by_name.values() if one.name != name)
        return trees((*others, *found), self.pools.values())

    def of_pod(
        self, labels: Mapping[str, str], namespace: str, *, default: bool = True
    ) -> Member | None:
        """Return the quota of a pod, None for the default quota or one that is not known.

        Without `default` a pod without the label has none.
        """
        named = labels.get(names.LABEL_QUOTA_NAME)
        if named or not default:
            return self.by_name.get(named or "")
        return self.by_namespace.get(namespace)


NONE: Final = Trees()


def member(raw: Mapping[str, Any]) -> Member:
    """Read what admission has to know of an ElasticQuota of any group.

    Raises a base.ReadError for what has not the shape of a quota.
    """
    found = quota.review_written(raw).value
    metadata = base.section(raw, "metadata")
    labels = base.section(metadata, "labels")
    return Member(
        found.name,
        found.namespace,
        found.tree,
        found.is_parent,
        found.namespaces,
        found.parent,
        found.is_root,
        labels.get(names.LABEL_QUOTA_FORCE_UPDATE) == "true",
        found.minimum,
        found.cap,
        _guaranteed(base.section(metadata, "annotations")),
        str(metadata.get("creationTimestamp") or ""),
        found.resource.group,
    )


def _guaranteed(notes: Mapping[str, Any]) -> Mapping[str, int]:
    """Return what the scheduler wrote; what cannot be read guarantees nothing."""
    try:
        return quota.amounts(annotations.QUOTA_GUARANTEED.read(notes) or {})
    except (base.ReadError, quantity.QuantityError):
        return {}


def trees(members: Iterable[Member], pools: Iterable[Pool]) -> Trees:
    """Index quotas and pools; where several claim a name, the oldest counts."""
    in_order = sorted(members, key=lambda one: (one.created or _YOUNGEST, one.namespace))
    by_name: dict[str, Member] = {}
    below: dict[str, list[Member]] = {}
    bound: dict[str, Member] = {}
    own: dict[str, Member] = {}
    for member in in_order:
        if by_name.setdefault(member.name, member) is not member:
            continue
        if not member.name == member.parent == names.ROOT_QUOTA:
            below.setdefault(member.parent, []).append(member)
        if member.name == member.namespace:
            own[member.namespace] = member
    # A quota may name thousands; the oldest that names one is put last, and stays.
    for member in reversed(by_name.values()):
        bound.update(dict.fromkeys(member.namespaces, member))
    chosen: dict[str, Pool] = {}
    for pool in sorted(pools):
        chosen.setdefault(pool.tree, pool)
    children = {name: tuple(sorted(found)) for name, found in below.items()}
    return Trees(by_name, {**bound, **own}, chosen, children)


def requirements(selector: meta.LabelSelector) -> list[dict[str, Any]]:
    """Return a label selector in the words of node affinity."""
    equal = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in sorted(selector.match_labels.items())
    ]
    others = [
        {"key": one.key, "operator": one.operator, "values": list(one.values)}
        if one.values
        else {"key": one.key, "operator": one.operator}
        for one in selector.match_expressions
    ]
    return equal + others


def within(affinity: Any, wanted: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an affinity that also demands this of the node, in each of its alternatives."""
    whole = dict(affinity) if isinstance(affinity, Mapping) else {}
    node = dict(whole.get(NODE_AFFINITY) or {})
    required = dict(node.get(REQUIRED) or {})
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [_narrowed(term, wanted) for term in terms]
    node[REQUIRED] = required
    whole[NODE_AFFINITY] = node
    return whole


def _narrowed(term: Mapping[str, Any], wanted: list[dict[str, Any]]) -> dict[str, Any]:
    present = list(term.get("matchExpressions") or ())
    missing = [one for one in wanted if one not in present]
    return {**term, "matchExpressions": present + missing} if missing else dict(term)
