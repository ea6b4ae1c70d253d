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
_Owners = tuple[tuple[str, str], ...]
"""Kind and name of each."""
_Key = tuple[str, _Owners, tuple[str, ...]]
"""Namespace, owners and images."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Rule:
    """Which pods are looked at."""

    namespaces: parts.Namespaces | None
    label_selector: None = None


@dataclasses.dataclass(frozen=True, slots=True)
class _Feasible:
    """Nodes that may run the pods of some requirements; shared by all groups that have them."""

    names: Sequence[str]
    """In order."""
    rows: protocols.NodeRows


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
        known: dict[placement.OfNodes, _Feasible] = {}
        for alike in self._groups(view):
            wanted = alike[0].wanted
            feasible = known.get(wanted.of_nodes)
            if feasible is None:
                feasible = known[wanted.of_nodes] = _feasible(view, wanted)
            if len(feasible.names) > 1:
                yield from _spread(view, alike, feasible)
            if view.limits.exhausted():
                return candidates.stopped(view)
        return protocols.NO_MEMORY

    def _groups(self, view: protocols.View) -> Iterator[list[podinfo.Pod]]:
        """Yield the pods that are alike, of those of which two share a node."""
        # Pods of one controller and state share what says so.
        shared: dict[tuple[str, int, int], list[podinfo.Pod]] = collections.defaultdict(list)
        for _, pod in candidates.active(view, _Rule(self._arguments.namespaces)):
            namespace = pod.key.partition("/")[0]
            shared[namespace, id(pod.owners), id(pod.containers)].append(pod)
        found: dict[_Key, list[podinfo.Pod]] = collections.defaultdict(list)
        for (namespace, _, _), pods in shared.items():
            if owners := self._owners(pods[0]):
                found[namespace, owners, _images(pods[0])].extend(pods)
        for _, alike in sorted(found.items()):
            if len({pod.node for pod in alike}) < len(alike):
                yield alike

    def _owners(self, pod: podinfo.Pod) -> _Owners:
        """Return the owners of a pod; none where it is not looked at for one of them."""
        if any(owner.kind in self._arguments.exclude_owner_kinds for owner in pod.owners):
            return ()
        return tuple(sorted((owner.kind, owner.name) for owner in pod.owners))


def _images(pod: podinfo.Pod) -> tuple[str, ...]:
    return tuple(sorted([one.image for one in pod.containers]))


def _spread(
    view: protocols.View, alike: Sequence[podinfo.Pod], feasible: _Feasible
) -> protocols.Suggestions:
    most = -(-len(alike) // len(feasible.names))
    counts = collections.Counter(pod.node for pod in alike)
    owner = alike[0].owners[0]
    for pod in pod_order.ordered(alike):
        if view.limits.exhausted():
            break
        if counts[pod.node] <= most:
            continue
        targets: tuple[str, ...] = ()
        if not candidates.is_limited(view, pod):
            if not candidates.may_leave(view, pod):
                continue
            targets = _fewer(pod, feasible, counts, most)
            if not targets:
                continue
        reason = (
            f"{counts[pod.node]} pods of {owner.kind} {owner.name} share node {pod.node},"
            f" {most} would if they were spread evenly"
        )
        answer = yield protocols.Suggestion(pod, NAME, reason, protocols.Purpose.COMPLY, targets)
        if answer:
            counts[pod.node] -= 1
            counts[candidates.landing(answer, targets)] += 1
    return protocols.NO_MEMORY


def _fewer(
    pod: podinfo.Pod, feasible: _Feasible, counts: collections.Counter[str], most: int
) -> tuple[str, ...]:
    """Return the nodes that take a pod and have too few like it, those with fewest first.

    Mostly nodes have none: they are in order already and are not sorted.
    """
    takers = list(itertools.compress(feasible.names, feasible.rows.fitting(pod).tolist()))
    held = {name for name, count in counts.items() if count}
    some = [name for name in takers if name in held and counts[name] < most]
    none = [name for name in takers if name not in held]
    return (*none, *sorted(some, key=counts.__getitem__))


def _feasible(view: protocols.View, wanted: placement.Requirements) -> _Feasible:
    names = sorted(node.name for node in view.nodes if _may_run(wanted, node))
    return _Feasible(names, view.fit.rows(names))


def _may_run(wanted: placement.Requirements, node: nodeinfo.Node) -> bool:
    return node.is_schedulable and placement.eligible(wanted, node.name, node.labels, node.taints)
