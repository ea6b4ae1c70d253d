"""Move pods from groups of nodes to groups that come later, pod by pod or node by node."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from descheduler.configuration.arguments import packing
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates, emptying, node_room
from descheduler.model import nodeinfo, podinfo

NAME: Final = "CustomPriority"
_MISFITS: Final = 5
"""Pods in a row that fit nowhere, after which the rest of a node, which are larger, stays."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Source:
    """A node that pods leave, and the nodes of later groups."""

    node: str
    group: str
    pods: tuple[podinfo.Pod, ...]
    """Those that may leave by their labels and namespace, the smallest first."""
    among: node_room.Flags


class CustomPriority:
    """Each node belongs to the first group that selects it; pods leave a group for a later one.

    What is promised to targets is kept count of in both modes, so that several pods are not sent
    to the same room. A node is drained as a whole: where one of its pods fits nowhere or has to
    stay, none leaves and the node is not cordoned.
    """

    name = NAME

    def __init__(self, arguments: packing.CustomPriorityArgs) -> None:
        self._arguments = arguments

    def balance(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest pods of all groups but the last, those of the first group first."""
        del memory
        given = self._arguments
        if given.paused:
            return protocols.NO_MEMORY
        room = node_room.Room(view)
        drains = given.mode == packing.DRAIN_NODE
        received: set[str] = set()
        for source in self._sources(view, room):
            if view.limits.exhausted():
                return candidates.stopped(view)
            if not drains:
                yield from self._relieved(view, room, source)
            # A node that has just been sent pods is not drained in the same round.
            elif source.node not in received:
                moved = yield from self._drained(view, room, source)
                received |= set(moved.values())
        return protocols.NO_MEMORY

    def _sources(self, view: protocols.View, room: node_room.Room) -> Iterator[_Source]:
        groups = self._groups(view.nodes)
        names = list(groups)
        for at, group in enumerate(names):
            among = room.flags([node for later in names[at + 1 :] for node in groups[later]])
            for node in groups[group] if among.any() else ():
                pods = tuple(self._leaving(emptying.residents(view, node)))
                if pods:
                    yield _Source(node, group, pods, among)

    def _groups(self, nodes: Sequence[nodeinfo.Node]) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {one.name: [] for one in self._arguments.eviction_order}
        for node in nodes:
            group = self._group(node)
            if group is not None:
                found[group].append(node.name)
        return found

    def _group(self, node: nodeinfo.Node) -> str | None:
        if not self._arguments.covers_node(node.labels):
            return None
        stages = self._arguments.eviction_order
        found = (one.name for one in stages if one.node_selector.selects(node.labels))
        return next(found, None)

    def _leaving(self, pods: Iterable[podinfo.Pod]) -> list[podinfo.Pod]:
        covered = (pod for pod in pods if self._arguments.covers(pod.namespace, pod.labels))
        return sorted(
            covered,
            key=lambda pod: (pod.requests.get("cpu", 0), pod.requests.get("memory", 0), pod.key),
        )

    def _relieved(
        self, view: protocols.View, room: node_room.Room, source: _Source
    ) -> protocols.Suggestions:
        misfits = 0
        reason = f"evicting from {source.group} priority resource to lower priority resource"
        for pod in source.pods:
            if view.limits.exhausted():
                break
            if not candidates.may_leave(view, pod):
                continue
            fitting = room.takers(pod) & source.among if self._arguments.node_fit else source.among
            if not fitting.any():
                misfits += 1
                if misfits == _MISFITS:
                    break
                continue
            misfits = 0
            targets = room.listed(fitting)
            answer = yield protocols.Suggestion(
                pod,
                NAME,
                reason,
                protocols.Purpose.COMPLY,
                targets,
                needs_target=self._arguments.node_fit,
                dry_run=self._arguments.dry_run,
            )
            if answer:
                room.move(pod, emptying.where(room, answer, targets))
        return protocols.NO_MEMORY

    def _drained(
        self, view: protocols.View, room: node_room.Room, source: _Source
    ) -> emptying.Emptied:
        reason = f"drain node {source.node} (sourcePriority={source.group})"
        cordon = protocols.Cordon(source.node, NAME, reason)
        task = emptying.Task(
            source.node,
            tuple(emptying.largest_first(source.pods, room)),
            source.among,
            NAME,
            reason,
            cordon=cordon if self._arguments.auto_cordon else None,
            dry_run=self._arguments.dry_run,
        )
        return (yield from emptying.empty(view, room, task))
