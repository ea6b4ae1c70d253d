"""Whom to evict so that a more important pod fits, by in-tree checks alone; pure."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from api.kubernetes import selectors
from simulator.scheduler import intree


@dataclasses.dataclass(frozen=True, slots=True)
class Victims:
    """Who would have to leave a node, and how many budgets that would break."""

    pods: tuple[intree.PodInfo, ...]
    violations: int


@dataclasses.dataclass(frozen=True, slots=True)
class Budget:
    """How many pods of a selection may be disrupted now."""

    namespace: str
    selector: Mapping[str, Any]
    allowed: int


REASON = "PreemptionByScheduler"

Nominated = Callable[[str], Sequence[intree.PodInfo]]
"""Returns who was promised room on a node and may not be overtaken."""


_OFFSET = 1 << 31


def _nobody(_node: str) -> Sequence[intree.PodInfo]:
    return ()


def read_budget(raw: Mapping[str, Any]) -> Budget:
    """Read what matters of a PodDisruptionBudget."""
    return Budget(
        namespace=raw["metadata"]["namespace"],
        selector=raw["spec"].get("selector") or {},
        allowed=int(raw.get("status", {}).get("disruptionsAllowed", 0)),
    )


def obstacle(pod: intree.PodInfo, node: intree.NodeInfo | None) -> str:
    """Say why looking for victims makes no sense now, empty when it does.

    `node` is where the pod was nominated and may still fit: while less important pods leave it
    that were preempted, the pod waits.
    """
    if pod.raw["spec"].get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    waits = node is not None and any(
        other.priority < pod.priority and leaving(other) and _preempted(other)
        for other in node.pods.values()
    )
    return "not eligible due to a terminating pod on the nominated node." if waits else ""


def leaving(pod: intree.PodInfo) -> bool:
    """Whether a pod is being deleted already."""
    return "deletionTimestamp" in pod.raw["metadata"]


def _preempted(pod: intree.PodInfo) -> bool:
    conditions = (pod.raw.get("status") or {}).get("conditions") or ()
    return any(
        (one.get("type"), one.get("status"), one.get("reason"))
        == ("DisruptionTarget", "True", REASON)
        for one in conditions
    )


def candidates(
    pod: intree.PodInfo,
    nodes: Iterable[intree.NodeInfo],
    budgets: Sequence[Budget],
    nominated: Nominated = _nobody,
) -> dict[str, Victims]:
    """Return the nodes where evicting less important pods makes room, with the fewest victims.

    A node that fits already, because only an extender refused it, needs no victim and drops out.
    """
    found = {}
    for node in nodes:
        victims = _victims(pod, node, budgets, nominated(node.name))
        if victims is not None and victims.pods:
            found[node.name] = victims
    return found


def best(offered: Mapping[str, Victims]) -> str | None:
    """Choose the node whose victims matter least, None when there is none."""
    if not offered:
        return None
    return min(offered, key=lambda name: _cost(offered[name]))


def _cost(victims: Victims) -> tuple[int, int, int, int, tuple[int, ...]]:
    highest = max(pod.priority for pod in victims.pods)
    # What started last among the most important victims is the smallest loss.
    started = min(pod.started for pod in victims.pods if pod.priority == highest)
    return (
        victims.violations,
        highest,
        # Of pods of whatever priority fewer are better, as with the stock scheduler.
        sum(pod.priority + _OFFSET for pod in victims.pods),
        len(victims.pods),
        tuple(-ord(letter) for letter in started),
    )


def _victims(
    pod: intree.PodInfo,
    node: intree.NodeInfo,
    budgets: Sequence[Budget],
    nominated: Sequence[intree.PodInfo],
) -> Victims | None:
    lower = [other for other in node.pods.values() if other.priority < pod.priority]
    kept = {uid: other for uid, other in node.pods.items() if other.priority >= pod.priority}
    if not lower or intree.check(pod, node.with_pods(kept), nominated) is not None:
        return None
    breaking, harmless = _split(lower, budgets)
    victims: list[intree.PodInfo] = []
    violations = 0
    for other in (*breaking, *harmless):
        tried = {**kept, other.uid: other}
        if intree.check(pod, node.with_pods(tried), nominated) is None:
            kept = tried
        else:
            victims.append(other)
            violations += other in breaking
    return Victims(tuple(victims), violations)


def _split(
    pods: Sequence[intree.PodInfo], budgets: Sequence[Budget]
) -> tuple[list[intree.PodInfo], list[intree.PodInfo]]:
    """Tell apart whose eviction breaks a budget; the most important come first in both."""
    left = [budget.allowed for budget in budgets]
    breaking: list[intree.PodInfo] = []
    harmless: list[intree.PodInfo] = []
    for pod in sorted(pods, key=lambda p: (-p.priority, p.started)):
        broken = False
        for index, budget in enumerate(budgets):
            if pod.namespace == budget.namespace and selectors.matches(budget.selector, pod.labels):
                left[index] -= 1
                broken = broken or left[index] < 0
        (breaking if broken else harmless).append(pod)
    return breaking, harmless
