"""Filters of the stock scheduler that look at pods of other nodes; pure.

Required anti-affinity to pods (InterPodAffinity) and topology spread that forbids nodes
(PodTopologySpread). Admission refuses by name what of them is not implemented here.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from api.kubernetes import selectors
from simulator.scheduler import intree, snapshot

Term = Mapping[str, Any]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
OWN_RULES: Final = "node(s) didn't match pod anti-affinity rules"
THEIR_RULES: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD: Final = "node(s) didn't match pod topology spread constraints"
NO_LABEL: Final = f"{SPREAD} (missing required label)"


def check(
    pod: intree.PodInfo, node: intree.NodeInfo, view: snapshot.Snapshot
) -> intree.Refusal | None:
    """Return the refusal of a node because of pods there or elsewhere, None when there is none.

    None is resolvable: the preemption of the stand-in looks at one node only.
    """
    if reason := _skewed(pod, node, view):
        return intree.Refusal("PodTopologySpread", (reason,), resolvable=False)
    if any(_meets(term, pod, node, view) for term in repelling_terms(pod.raw["spec"])):
        return intree.Refusal("InterPodAffinity", (OWN_RULES,), resolvable=False)
    for other, where in view.repelling():
        if other.uid != pod.uid and _repels(other, where, pod, node):
            return intree.Refusal("InterPodAffinity", (THEIR_RULES,), resolvable=False)
    return None


def repelling_terms(spec: intree.Object) -> tuple[Term, ...]:
    """Return the terms of required anti-affinity to pods."""
    affinity = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
    return tuple(affinity.get(_REQUIRED) or ())


def forbidding(spec: intree.Object) -> tuple[Term, ...]:
    """Return the spread constraints that forbid nodes."""
    listed = spec.get("topologySpreadConstraints") or ()
    return tuple(one for one in listed if one.get("whenUnsatisfiable") == "DoNotSchedule")


def _labels(node: intree.NodeInfo) -> Mapping[str, str]:
    found: Mapping[str, str] = node.raw["metadata"].get("labels") or {}
    return found


def _selects(term: Term, owner: intree.PodInfo, other: intree.PodInfo) -> bool:
    namespaces = term.get("namespaces") or (owner.namespace,)
    return other.namespace in namespaces and selectors.matches(
        term.get("labelSelector"), other.labels
    )


def _meets(term: Term, pod: intree.PodInfo, node: intree.NodeInfo, view: snapshot.Snapshot) -> bool:
    """Whether a pod that a term repels is in the domain of a node."""
    key = term["topologyKey"]
    domain = _labels(node).get(key)
    return domain is not None and any(
        other.uid != pod.uid and _selects(term, pod, other)
        for there in view.nodes.values()
        if _labels(there).get(key) == domain
        for other in there.pods.values()
    )


def _repels(
    other: intree.PodInfo, where: intree.NodeInfo, pod: intree.PodInfo, node: intree.NodeInfo
) -> bool:
    """Whether a pod that has a node keeps another one away from the domain of that node."""
    for term in repelling_terms(other.raw["spec"]):
        domain = _labels(where).get(term["topologyKey"])
        if domain is None or _labels(node).get(term["topologyKey"]) != domain:
            continue
        if _selects(term, other, pod):
            return True
    return False


def _skewed(pod: intree.PodInfo, node: intree.NodeInfo, view: snapshot.Snapshot) -> str:
    constraints = forbidding(pod.raw["spec"])
    if not constraints:
        return ""
    keys = [one["topologyKey"] for one in constraints]
    if any(key not in _labels(node) for key in keys):
        return NO_LABEL
    counted = [
        one
        for one in view.nodes.values()
        if intree.is_selected(pod, one) and all(key in _labels(one) for key in keys)
    ]
    for one in constraints:
        there = _counts(one, pod, counted)
        mine = there.get(_labels(node)[one["topologyKey"]], 0)
        own = selectors.matches(one.get("labelSelector"), pod.labels)
        if mine + own - min(there.values(), default=0) > one["maxSkew"]:
            return SPREAD
    return ""


def _counts(
    constraint: Term, pod: intree.PodInfo, nodes: Iterable[intree.NodeInfo]
) -> dict[str, int]:
    """Return how many matching pods each domain has."""
    total: dict[str, int] = {}
    for node in nodes:
        domain = _labels(node)[constraint["topologyKey"]]
        total[domain] = total.get(domain, 0) + sum(
            other.uid != pod.uid
            and other.namespace == pod.namespace
            and "deletionTimestamp" not in other.raw["metadata"]
            and selectors.matches(constraint.get("labelSelector"), other.labels)
            for other in node.pods.values()
        )
    return total
