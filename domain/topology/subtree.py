"""What the domains of one placement offer: free places, scores and pods, summed up the tree. Pure.

Domains exist for the time of one placement; only those that offer a place or hold a pod are made.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from domain.topology import rules as gather
from domain.topology import tree as trees

NOTHING: Final[Mapping[str, int]] = {}


class Offer(msgspec.Struct, frozen=True):
    """What the nodes offer one gang, by node name; a node that is left out has 0."""

    slots: Mapping[str, int]
    """How many members fit."""
    score: Mapping[str, int] = NOTHING
    """How good the node is otherwise."""
    existing: Mapping[str, int] = NOTHING
    """How many pods there are with the same network-topology-selector."""


class Domain:
    """One domain, or one node, with the sums of what is below it."""

    __slots__ = ("children", "existing", "offered", "parent", "path", "score", "slots")

    def __init__(self, path: trees.Path, parent: "Domain | None") -> None:
        self.path = path
        self.parent = parent
        self.children: list[Domain] = []
        self.offered = 0
        """Members that fit, rounded down to the podCountMultiple of the layer."""
        self.slots = 0
        """Members that can be shared out: a multiple of what every layer from here on takes."""
        self.score = 0
        self.existing = 0

    @property
    def level(self) -> int:
        """Return the level; 0 is the cluster."""
        return len(self.path)

    @property
    def name(self) -> str:
        """Return the name, empty for the cluster."""
        return self.path[-1] if self.path else ""

    def walk(self) -> "list[Domain]":
        """Return this domain and those around it, up to the cluster."""
        found: list[Domain] = []
        here: Domain | None = self
        while here is not None:
            found.append(here)
            here = here.parent
        return found


def levels(tree: trees.Tree, offer: Offer, rules: gather.Rules) -> list[list[Domain]]:
    """Return all domains with something in them by level, the cluster first, the nodes last."""
    assert tree.layers is not None
    root = Domain((), None)
    known: dict[trees.Path, Domain] = {(): root}
    found: list[list[Domain]] = [[root], *([] for _ in range(tree.layers.depth))]
    for node in {**offer.slots, **offer.existing}:
        path, slots = tree.paths.get(node), max(0, offer.slots.get(node, 0))
        existing = offer.existing.get(node, 0)
        if path is None or not (slots or existing):
            continue
        parent = known.get(path) or _grown(path, known, found)
        leaf = Domain((*path, node), parent)
        parent.children.append(leaf)
        found[-1].append(leaf)
        leaf.offered, leaf.slots, leaf.existing = slots, slots, existing
        leaf.score = offer.score.get(node, 0) if slots else 0
    _sum(found, rules.own(tree.layers), rules.multiples(tree.layers))
    return found


def _grown(
    path: trees.Path, known: dict[trees.Path, Domain], found: Sequence[list[Domain]]
) -> Domain:
    """Return the domain of a path, made with those around it that are missing."""
    here = known[()]
    for level in range(1, len(path) + 1):
        domain = known.get(path[:level])
        if domain is None:
            domain = known[path[:level]] = Domain(path[:level], here)
            here.children.append(domain)
            found[level].append(domain)
        here = domain
    return here


def _sum(found: Sequence[Sequence[Domain]], own: Sequence[int], multiples: Sequence[int]) -> None:
    for level in range(len(found) - 1, -1, -1):
        for domain in found[level]:
            domain.offered -= domain.offered % own[level]
            domain.slots -= domain.slots % multiples[level]
            parent = domain.parent
            if parent is not None:
                parent.offered += domain.offered
                parent.slots += domain.slots
                parent.score += domain.score
                parent.existing += domain.existing
