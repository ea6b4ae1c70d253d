"""What a move heals of fragments: requests out of balance, devices and NUMA zones in part. Pure.

A node whose cpu is requested by 90 percent and whose memory by 28 has room that nothing fits into.
The imbalance of a node is the standard deviation of its requested shares; a hundredth is one point.
Of devices the free part of those that are in use is stuck: ten percent of one is one point. Of CPUs
those are stuck that are free outside the zone with most free ones: each is one point.
"""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from descheduler.model import fragments, nodeinfo, picture, podinfo

_POINTS: Final = 100.0
_PERCENT_PER_POINT: Final = 10.0
_WHOLE: Final = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Stuck:
    """What of a node nothing fits into, in points."""

    requests: float
    devices: float
    cpus: float

    @property
    def total(self) -> float:
        """Return all of it."""
        return self.requests + self.devices + self.cpus


class Fragmentation:
    """Fragments of nodes, as the moves so far leave them."""

    def __init__(self, seen: picture.Picture, resources: Sequence[str]) -> None:
        self._seen, self._resources = seen, tuple(resources)
        self._requested: dict[str, dict[str, int]] = {}
        self._left: dict[str, fragments.Fragments] = {}

    def heals(
        self, pod: podinfo.Pod, target: str, given: fragments.Held
    ) -> tuple[Stuck, Stuck] | None:
        """Return what is stuck on both nodes before and after a move; None: a node is unknown.

        `given` is what the pod would be given on the target.
        """
        known = self._seen.nodes
        source, there = known.get(pod.node), known.get(target)
        if source is None or there is None:
            return None
        here = self._fragments(pod.node)
        held = here.held.get(pod.uid, fragments.HOLDS_NOTHING)
        ends = (
            (source, here, _without(here, held), -1),
            (there, self._fragments(target), _with(self._fragments(target), given), 1),
        )
        before = [self._stuck(node, old, pod, 0) for node, old, _, _ in ends]
        after = [self._stuck(node, new, pod, sign) for node, _, new, sign in ends]
        return _sum(before), _sum(after)

    def apply(self, pod: podinfo.Pod, target: str, given: fragments.Held) -> None:
        """Let a pod be where it moves to; a target without a name is anywhere else."""
        here = self._fragments(pod.node)
        held = here.held.get(pod.uid, fragments.HOLDS_NOTHING)
        self._left[pod.node] = _without(here, held)
        _add(self._requests(pod.node), pod.requests, -1)
        if target:
            self._left[target] = _with(self._fragments(target), given)
            _add(self._requests(target), pod.requests, 1)

    def _fragments(self, node: str) -> fragments.Fragments:
        found = self._left.get(node)
        return found or self._seen.fragments.get(node) or fragments.NOTHING

    def _requests(self, node: str) -> dict[str, int]:
        found = self._requested.get(node)
        if found is None:
            found = self._requested[node] = {}
            for pod in self._seen.running_on(node):
                _add(found, pod.requests, 1)
        return found

    def _stuck(
        self, node: nodeinfo.Node, left: fragments.Fragments, pod: podinfo.Pod, sign: int
    ) -> Stuck:
        """Return what is stuck on a node, with the pod's requests added so many times."""
        requested = self._requests(node.name)
        shares = [
            (requested.get(name, 0) + sign * pod.requests.get(name, 0)) / offered
            for name in self._resources
            if (offered := node.allocatable.get(name, 0))
        ]
        imbalance = statistics.pstdev(shares) if shares else 0.0
        return Stuck(_POINTS * imbalance, _stuck_devices(left), _stuck_cpus(left))


def _stuck_devices(left: fragments.Fragments) -> float:
    parts = (free for by_minor in left.devices.values() for free in by_minor.values())
    return sum(free for free in parts if 0 < free < _WHOLE) / _PERCENT_PER_POINT


def _stuck_cpus(left: fragments.Fragments) -> float:
    return float(sum(left.cpus.values()) - max(left.cpus.values(), default=0))


def _without(left: fragments.Fragments, held: fragments.Held) -> fragments.Fragments:
    return _moved(left, held, 1)


def _with(left: fragments.Fragments, held: fragments.Held) -> fragments.Fragments:
    return _moved(left, held, -1)


def _moved(left: fragments.Fragments, held: fragments.Held, sign: int) -> fragments.Fragments:
    """Return what is free once a pod has come (-1) or gone (1)."""
    if held == fragments.HOLDS_NOTHING:
        return left
    devices = {
        kind: _freed(by_minor, held.devices.get(kind, {}), sign, dict.fromkeys(by_minor, _WHOLE))
        for kind, by_minor in left.devices.items()
    }
    cpus = _freed(left.cpus, held.cpus, sign, left.cpus_of_zone)
    return fragments.Fragments(devices, cpus, left.cpus_of_zone, left.held)


def _freed(
    free: Mapping[int, int], held: Mapping[int, int], sign: int, most: Mapping[int, int]
) -> dict[int, int]:
    return {
        place: min(max(amount + sign * held.get(place, 0), 0), most.get(place, amount))
        for place, amount in free.items()
    }


def _add(total: dict[str, int], amounts: podinfo.Amounts, sign: int) -> None:
    for name, value in amounts.items():
        total[name] = total.get(name, 0) + sign * value


def _sum(parts: Sequence[Stuck]) -> Stuck:
    return Stuck(
        sum(one.requests for one in parts),
        sum(one.devices for one in parts),
        sum(one.cpus for one in parts),
    )
