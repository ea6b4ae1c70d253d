"""Nodes that the network proposes for the members of a group, until a plan confirms them. Pure.

Members that are alike are placed at once. Where there are several sorts, either every place has to
suffice for each of them, or the sort that is hardest to place is placed first, and the others in
the domain that took it.
"""

import dataclasses
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Final, Protocol

from domain.topology import placement
from domain.topology import rules as gather
from domain.topology import tree as trees
from extender.gangs.network import slots as node_slots
from extender.state import records

Places = Mapping[str, str]
"""By uid: the node of a member."""
_MOST_FULL: Final = 16
"""Domains of one layer that are tried for all sorts before a larger one is."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """Where in the network the members of a group have to be."""

    tree: trees.Tree
    rules: gather.Rules
    siblings: tuple[str, ...] = ()
    """Nodes of members of the group that have a node already."""

    def beside_siblings(self, slots: Mapping[str, int]) -> Mapping[str, int]:
        """Return the places of nodes, of those beside members that must stay together only."""
        layers = self.tree.layers
        if layers is None or not self.siblings:
            return slots
        level = max((layers.level(one) or 0 for one in self.rules.must()), default=0)
        around = {domain(self.tree, node, level) for node in self.siblings}
        if not level or len(around) != 1 or None in around:
            return slots
        (only,) = around
        return {node: count for node, count in slots.items() if self.is_in(node, only)}

    def is_in(self, node: str, path: trees.Path | None) -> bool:
        """Whether a node lies in a domain."""
        return path is not None and domain(self.tree, node, len(path)) == path


class Proposer(Protocol):
    """Proposes nodes, and learns from those that turn out not to take a member."""

    def propose(self) -> Generator[None, None, Places | placement.Refusal]:
        """Return a node for every member, or why there is none; in steps."""

    def lower(self, failed: records.PodRecord, places: Places, held: Counter[str]) -> None:
        """Take in that a node has no room for a member beside those that it `held` by then."""


class AtOnce:
    """All members take equal places."""

    def __init__(
        self,
        wanted: Wanted,
        slots: node_slots.Slots,
        pods: Sequence[records.PodRecord],
        existing: Mapping[str, int],
    ) -> None:
        self._wanted, self._slots, self._pods = wanted, slots, pods
        self._existing = existing
        self._counts = slots.of_any()
        self._alike: Mapping[str, bytes] | None = None

    def propose(self) -> Generator[None, None, Places | placement.Refusal]:
        """Place all members by one number of places per node."""
        yield
        offer = placement.Offer(
            self._wanted.beside_siblings(self._counts), self._slots.sorts[0].scores, self._existing
        )
        found = placement.place(self._wanted.tree, offer, self._wanted.rules, len(self._pods))
        if isinstance(found, placement.Refusal):
            return found
        return {pod.uid: node for pod, node in zip(self._pods, found.nodes, strict=True)}

    def lower(self, failed: records.PodRecord, places: Places, held: Counter[str]) -> None:
        """Lower a node; where members are alike, those like it as well."""
        node = places[failed.uid]
        most = min(held[node], sum(one == node for one in places.values()) - 1)
        named = [node]
        if len(self._slots.sorts) == 1:
            alike = self._alike = self._alike or self._slots.alike()
            named = [one for one in self._counts if alike[one] == alike[node]]
        for one in named:
            self._counts[one] = min(self._counts.get(one, 0), most)


class SortBySort:
    """The hardest sort takes the smallest domain; the others take what is left there."""

    def __init__(
        self,
        wanted: Wanted,
        slots: node_slots.Slots,
        pods: Sequence[records.PodRecord],
        existing: Mapping[str, int],
    ) -> None:
        self._wanted, self._slots, self._existing = wanted, slots, existing
        asked = {pod.uid for pod in pods}
        self._sorts = [
            (sort, members)
            for sort in slots.sorts
            if (members := [pod for pod in sort.pods if pod.uid in asked])
        ]
        self._full: set[trees.Path] = set()
        """Domains with room for the hardest sort and not for all others."""
        self._deepest: int | None = None

    def propose(self) -> Generator[None, None, Places | placement.Refusal]:
        """Place sort after sort; where the others do not fit, another or a larger domain."""
        hardest, members = self._sorts[0]
        first: placement.Refusal | None = None
        while True:
            yield
            found = self._domain(hardest, len(members))
            if isinstance(found, placement.Refusal):
                level = max((len(path) for path in self._full), default=0)
                first = first or found
                if not level:
                    return first
                self._full, self._deepest = set(), level - 1
                continue
            path, nodes = found
            places = {pod.uid: node for pod, node in zip(members, nodes, strict=True)}
            refusal = self._others(path, places)
            if refusal is None:
                return places
            first = first or refusal
            if not path:
                return first
            self._full.add(path)

    def _domain(
        self, sort: node_slots.Sort, count: int
    ) -> tuple[trees.Path, Sequence[str]] | placement.Refusal:
        wanted, tree = self._wanted, self._wanted.tree
        counts = {
            node: places
            for node, places in wanted.beside_siblings(sort.counts).items()
            if not any(wanted.is_in(node, path) for path in self._full)
        }
        offer = placement.Offer(counts, sort.scores, self._existing)
        found = placement.place(tree, offer, wanted.rules, count, self._deepest)
        if isinstance(found, placement.Refusal) or tree.layers is None:
            return found if isinstance(found, placement.Refusal) else placement.Refusal("no tree")
        level = tree.layers.level(found.layer) or 0
        if self._full and (len(self._full) > _MOST_FULL or level < max(map(len, self._full))):
            # What is larger has to count the domains that were full as well.
            return placement.Refusal("no other domain of this layer takes all sorts of members")
        path = domain(tree, found.nodes[0], level)
        assert path is not None
        return path, found.nodes

    def _others(self, path: trees.Path, places: dict[str, str]) -> placement.Refusal | None:
        """Add the other sorts to the places in one domain; return why one of them does not fit."""
        used: dict[str, list[node_slots.Requests]] = {}
        for number, (sort, members) in enumerate(self._sorts):
            if number:
                inside = [node for node in sort.counts if self._wanted.is_in(node, path)]
                room = self._slots.room(sort.requests, len(members), inside, used)
                counts = {node: min(count, sort.counts[node]) for node, count in room.items()}
                drawn = {node: len(requests) for node, requests in used.items()}
                offer = placement.Offer(counts, sort.scores, drawn)
                tree = self._wanted.tree
                found = placement.place(tree, offer, gather.Rules(), len(members))
                if isinstance(found, placement.Refusal):
                    return found
                places.update(zip((pod.uid for pod in members), found.nodes, strict=True))
            for pod in members:
                used.setdefault(places[pod.uid], []).append(sort.requests)
        return None

    def lower(self, failed: records.PodRecord, places: Places, held: Counter[str]) -> None:
        """Lower one node for the sort of the member that it has no room for."""
        del held
        node = places[failed.uid]
        for sort, members in self._sorts:
            if any(pod.uid == failed.uid for pod in members):
                planned = sum(places[pod.uid] == node for pod in members)
                sort.counts[node] = min(sort.counts.get(node, 0), planned - 1)


def domain(tree: trees.Tree, node: str, level: int) -> trees.Path | None:
    """Return the domain of a level around a node; None outside the tree."""
    path = tree.paths.get(node)
    return (*path, node)[:level] if path is not None else None
