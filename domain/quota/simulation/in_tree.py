"""DefaultPreemption of kube-scheduler: who has to leave a full node for a more important pod. Pure.

It knows nothing of quotas: per node all pods of lower priority leave, and as many as still fit are
put back, those that a PodDisruptionBudget protects first, then the most important.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from domain.quota.simulation import fit, what_if

Violating = Callable[[Sequence[str]], Collection[str]]
"""Returns the uids of those, in this order, whose eviction a disruption budget would refuse."""


class Proposal(NamedTuple):
    """Who would leave one node."""

    node: str
    victims: tuple[what_if.Pod, ...]
    violations: int

    @property
    def cost(self) -> tuple[float, ...]:
        """Return by what kube-scheduler orders nodes; the least is chosen.

        Fewest violated budgets, lowest priority of the most important victim, smallest sum of
        priorities, fewest victims, latest start of the most important victims.
        """
        priorities = [pod.line.priority for pod in self.victims]
        top = max(priorities)
        started = min(pod.started_at for pod in self.victims if pod.line.priority == top)
        total = sum(priority + (1 << 31) for priority in priorities)
        return self.violations, top, total, len(priorities), -started


def proposals(
    nodes: fit.Table, pods: Iterable[what_if.Pod], pod: what_if.Pod, violating: Violating
) -> list[Proposal]:
    """Return the nodes without room on which victims make some, by name of the node."""
    lower: dict[str, list[what_if.Pod]] = {}
    for other in pods:
        if other.node and other.line.priority < pod.line.priority:
            lower.setdefault(other.node, []).append(other)
    found = (
        _on_node(nodes, pod, node.name, lower[node.name], violating)
        for node in nodes.nodes
        if node.name in lower
    )
    return [one for one in found if one is not None]


def _on_node(
    nodes: fit.Table,
    pod: what_if.Pod,
    node: str,
    lower: Sequence[what_if.Pod],
    violating: Violating,
) -> Proposal | None:
    wanted = pod.line.placement
    freed = requested(lower)
    # Where it has room already, only filters of others refuse it.
    if nodes.takes(node, pod.asks, wanted) or not nodes.takes(node, pod.asks, wanted, freed):
        return None
    ordered = sorted(lower, key=_importance)
    protected = violating([one.uid for one in ordered])
    ordered.sort(key=lambda one: one.uid not in protected)
    victims: list[what_if.Pod] = []
    for one in ordered:
        without = {key: amount - one.asks.get(key, 0) for key, amount in freed.items()}
        if nodes.takes(node, pod.asks, wanted, without):
            freed = without
        else:
            victims.append(one)
    violations = sum(one.uid in protected for one in victims)
    return Proposal(node, tuple(victims), violations)


def _importance(pod: what_if.Pod) -> tuple[int, float, str]:
    return -pod.line.priority, pod.started_at, pod.key


def requested(pods: Sequence[what_if.Pod]) -> dict[str, int]:
    """Return what pods request together."""
    total: dict[str, int] = {}
    for pod in pods:
        for key, amount in pod.asks.items():
            total[key] = total.get(key, 0) + amount
    return total
