"""Which pods should go first so that scaling in empties nodes."""

import collections
import dataclasses
import itertools
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


class Measure:
    """The size of pods on nodes of one size: the weighted part of a node that they request."""

    __slots__ = ("_factors", "_known")

    def __init__(self, factors: Sequence[tuple[str, float]]) -> None:
        """By resource, what one unit of it weighs."""
        self._factors = factors
        self._known: dict[int, float] = {}

    def size(self, pod: podinfo.Pod) -> float:
        """Return the size of a pod of the round; pods of one template share what they request."""
        requests = pod.requests
        found = self._known.get(id(requests))
        if found is None:
            found = sum([requests.get(name, 0) * factor for name, factor in self._factors])
            self._known[id(requests)] = found
        return found


class Scale:
    """Measures requests of pods by weighted parts of what their node has."""

    __slots__ = ("_allocatable", "_by_factors", "_has", "_resources", "_room", "_weights")

    def __init__(self, room: node_room.Room, weights: Mapping[str, float]) -> None:
        self._room = room
        self._resources = tuple(weights)
        self._weights = np.array([weights[name] for name in self._resources], np.float64)
        _, self._allocatable = room.amounts(self._resources)
        self._has: list[list[int]] = self._allocatable.tolist()
        self._by_factors: dict[tuple[tuple[str, float], ...], Measure] = {}

    def on(self, node: str) -> Measure:
        """Return the measure of a node, which those of its size share."""
        factors = tuple(self._factors(self._has[self._room.row(node)]))
        found = self._by_factors.get(factors)
        if found is None:
            found = self._by_factors[factors] = Measure(factors)
        return found

    def _factors(self, has: Sequence[int]) -> Iterator[tuple[str, float]]:
        """Yield what one unit of each resource weighs on a node."""
        weighed = zip(self._resources, has, self._weights.tolist(), strict=True)
        return ((name, weight / amount) for name, amount, weight in weighed if amount > 0)

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
    size = scale.on(one.node).size
    staying = sum([size(pod) for pod in (*one.kept, *one.others)])
    going = sum([size(pod) for pod in one.evictable])
    if going:
        return staying / going
    return float("inf") if staying else 0.0


def _largest_first(one: Members, scale: Scale) -> Sequence[podinfo.Pod]:
    size = scale.on(one.node).size
    return sorted(one.evictable, key=lambda pod: (-size(pod), -pod.created, pod.key))


_Ranked = tuple[int, podinfo.Pod]
"""A pod and the deletion cost that it should have."""


def unwritten(order: Iterable[podinfo.Pod], kept: Iterable[podinfo.Pod]) -> Iterator[_Ranked]:
    """Yield the pods whose deletion cost has to be written: their rank, or that they stay.

    Kubernetes compares costs among the pods of one controller alone, so those of a controller whose
    pods are in the wanted order already stay as they are.
    """
    found: dict[str, list[_Ranked]] = collections.defaultdict(list)
    controllers: dict[int, str] = {}
    for ranked_pod in itertools.chain(
        enumerate(order), zip(itertools.repeat(annotations.NEVER_EVICT), kept, strict=False)
    ):
        pod = ranked_pod[1]
        # Pods of one controller share what says so.
        uid = controllers.get(id(pod.owners))
        if uid is None:
            controller = pod.controller
            uid = controllers[id(pod.owners)] = controller.uid if controller is not None else ""
        found[uid or pod.uid].append(ranked_pod)
    return itertools.chain.from_iterable(group for group in found.values() if not _in_order(group))


def _in_order(group: Iterable[_Ranked]) -> bool:
    """Whether the costs of pods are written in their order, by rank."""
    last = -1
    for wanted, pod in group:
        if names.ANNOTATION_POD_DELETION_COST not in pod.annotations:
            return False
        cost = annotations.deletion_cost(pod.annotations)
        never = wanted == annotations.NEVER_EVICT
        if never != (cost == annotations.NEVER_EVICT) or (cost <= last and not never):
            return False
        last = cost
    return True
