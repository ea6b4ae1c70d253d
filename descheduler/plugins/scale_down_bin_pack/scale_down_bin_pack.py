"""Let a smaller cluster need fewer nodes: rank pods for scaling in, pack them, or empty nodes."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from api import names
from descheduler.configuration.arguments import packing
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates, emptying, node_room
from descheduler.model import podinfo
from descheduler.plugins.scale_down_bin_pack import ranking
from domain import wording

NAME: Final = "ScaleDownBinPack"
_REASON: Final = "scale-down binpack"
_MARGIN: Final = 1 + 1e-9
"""Sums that differ by less are equal: two pods of one size do not change places."""


class ScaleDownBinPack:
    """One of three strategies.

    CalculateOnly writes the rank of pods as their deletion cost, so that ReplicaSets that scale in
    delete those first whose nodes are closest to empty. EvictDirectly moves pods in that order,
    each to a node that is fuller than its own. EmptyNodes moves all pods of a node or none.
    """

    name = NAME

    def __init__(self, arguments: packing.ScaleDownBinPackArgs) -> None:
        self._arguments = arguments.complete()

    def notes(self, view: protocols.View) -> Mapping[str, Mapping[str, str]]:
        """Return by uid of the pod deletion costs that are to be written, with CalculateOnly."""
        given = self._arguments
        if given.paused or given.dry_run or given.strategy != packing.CALCULATE_ONLY:
            return {}
        members = self._members(view)
        scale = ranking.Scale(node_room.Room(view), given.resource_weights)
        kept = (pod for one in members for pod in one.kept)
        found = (
            (pod, str(cost))
            for cost, pod in ranking.unwritten(ranking.ranked(members, scale), kept)
        )
        key = names.ANNOTATION_POD_DELETION_COST
        others = ((pod, cost) for pod, cost in found if pod.annotations.get(key) != cost)
        # Those that are left have their turn in the next round, by the order of that time.
        some = itertools.islice(others, protocols.MOST_ANNOTATED)
        return {pod.uid: {key: cost} for pod, cost in some}

    def balance(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest pods with EvictDirectly and EmptyNodes."""
        del memory
        given = self._arguments
        if given.paused or given.strategy == packing.CALCULATE_ONLY:
            return protocols.NO_MEMORY
        room = node_room.Room(view)
        scale = ranking.Scale(room, given.resource_weights)
        if given.strategy == packing.EMPTY_NODES:
            yield from self._emptied(view, room, scale)
        else:
            yield from self._packed(view, room, scale)
        return candidates.stopped(view) if view.limits.exhausted() else protocols.NO_MEMORY

    def _members(self, view: protocols.View) -> list[ranking.Members]:
        """Return the pods of each node that is looked at: evictable, kept, and not selected."""
        looked_at = [node for node in view.nodes if self._arguments.covers_node(node.labels)]
        occupants = emptying.Occupants()
        split = [self._split(view.picture.running_on(one.name), occupants) for one in looked_at]
        reasons = iter(view.evictable.refusals([pod for selected, _ in split for pod in selected]))
        found = []
        for node, (selected, others) in zip(looked_at, split, strict=True):
            evictable: list[podinfo.Pod] = []
            kept: list[podinfo.Pod] = []
            for pod in selected:
                (kept if next(reasons) else evictable).append(pod)
            found.append(ranking.Members(node.name, tuple(evictable), tuple(kept), tuple(others)))
        return found

    def _split(
        self, pods: Iterable[podinfo.Pod], occupants: emptying.Occupants
    ) -> tuple[Sequence[podinfo.Pod], Sequence[podinfo.Pod]]:
        """Return the pods that are selected, and the others."""
        given, all_of_them = self._arguments, self._arguments.covers_all
        selected: list[podinfo.Pod] = []
        others: list[podinfo.Pod] = []
        for pod in pods:
            is_selected = occupants.holds(pod) and (
                all_of_them or given.covers(pod.namespace, pod.labels)
            )
            (selected if is_selected else others).append(pod)
        return selected, others

    def _packed(
        self, view: protocols.View, room: node_room.Room, scale: ranking.Scale
    ) -> protocols.Suggestions:
        left = self._arguments.max_pods_to_evict or 0
        for pod in ranking.ranked(self._members(view), scale):
            if not left or view.limits.exhausted():
                break
            targets = room.listed(self._fuller(pod, room, scale))
            if not targets or view.evictable.late_refusal(pod):
                continue
            answer = yield protocols.Suggestion(
                pod,
                NAME,
                _REASON,
                protocols.Purpose.COMPLY,
                targets,
                needs_target=self._arguments.node_fit,
                dry_run=self._arguments.dry_run,
            )
            if answer:
                left -= 1
                room.move(pod, emptying.where(room, answer, targets))
        return protocols.NO_MEMORY

    def _fuller(
        self, pod: podinfo.Pod, room: node_room.Room, scale: ranking.Scale
    ) -> node_room.Flags:
        """Return the targets that make the sum of squares of what is requested of nodes larger.

        Moves from empty to full nodes alone do that, and none can be undone by another such move.
        """
        fullness, sizes = scale.fullness(), scale.sizes(pod)
        row = room.row(pod.node)
        before = fullness**2 + fullness[row] ** 2
        after = (fullness + sizes) ** 2 + (fullness[row] - sizes[row]) ** 2
        gains: node_room.Flags = after > before * _MARGIN
        gains[row] = False
        return gains & room.takers(pod) if self._arguments.node_fit else gains

    def _emptied(
        self, view: protocols.View, room: node_room.Room, scale: ranking.Scale
    ) -> protocols.Suggestions:
        left, received = self._arguments.max_nodes_to_empty, set[str]()
        used = [name for name in room.names if any(emptying.residents(view, name))]
        among = room.flags(used)
        for node, pods in self._cheapest(view, room, scale):
            if not left or view.limits.exhausted():
                break
            if node in received:
                continue
            among[room.row(node)] = False
            task = emptying.Task(
                node,
                tuple(emptying.largest_first(pods, room)),
                among.copy(),
                NAME,
                f"empty node {node}: {wording.count(len(pods), 'pod fits', 'pods fit')} elsewhere",
                cordon=self._cordon(node),
                dry_run=self._arguments.dry_run,
            )
            moved = yield from emptying.empty(view, room, task)
            received |= set(moved.values())
            left -= bool(moved)
            # A node that pods leave takes none; one that they do not leave still may.
            among[room.row(node)] = not moved
        return protocols.NO_MEMORY

    def _cordon(self, node: str) -> protocols.Cordon | None:
        if not self._arguments.auto_cordon:
            return None
        return protocols.Cordon(node, NAME, "node is emptied for the autoscaler")

    def _cheapest(
        self, view: protocols.View, room: node_room.Room, scale: ranking.Scale
    ) -> list[tuple[str, Sequence[podinfo.Pod]]]:
        """Return nodes whose pods may all leave: cordoned ones first, then those with few pods."""
        fullness = scale.fullness()
        most = self._arguments.max_pods_to_evict
        found = []
        for one in self._members(view):
            stays = {pod.uid for pod in one.others}
            blocked = one.kept or any(
                pod.uid in stays for pod in emptying.residents(view, one.node)
            )
            if one.evictable and not blocked and (most is None or len(one.evictable) <= most):
                found.append(one)
        found.sort(
            key=lambda one: (
                view.picture.nodes[one.node].is_schedulable,
                len(one.evictable),
                float(fullness[room.row(one.node)]),
                one.node,
            )
        )
        return [(one.node, one.evictable) for one in found]
