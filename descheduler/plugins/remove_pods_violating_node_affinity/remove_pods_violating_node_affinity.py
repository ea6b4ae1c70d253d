"""Move pods whose node does not have the labels, or not as many of them, that another one has."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates
from descheduler.framework.pods import pod_order, pod_terms
from descheduler.model import nodeinfo, podinfo
from domain.scoring import terms

NAME: Final = "RemovePodsViolatingNodeAffinity"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class RemovePodsViolatingNodeAffinity:
    """Compares the node of a pod with the nodes that would take it.

    A pod leaves a node that its required terms do not select, or one that satisfies less of its
    preferred terms than another; only where such a node has room for it.
    """

    name = NAME

    def __init__(self, arguments: compliance.RemovePodsViolatingNodeAffinityArgs) -> None:
        self._arguments = arguments

    def deschedule(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest pods that break required terms, then those that prefer another node."""
        del memory
        kinds = self._arguments.node_affinity_type
        looked_at = [
            one
            for one in candidates.active(view, self._arguments)
            if one[1].preferred_nodes or _breaks(*one)
        ]
        looked_at.sort(key=lambda one: pod_order.key(one[1]))
        broken = [one for one in looked_at if REQUIRED in kinds and _breaks(*one)]
        left = yield from candidates.in_turn(view, _required(view, broken))
        if left or PREFERRED not in kinds:
            return left
        gone = {pod.uid for _, pod in broken}
        rest = [one for one in looked_at if one[1].preferred_nodes and one[1].uid not in gone]
        return (yield from candidates.in_turn(view, _preferred(view, rest)))


def _breaks(node: nodeinfo.Node, pod: podinfo.Pod) -> bool:
    nodes = pod.wanted.nodes
    return (
        nodes is not None and nodes.terms is not None and not nodes.matches(node.name, node.labels)
    )


def _required(
    view: protocols.View, broken: Iterable[tuple[nodeinfo.Node, podinfo.Pod]]
) -> Iterator[protocols.Suggestion]:
    rows = view.fit.rows([node.name for node in view.nodes])
    for node, pod in broken:
        if rows.fitting(pod).any():
            reason = f"node {node.name} does not satisfy the required node affinity"
            yield protocols.Suggestion(pod, NAME, reason, protocols.Purpose.COMPLY)


def _preferred(
    view: protocols.View, preferring: Iterable[tuple[nodeinfo.Node, podinfo.Pod]]
) -> Iterator[protocols.Suggestion]:
    rows = view.fit.rows([node.name for node in view.nodes])
    weights: dict[str, Mapping[str, int]] = {}
    most_of: dict[str, int] = {}
    for node, pod in preferring:
        key = repr(pod.preferred_nodes)
        if key not in weights:
            weights[key] = _weights(view, pod)
            most_of[key] = max(weights[key].values(), default=0)
        there = weights[key].get(node.name, 0)
        if there == most_of[key]:
            continue
        takers = itertools.compress(view.nodes, rows.fitting(pod).tolist())
        better = tuple(one.name for one in takers if weights[key][one.name] > there)
        if better:
            most = max(weights[key][name] for name in better)
            reason = f"node {node.name} satisfies preferences of weight {there}, others {most}"
            yield protocols.Suggestion(pod, NAME, reason, protocols.Purpose.COMPLY, targets=better)


def _weights(view: protocols.View, pod: podinfo.Pod) -> Mapping[str, int]:
    """Return the weight of all preferred terms that each node satisfies; 0 if unreadable."""
    try:
        wanted = terms.preferences({PREFERRED: pod.preferred_nodes})
        return {
            node.name: sum(
                weight for term, weight in wanted if term.matches(node.name, node.labels)
            )
            for node in view.nodes
        }
    except pod_terms.UNREADABLE:
        return dict.fromkeys((node.name for node in view.nodes), 0)
