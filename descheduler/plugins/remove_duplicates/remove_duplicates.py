"""Spread the pods of one owner over the nodes that may run them."""

import collections
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from descheduler.configuration.arguments import compliance, parts
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates
from descheduler.framework.pods import pod_order
from descheduler.model import nodeinfo, podinfo
from domain.quota import placement

NAME: Final = "RemoveDuplicates"
_Key = tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]
"""Namespace, owners and images."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Rule:
    """Which pods are looked at."""

    namespaces: parts.Namespaces | None
    label_selector: None = None


class RemoveDuplicates:
    """Pods are alike that have the same owners and images.

    A node keeps as many of them as each feasible node would have if they were spread evenly,
    rounded up. The others leave for nodes with fewer.
    """

    name = NAME

    def __init__(self, arguments: compliance.RemoveDuplicatesArgs) -> None:
        self._arguments = arguments

    def balance(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest pods that are too many on their node."""
        del memory
        feasible: dict[placement.Requirements, list[str]] = {}
        for alike in self._groups(view):
            wanted = alike[0].wanted
            if wanted not in feasible:
                feasible[wanted] = [one.name for one in view.nodes if _may_run(wanted, one)]
            if len(feasible[wanted]) > 1:
                yield from _spread(view, alike, feasible[wanted])
        return protocols.NO_MEMORY

    def _groups(self, view: protocols.View) -> Iterator[list[podinfo.Pod]]:
        """Yield the pods that are alike, of those of which two share a node."""
        found: dict[_Key, list[podinfo.Pod]] = {}
        for _, pod in candidates.active(view, _Rule(self._arguments.namespaces)):
            kinds = {owner.kind for owner in pod.owners}
            if kinds and kinds.isdisjoint(self._arguments.exclude_owner_kinds):
                found.setdefault(_key(pod), []).append(pod)
        for _, alike in sorted(found.items()):
            if len({pod.node for pod in alike}) < len(alike):
                yield alike


def _key(pod: podinfo.Pod) -> _Key:
    owners = tuple(sorted((owner.kind, owner.name) for owner in pod.owners))
    return pod.namespace, owners, tuple(sorted(one.image for one in pod.containers))


def _spread(
    view: protocols.View, alike: Sequence[podinfo.Pod], feasible: Sequence[str]
) -> protocols.Suggestions:
    most = -(-len(alike) // len(feasible))
    counts = collections.Counter(pod.node for pod in alike)
    owner = alike[0].owners[0]
    rows = view.fit.rows(feasible)
    for pod in pod_order.ordered(alike):
        if counts[pod.node] <= most or not candidates.may_leave(view, pod):
            continue
        takers = itertools.compress(feasible, rows.fitting(pod).tolist())
        fewer = [name for name in takers if counts[name] < most]
        if not fewer:
            continue
        targets = tuple(sorted(fewer, key=lambda name: (counts[name], name)))
        reason = (
            f"{counts[pod.node]} pods of {owner.kind} {owner.name} share node {pod.node},"
            f" {most} would if they were spread evenly"
        )
        answer = yield protocols.Suggestion(pod, NAME, reason, protocols.Purpose.COMPLY, targets)
        if answer:
            counts[pod.node] -= 1
            counts[answer.node if isinstance(answer, protocols.Target) else targets[0]] += 1
    return protocols.NO_MEMORY


def _may_run(wanted: placement.Requirements, node: nodeinfo.Node) -> bool:
    return node.is_schedulable and placement.eligible(wanted, node.name, node.labels, node.taints)
