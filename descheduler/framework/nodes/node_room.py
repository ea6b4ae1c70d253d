"""What pods request of nodes, and what is left, while pods move in thought. Pure.

A plug-in that suggests several pods keeps count here of those that leave, so that the second of
them is not sent to room that the first one takes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from descheduler.framework import protocols
from descheduler.framework.nodes import node_requests, pod_affinity
from descheduler.model import nodeinfo, podinfo
from domain.quota.simulation import fit

Flags = npt.NDArray[np.bool_]
"""One flag per node, in the order of `names`."""
Counts = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]
_MOST: Final = 1 << 62
_LARGEST: Final = 1 << 53
"""Of one pod, so that many may move in thought within 64 bits.

Amounts that no node has are written by people; they must not end the plug-in for all nodes.
"""


class Room:
    """Requests of the pods on the nodes of a profile; changes while pods come and go."""

    __slots__ = (
        *("_affinity", "_at", "_changes", "_columns", "_free", "_held", "_offered"),
        *("largest", "names", "nodes"),
    )

    def __init__(self, view: protocols.View) -> None:
        self.nodes: Sequence[nodeinfo.Node] = sorted(view.nodes, key=lambda node: node.name)
        self.names: Final = tuple(node.name for node in self.nodes)
        self._at = {name: row for row, name in enumerate(self.names)}
        requested = node_requests.requested(view.picture)
        self._held = [requested.get(name, podinfo.NOTHING) for name in self.names]
        self.largest: Final[Mapping[str, int]] = _largest(self.nodes)
        """What the largest node has of each resource, of those of which some node has any."""
        self._free = fit.Table(map(_row, self.nodes, self._held))
        self._offered = frozenset[str]().union(*(node.allocatable for node in self.nodes))
        self._affinity = pod_affinity.PodAffinity(view.picture, self.names)
        self._columns: dict[str, tuple[Counts, Counts]] = {}
        self._changes: dict[int, dict[str, int]] = {}

    def _column(self, resource: str) -> tuple[Counts, Counts]:
        """Return what is requested and what is allocatable of a resource that is asked about.

        One node may offer thousands of resources that no pod requests.
        """
        found = self._columns.get(resource)
        if found is None:
            requested = _one_column(self._held, resource)
            allocatable = _one_column((node.allocatable for node in self.nodes), resource)
            for row, amounts in self._changes.items():
                requested[row] += amounts.get(resource, 0)
            found = self._columns[resource] = requested, allocatable
        return found

    def _count(self, pod: podinfo.Pod, node: str, sign: int) -> None:
        row = self._at.get(node)
        if row is None:
            return
        changes = self._changes.setdefault(row, {})
        for resource, amount in pod.requests.items():
            more = sign * _bounded(amount, _LARGEST)
            changes[resource] = changes.get(resource, 0) + more
            if resource in self._columns:
                self._columns[resource][0][row] += more
        if sign > 0:
            self._free.take(node, pod.requests)
        else:
            self._free.give_back(node, pod.requests)

    def move(self, pod: podinfo.Pod, target: str) -> None:
        """Count a pod on another node than its own from here on; on none where that is empty."""
        self._count(pod, pod.node, -1)
        self._count(pod, target, 1)
        self._affinity.place(pod, target)

    def take_back(self, pod: podinfo.Pod, target: str) -> None:
        """Count a pod on its own node again."""
        self._count(pod, target, -1)
        self._count(pod, pod.node, 1)
        self._affinity.place(pod, pod.node)

    def row(self, node: str) -> int:
        """Return where a node stands in `names`."""
        return self._at[node]

    def flags(self, nodes: Collection[str]) -> Flags:
        """Return a flag that is set for some nodes."""
        found = np.zeros(len(self.names), np.bool_)
        found[[self._at[name] for name in nodes if name in self._at]] = True
        return found

    def listed(self, flags: Flags) -> tuple[str, ...]:
        """Return the names of the nodes whose flag is set."""
        return tuple(self.names[row] for row in np.flatnonzero(flags).tolist())

    def takers(self, pod: podinfo.Pod) -> Flags:
        """Return which nodes other than its own may run a pod and have room for it."""
        found = self._free.fitting(pod.requests, pod.wanted)
        own = self._at.get(pod.node)
        if own is not None:
            found[own] = False
        allowed = self._affinity.fitting(pod)
        return found if allowed is None else found & allowed

    def amounts(self, resources: Sequence[str]) -> tuple[Counts, Counts]:
        """Return what is requested and what is allocatable, one column per resource."""
        found = np.zeros((2, len(self.names), len(resources)), np.int64)
        for at, name in enumerate(resources):
            if name in self._offered:
                found[0, :, at], found[1, :, at] = self._column(name)
        return found[0], found[1]

    def shares(self, resources: Sequence[str]) -> Shares:
        """Return what part of each resource is requested, 0 where a node has none of it."""
        requested, allocatable = self.amounts(resources)
        return parts(requested, allocatable)


def _row(node: nodeinfo.Node, held: podinfo.Amounts) -> fit.Node:
    free = {key: amount - held.get(key, 0) for key, amount in node.allocatable.items()}
    return fit.Node(node.name, node.labels, node.taints, free, node.is_schedulable)


def _largest(nodes: Iterable[nodeinfo.Node]) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in nodes:
        for key, amount in node.allocatable.items():
            if amount > found.get(key, 0):
                found[key] = min(amount, _MOST)
    return found


def _one_column(rows: Iterable[podinfo.Amounts], resource: str) -> Counts:
    return np.array([_bounded(one.get(resource, 0), _MOST) for one in rows], np.int64)


def asked(pod: podinfo.Pod, resources: Sequence[str]) -> Counts:
    """Return what a pod requests, one column per resource."""
    return np.array([_bounded(pod.requests.get(name, 0), _LARGEST) for name in resources], np.int64)


def _bounded(amount: int, most: int) -> int:
    return max(-most, min(amount, most))


def parts(amounts: Counts, allocatable: Counts) -> Shares:
    """Return what part of what is allocatable some amounts are, 0 where there is none."""
    found: Shares = np.divide(
        amounts, allocatable, out=np.zeros(amounts.shape, np.float64), where=allocatable > 0
    )
    return found
