"""Whether nodes take a pod, as `nodeFit` of plug-ins means it. Pure.

The table holds what is free of every node in one picture. Labels, taints and affinity to pods count
as well, volumes do not: what the scheduler would say is asked of the `Targets` of a round.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from descheduler.framework import protocols
from descheduler.framework.nodes import node_requests, pod_affinity
from descheduler.model import nodeinfo, picture, podinfo
from domain.quota import placement
from domain.quota.simulation import fit

Flags = npt.NDArray[np.bool_]
_MOST: Final = 1 << 62
_Signature = tuple[placement.Requirements, tuple[tuple[str, int], ...]]


class Table:
    """What is allocatable on nodes less what their pods request, in one picture.

    Pods that require and request the same, as those of one workload do, are looked at once. What
    affinity to pods forbids depends on where each pod is itself.
    """

    __slots__ = ("_affinity", "_at", "_free", "_takers")

    def __init__(self, seen: picture.Picture) -> None:
        held = node_requests.requested(seen)
        self._free = fit.Table(
            _node(node, held.get(node.name, podinfo.NOTHING)) for node in seen.nodes.values()
        )
        self._at = {node.name: row for row, node in enumerate(self._free.nodes)}
        self._takers: dict[_Signature, Flags] = {}
        self._affinity = pod_affinity.PodAffinity(seen, list(self._at))

    def rows(self, among: Sequence[str]) -> protocols.NodeRows:
        """Return these nodes in this order, for questions about many pods."""
        return _Rows(self, np.array([self._at.get(name, -1) for name in among], dtype=np.int64))

    def takers(self, pod: podinfo.Pod) -> Flags:
        """Return which of all nodes take the pod, were it alone; the last flag is of no node."""
        signature = _signature(pod)
        found = self._takers.get(signature)
        if found is None:
            found = np.append(self._free.fitting(pod.requests, pod.wanted), False)
            self._takers[signature] = found
        return found

    def near_others(self, pod: podinfo.Pod) -> Flags | None:
        """Return the same by affinity to pods; None where all nodes take the pod."""
        allowed = self._affinity.fitting(pod)
        return None if allowed is None else np.append(allowed, False)


class _Rows:
    """Some nodes of a table in an order of their own."""

    __slots__ = ("_found", "_rows", "_table")

    def __init__(self, table: Table, rows: npt.NDArray[np.int64]) -> None:
        self._table, self._rows = table, rows
        self._found: dict[_Signature, Flags] = {}

    def fitting(self, pod: podinfo.Pod) -> Flags:
        """Return which of the nodes take the pod, one flag per node; read-only."""
        signature = _signature(pod)
        found = self._found.get(signature)
        if found is None:
            found = self._table.takers(pod)[self._rows]
            found.flags.writeable = False
            self._found[signature] = found
        allowed = self._table.near_others(pod)
        return found if allowed is None else found & allowed[self._rows]


def _signature(pod: podinfo.Pod) -> _Signature:
    return pod.wanted, tuple(pod.requests.items())


def _node(node: nodeinfo.Node, held: podinfo.Amounts) -> fit.Node:
    free = {key: amount - held.get(key, 0) for key, amount in node.allocatable.items()}
    # Amounts that no node has are written by people; they must not end the round for all nodes.
    bounded = {key: max(-_MOST, min(amount, _MOST)) for key, amount in free.items()}
    return fit.Node(node.name, node.labels, node.taints, bounded, node.is_schedulable)
