"""Empty nodes of which little is requested, so that the autoscaler removes them."""

from collections.abc import Iterator, Sequence
from typing import Final

from api import names
from descheduler.configuration.arguments import utilization as arguments_module
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates, emptying, node_room, utilization
from descheduler.model import podinfo
from domain import wording

NAME: Final = "HighNodeUtilization"
_ONLY_THRESHOLDING: Final = "OnlyThresholdingResources"


class HighNodeUtilization:
    """A node is emptied into nodes above the thresholds, all of it or not at all.

    Pods that belong to their node, such as those of a DaemonSet, are left there. The scheduler has
    to prefer nodes in use (`MostAllocated`) for other pods not to fill the emptied node again.
    """

    name = NAME

    def __init__(self, arguments: arguments_module.HighNodeUtilizationArgs) -> None:
        self._arguments = arguments

    def balance(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest the pods of nodes below the thresholds, the least used node first."""
        del memory
        room = node_room.Room(view)
        limits = utilization.limits(room, self._arguments.thresholds)
        requested, _ = room.amounts(limits.resources)
        low = limits.not_above(requested)
        usable = room.flags([node.name for node in room.nodes if node.is_schedulable])
        targets = ~low & usable
        sources = self._sources(room, low, limits.resources)
        most = self._arguments.number_of_nodes
        if len(sources) <= most:
            nodes = wording.count(len(sources), "node is", "nodes are")
            have = wording.count(most, "has", "have")
            return protocols.noted(f"{nodes} below thresholds, more than {have} to be")
        if not targets.any():
            return protocols.noted("no node that could take pods is above thresholds")
        for node in sources:
            if view.limits.exhausted():
                return candidates.stopped(view)
            pods = list(self._moved(emptying.residents(view, node)))
            if not self._may_be_emptied(pods):
                continue
            reason = f"node is underutilized: {utilization.described(room, node, limits)} requested"
            order = tuple(emptying.largest_first(pods, room))
            yield from emptying.empty(view, room, emptying.Task(node, order, targets, NAME, reason))
        return protocols.NO_MEMORY

    def _sources(
        self, room: node_room.Room, low: node_room.Flags, resources: Sequence[str]
    ) -> list[str]:
        shares = room.shares(resources).sum(axis=1)
        return sorted(room.listed(low), key=lambda name: (float(shares[room.row(name)]), name))

    def _moved(self, pods: Iterator[podinfo.Pod]) -> Iterator[podinfo.Pod]:
        if _ONLY_THRESHOLDING not in self._arguments.eviction_modes:
            return pods
        resources = self._arguments.thresholds.keys() - {names.PODS}
        return (pod for pod in pods if any(pod.requests.get(name) for name in resources))

    def _may_be_emptied(self, pods: Sequence[podinfo.Pod]) -> bool:
        namespaces = self._arguments.evictable_namespaces
        return namespaces is None or all(namespaces.hold(pod.namespace) for pod in pods)
