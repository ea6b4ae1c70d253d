"""Which pods should go first so that scaling in empties nodes."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from api import names
from api.koordinator.metadata import annotations
from descheduler.framework.nodes import node_room
from descheduler.model import podinfo


@dataclasses.dataclass(frozen=True, slots=True)
class Members:
    """The pods of one node as the plug-in sees them."""

    node: str
    evictable: tuple[podinfo.Pod, ...]
    """Pods that the arguments select and that may leave."""
    kept: tuple[podinfo.Pod, ...]
    """Pods that the arguments select and that must stay."""
    others: tuple[podinfo.Pod, ...]


class Scale:
    """Measures requests of pods by weighted parts of what their node has."""

    __slots__ = ("_allocatable", "_factors", "_resources", "_room", "_weights")

    def __init__(self, room: node_room.Room, weights: Mapping[str, float]) -> None:
        self._room = room
        self._resources = tuple(weights)
        self._weights = np.array([weights[name] for name in self._resources], np.float64)
        _, self._allocatable = room.amounts(self._resources)
        self._factors: dict[str, Sequence[tuple[str, float]]] = {}

    def size(self, pod: podinfo.Pod, node: str) -> float:
        """Return the weighted part of a node that a pod requests."""
        factors = self._factors.get(node)
        if factors is None:
            factors = self._factors[node] = self._factors_of(node)
        requests = pod.requests
        return sum([requests.get(name, 0) * factor for name, factor in factors])

    def _factors_of(self, node: str) -> Sequence[tuple[str, float]]:
        """Return what one unit of each resource weighs on a node."""
        has = self._allocatable[self._room.row(node)].tolist()
        weighed = zip(self._resources, has, self._weights.tolist(), strict=True)
        return [(name, weight / amount) for name, amount, weight in weighed if amount > 0]

    def sizes(self, pod: podinfo.Pod) -> node_room.Shares:
        """Return the weighted part of every node that a pod requests."""
        allocatable = self._allocatable
        asked = np.broadcast_to(node_room.asked(pod, self._resources), allocatable.shape)
        found: node_room.Shares = node_room.parts(asked, allocatable) @ self._weights
        return found

    def fullness(self) -> node_room.Shares:
        """Return the weighted part of every node that is requested."""
        found: node_room.Shares = self._room.shares(self._resources) @ self._weights
        return found


def ranked(nodes: Iterable[Members], scale: Scale) -> Iterator[podinfo.Pod]:
    """Yield the evictable pods, those first whose leaving comes closest to emptying a node."""
    having = [(_score(one, scale), one) for one in nodes if one.evictable]
    having.sort(key=lambda pair: (pair[0], len(pair[1].evictable), pair[1].node))
    for _, one in having:
        yield from _largest_first(one, scale)


def _score(one: Members, scale: Scale) -> float:
    """Return how much stays for how much goes; the less, the closer the node is to empty."""
    staying = sum(scale.size(pod, one.node) for pod in (*one.kept, *one.others))
    going = sum(scale.size(pod, one.node) for pod in one.evictable)
    if going:
        return staying / going
    return float("inf") if staying else 0.0


def _largest_first(one: Members, scale: Scale) -> Sequence[podinfo.Pod]:
    return sorted(
        one.evictable,
        key=lambda pod: (-scale.size(pod, one.node), -pod.created, pod.key),
    )


def unwritten(wanted: Mapping[str, int], pods: Iterable[podinfo.Pod]) -> list[podinfo.Pod]:
    """Return the pods whose deletion cost has to be written, by the costs wanted by uid.

    Kubernetes compares costs among the pods of one controller alone, so those of a controller whose
    pods are in the wanted order already stay as they are.
    """
    found: dict[str, list[podinfo.Pod]] = {}
    for pod in pods:
        controller = pod.controller
        found.setdefault(controller.uid if controller is not None else pod.uid, []).append(pod)
    return [pod for group in found.values() if not _in_order(group, wanted) for pod in group]


def _in_order(group: Iterable[podinfo.Pod], wanted: Mapping[str, int]) -> bool:
    last = -1
    for pod in sorted(group, key=lambda one: wanted[one.uid]):
        if names.ANNOTATION_POD_DELETION_COST not in pod.annotations:
            return False
        cost = annotations.deletion_cost(pod.annotations)
        never = wanted[pod.uid] == annotations.NEVER_EVICT
        if never != (cost == annotations.NEVER_EVICT) or (cost <= last and not never):
            return False
        last = cost
    return True
