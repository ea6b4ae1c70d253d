"""Move pods whose leaving makes what is left of a node fit for others."""

import dataclasses
from collections.abc import Generator, Iterable, Mapping
from typing import Final

import numpy as np

from descheduler.configuration.arguments import packing
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates, emptying, node_room
from descheduler.model import fragments, podinfo
from descheduler.plugins.fragmentation_aware import whole_units

NAME: Final = "FragmentationAware"

_Moved = Generator[protocols.Suggestion, protocols.Answer, str]
"""Yields suggestions until a pod leaves, returns its target; empty where all stay."""


class FragmentationAware:
    """At most one pod leaves a node in a round.

    First, the free parts of its resources are made even: a node with much cpu and no memory left
    takes few pods. Then, pods leave that alone keep a device or the CPUs of a NUMA zone from being
    free whole. Either counts only where the target loses less than the node gains.
    """

    name = NAME

    def __init__(self, arguments: packing.FragmentationAwareArgs) -> None:
        self._arguments = arguments

    def balance(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest at most one pod per node."""
        del memory
        given = self._arguments
        if given.paused:
            return protocols.NO_MEMORY
        looked_at = [node for node in view.nodes if given.covers_node(node.labels)]
        room = node_room.Room(view)
        among = room.flags([node.name for node in looked_at if node.is_schedulable])
        round_ = _Round(view, room, among, self._deviations(room), {})
        changed: set[str] = set()
        for node in looked_at:
            if view.limits.exhausted():
                return candidates.stopped(view)
            target = "" if node.name in changed else (yield from self._evened(node.name, round_))
            if target:
                changed |= {node.name, target}
                # A node that a pod has left takes none: nodes do not exchange pods.
                round_.among[room.row(node.name)] = False
        for node in looked_at if given.whole_units else ():
            if view.limits.exhausted():
                return candidates.stopped(view)
            # Which pieces of a target the scheduler takes is not known: it takes one pod only.
            round_.among[[room.row(name) for name in changed]] = False
            if node.name not in changed:
                target = yield from self._made_whole(node.name, round_)
                changed |= {node.name, target} if target else set()
        return protocols.NO_MEMORY

    def _evened(self, node: str, round_: "_Round") -> _Moved:
        """Suggest the pod whose leaving makes the requested shares most even."""
        given = self._arguments
        before = float(round_.deviations[round_.room.row(node)])
        if before <= given.imbalance_threshold:
            return ""
        for gain, pod in self._by_gain(node, before, round_):
            better = gain - self._lost(pod, round_) > given.min_improvement_threshold
            if not better.any():
                continue
            targets = round_.takers(pod, given.node_fit) & better
            reason = (
                f"fragmentation reduction: stdBefore={before:.4f} stdAfter={before - gain:.4f}"
                f" gain={gain:.4f}"
            )
            target = yield from self._suggested(pod, round_, targets, reason)
            if target:
                return target
        return ""

    def _by_gain(
        self, node: str, before: float, round_: "_Round"
    ) -> list[tuple[float, podinfo.Pod]]:
        """Return the pods that make enough of a difference, the largest difference first."""
        resources = self._arguments.resources
        requested, allocatable = round_.room.amounts(resources)
        row = round_.room.row(node)
        pods = self._covered(node, round_)
        if not pods:
            return []
        without = requested[row] - np.array([node_room.asked(pod, resources) for pod in pods])
        limits = np.broadcast_to(allocatable[row], without.shape)
        gains = before - _deviations(without, limits)
        listed = [
            (gain, pod)
            for gain, pod in zip(gains.tolist(), pods, strict=True)
            if gain > self._arguments.min_improvement_threshold
        ]
        return sorted(listed, key=lambda one: (-one[0], one[1].key))

    def _lost(self, pod: podinfo.Pod, round_: "_Round") -> node_room.Shares:
        """Return how much more uneven each node would be with a pod; alike pods are asked once."""
        key = tuple(pod.requests.get(name, 0) for name in self._arguments.resources)
        found = round_.lost.get(key)
        if found is None:
            found = self._deviations(round_.room, pod) - round_.deviations
            round_.lost[key] = found
        return found

    def _deviations(self, room: node_room.Room, pod: podinfo.Pod | None = None) -> node_room.Shares:
        """Return how uneven the requested shares of each node are, with one more pod or as is."""
        requested, allocatable = room.amounts(self._arguments.resources)
        more = 0 if pod is None else node_room.asked(pod, self._arguments.resources)
        return _deviations(requested + more, allocatable)

    def _made_whole(self, node: str, round_: "_Round") -> _Moved:
        """Suggest a pod that alone keeps a unit from being whole, where others do not break."""
        known = round_.view.picture.fragments.get(node)
        pieces = whole_units.scattered(known) if known is not None else {}
        if known is None or not pieces:
            return ""
        for freed, pod in _by_freed(known, pieces, self._covered(node, round_)):
            asked = whole_units.held_by(known, pod.uid)
            fitting = round_.room.listed(round_.takers(pod, self._arguments.node_fit))
            targets = round_.room.flags(
                [
                    name
                    for name in fitting
                    if (lost := whole_units.broken(round_.fragments(name), asked)) is not None
                    and lost < freed
                ]
            )
            free = "; ".join(
                f"{kind} free in pieces of {', '.join(map(str, sizes))}"
                for kind, sizes in pieces.items()
            )
            reason = f"fragmentation reduction: {free}, whole units gained: {freed}"
            target = yield from self._suggested(pod, round_, targets, reason)
            if target:
                return target
        return ""

    def _covered(self, node: str, round_: "_Round") -> list[podinfo.Pod]:
        return [
            pod
            for pod in emptying.residents(round_.view, node)
            if self._arguments.covers(pod.namespace, pod.labels)
        ]

    def _suggested(
        self, pod: podinfo.Pod, round_: "_Round", targets: node_room.Flags, reason: str
    ) -> _Moved:
        """Suggest one pod, if it has targets and may leave."""
        listed = round_.room.listed(targets)
        if not listed or not candidates.may_leave(round_.view, pod):
            return ""
        answer = yield protocols.Suggestion(
            pod,
            NAME,
            reason,
            protocols.Purpose.DEFRAGMENT,
            listed,
            needs_target=self._arguments.node_fit,
            dry_run=self._arguments.dry_run,
        )
        if not answer:
            return ""
        target = emptying.where(round_.room, answer, listed)
        round_.room.move(pod, target)
        round_.deviations[:] = self._deviations(round_.room)
        round_.lost.clear()
        return target


@dataclasses.dataclass(frozen=True, slots=True)
class _Round:
    """What a round works with; all but the view changes while pods move."""

    view: protocols.View
    room: node_room.Room
    among: node_room.Flags
    """Nodes that are looked at, not cordoned, and take pods in this round."""
    deviations: node_room.Shares
    """How uneven the requested shares of each node are."""
    lost: dict[tuple[int, ...], node_room.Shares]
    """How much more uneven nodes would be with a pod, by what it requests."""

    def takers(self, pod: podinfo.Pod, fitting: bool) -> node_room.Flags:
        """Return the other nodes, of those that have room where that is asked for."""
        if fitting:
            return self.among & self.room.takers(pod)
        others = self.among.copy()
        others[self.room.row(pod.node)] = False
        return others

    def fragments(self, node: str) -> fragments.Fragments | None:
        """Return what is free of the units of a node."""
        return self.view.picture.fragments.get(node)


def _deviations(requested: node_room.Counts, allocatable: node_room.Counts) -> node_room.Shares:
    """Return the standard deviation of the shares of each row, of what there is something of."""
    shares, there = node_room.parts(requested, allocatable), allocatable > 0
    count = np.maximum(there.sum(axis=1), 1)
    mean = shares.sum(axis=1) / count
    squares = ((shares - mean[:, np.newaxis]) ** 2 * there).sum(axis=1)
    found: node_room.Shares = np.sqrt(squares / count)
    return found


def _by_freed(
    known: fragments.Fragments, pieces: Mapping[str, object], pods: Iterable[podinfo.Pod]
) -> list[tuple[int, podinfo.Pod]]:
    """Return the pods that keep units from being whole, those that keep most of them first."""
    listed = [(whole_units.freed(known, pod.uid, pieces), pod) for pod in pods]
    return sorted((one for one in listed if one[0]), key=lambda one: (-one[0], one[1].key))
