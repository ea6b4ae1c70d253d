"""Topology spread constraints as values, and the domains of nodes that they count."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, Final

from api.kubernetes import core, selectors
from descheduler.framework.pods import pod_terms
from descheduler.model import nodeinfo, podinfo
from domain.scoring import terms

HARD: Final = "DoNotSchedule"


@dataclasses.dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint of the pods of a namespace, and the nodes that count for it."""

    namespace: str
    topology_key: str
    max_skew: int
    is_hard: bool
    selector: terms.Selector
    nodes: terms.NodeRequirements | None
    """Nodes that count (`nodeAffinityPolicy: Honor`); all where it is None."""
    tolerations: tuple[core.Toleration, ...] | None
    """Taints of nodes that count (`nodeTaintsPolicy: Honor`); any where it is None."""

    def domain(self, node: nodeinfo.Node) -> str:
        """Return the domain of a node, empty where the node does not count."""
        if self.nodes is not None and not self.nodes.matches(node.name, node.labels):
            return ""
        if self.tolerations is not None and not selectors.tolerated(node.taints, self.tolerations):
            return ""
        return node.labels.get(self.topology_key, "")

    def counts(self, pod: podinfo.Pod) -> bool:
        """Whether a pod of the namespace is counted."""
        return self.selector.matches(pod.labels)


def of_pod(pod: podinfo.Pod, kinds: Collection[str]) -> tuple[Constraint, ...]:
    """Return the constraints of a pod of some kinds; none where they cannot be read."""
    if len(pod.spread) > pod_terms.MOST:
        return ()
    try:
        return tuple(
            found
            for written in pod.spread
            if str(written.get("whenUnsatisfiable", HARD)) in kinds
            and (found := _constraint(written, pod)) is not None
        )
    except pod_terms.UNREADABLE:
        return ()


def _constraint(written: Mapping[str, Any], pod: podinfo.Pod) -> Constraint | None:
    selector = pod_terms.selector_with(written, pod.labels)
    skew, key = int(written["maxSkew"]), str(written["topologyKey"])
    if selector is None or skew < 1 or not key:
        return None
    by_affinity = written.get("nodeAffinityPolicy", "Honor") == "Honor"
    by_taints = written.get("nodeTaintsPolicy", "Ignore") == "Honor"
    return Constraint(
        pod.namespace,
        key,
        skew,
        written.get("whenUnsatisfiable", HARD) == HARD,
        selector,
        pod.wanted.nodes if by_affinity else None,
        pod.wanted.tolerations if by_taints else None,
    )
