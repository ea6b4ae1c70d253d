"""Even out what is requested of nodes: pods leave the fullest and go to nodes with room."""

import dataclasses
from collections.abc import Iterable
from typing import Final

import numpy as np

from descheduler.configuration.arguments import utilization as arguments_module
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates, emptying, node_room, utilization
from descheduler.framework.pods import pod_order
from descheduler.model import podinfo
from domain import wording

NAME: Final = "LowNodeUtilization"


@dataclasses.dataclass(frozen=True, slots=True)
class _Round:
    """What a round works with; only the room changes."""

    view: protocols.View
    room: node_room.Room
    high: utilization.Limits
    """Above these a node is overutilized."""
    targets: node_room.Flags

    def is_over(self, node: str) -> bool:
        """Whether more is requested of a node than it should be."""
        return bool(self.overused(node).any())

    def overused(self, node: str) -> node_room.Flags:
        """Return of which resources too much is requested."""
        row = self.room.row(node)
        requested, _ = self.room.amounts(self.high.resources)
        found: node_room.Flags = requested[row] > self.high.amounts[row]
        return found

    def takers(self, pod: podinfo.Pod) -> node_room.Flags:
        """Return the underutilized nodes that take a pod and stay within the target thresholds."""
        requested, _ = self.room.amounts(self.high.resources)
        stays = self.high.not_above(requested + node_room.asked(pod, self.high.resources))
        return self.targets & stays & self.room.takers(pod)


class LowNodeUtilization:
    """Compares requests, not measured use; `LowNodeLoad` compares measured use.

    So no gain of measured load is asked for: a target has to stay within the target thresholds.
    """

    name = NAME

    def __init__(self, arguments: arguments_module.LowNodeUtilizationArgs) -> None:
        self._arguments = arguments

    def balance(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest pods of overutilized nodes, the fullest node first."""
        del memory
        room = node_room.Room(view)
        low, high = self._limits(room)
        requested, _ = room.amounts(low.resources)
        usable = room.flags([node.name for node in room.nodes if node.is_schedulable])
        targets = low.not_above(requested) & usable
        sources = high.above(requested)
        few, most = int(targets.sum()), self._arguments.number_of_nodes
        if not sources.any():
            return protocols.noted("no node is above targetThresholds")
        if few <= most:
            nodes = f"{few} of {wording.count(len(targets), 'node', 'nodes')}"
            have = wording.count(most, "has", "have")
            return protocols.noted(
                f"{nodes} {wording.form(few, 'is', 'are')} below thresholds, more than {have} to be"
            )
        fullness = room.shares(low.resources).sum(axis=1)
        round_ = _Round(view, room, high, targets)
        for node in sorted(room.listed(sources), key=lambda name: -fullness[room.row(name)]):
            if view.limits.exhausted():
                return candidates.stopped(view)
            yield from self._relieved(node, round_)
        return protocols.NO_MEMORY

    def _limits(self, room: node_room.Room) -> tuple[utilization.Limits, utilization.Limits]:
        given = self._arguments
        if given.use_deviation_thresholds:
            return (
                utilization.around_mean(room, given.thresholds, -1),
                utilization.around_mean(room, given.target_thresholds, 1),
            )
        return (
            utilization.limits(room, given.thresholds),
            utilization.limits(room, given.target_thresholds),
        )

    def _relieved(self, node: str, round_: _Round) -> protocols.Suggestions:
        limits = self._arguments.eviction_limits
        left = limits.node if limits is not None and limits.node is not None else None
        described = utilization.described(round_.room, node, round_.high)
        reason = f"node is overutilized: {described} requested"
        for pod in self._in_order(round_.view.picture.running_on(node)):
            if left == 0 or round_.view.limits.exhausted() or not round_.is_over(node):
                break
            if not self._helps(pod, node, round_):
                continue
            targets = round_.room.listed(round_.takers(pod))
            if not targets or not candidates.may_leave(round_.view, pod):
                continue
            answer = yield protocols.Suggestion(
                pod, NAME, reason, protocols.Purpose.COMPLY, targets
            )
            if answer:
                round_.room.move(pod, emptying.where(round_.room, answer, targets))
                left = None if left is None else left - 1
        return protocols.NO_MEMORY

    def _in_order(self, pods: Iterable[podinfo.Pod]) -> list[podinfo.Pod]:
        namespaces = self._arguments.evictable_namespaces
        return pod_order.ordered(
            pod
            for pod in pods
            if pod.is_active and (namespaces is None or namespaces.hold(pod.namespace))
        )

    def _helps(self, pod: podinfo.Pod, node: str, round_: _Round) -> bool:
        """Whether a pod requests something of which too much is requested."""
        asked = node_room.asked(pod, round_.high.resources)
        return bool(np.any(round_.overused(node) & (asked > 0)))
