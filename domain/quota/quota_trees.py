"""Which quota a pod belongs to, and which nodes its tree of quotas is made of. Pure."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from api import names
from api.kubernetes import meta

NODE_AFFINITY: Final = "nodeAffinity"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Member(NamedTuple):
    """What admission has to know of a quota."""

    name: str
    namespace: str
    tree: str = ""
    is_parent: bool = False
    namespaces: tuple[str, ...] = ()


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


def trees(members: Iterable[Member], pools: Iterable[Pool]) -> Trees:
    """Index quotas and pools; where several claim a name, the first by namespace counts."""
    in_order = sorted(members, key=lambda one: (one.namespace, one.name))
    by_name: dict[str, Member] = {}
    bound: dict[str, Member] = {}
    own: dict[str, Member] = {}
    for member in in_order:
        by_name.setdefault(member.name, member)
        for namespace in member.namespaces:
            bound.setdefault(namespace, member)
        if member.name == member.namespace:
            own[member.namespace] = member
    chosen: dict[str, Pool] = {}
    for pool in sorted(pools):
        chosen.setdefault(pool.tree, pool)
    return Trees(by_name, {**bound, **own}, chosen)


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
