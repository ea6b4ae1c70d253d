"""How far apart the members of a gang are: distance and number of domains. Pure.

The distance of two nodes is the number of levels up to the first domain that holds both: 0 on one
node, 1 below one domain of the lowest layer, and so on.
"""

import collections
from collections.abc import Sequence

import msgspec

from domain.topology import tree as trees


class Spread(msgspec.Struct, frozen=True):
    """How far apart some pods are."""

    mean_distance: float
    """Over all pairs of pods; 0 for a single pod."""
    spans: tuple[tuple[str, int], ...]
    """By layer below the cluster, from the top down: how many domains hold a pod."""


def spread(tree: trees.Tree, nodes: Sequence[str]) -> Spread:
    """Return how far apart pods on some nodes are, one entry per pod.

    A node outside the tree counts as a domain of its own in every layer.
    """
    if tree.layers is None:
        return Spread(0.0, ())
    depth, total = tree.layers.depth, len(nodes)
    places = [(*_path(tree, node, depth - 1), node) for node in nodes]
    apart, spans = 0.0, []
    for level in range(1, depth + 1):
        held = collections.Counter(place[:level] for place in places)
        together = sum(count * (count - 1) for count in held.values())
        apart += total * (total - 1) - together
        spans.append((tree.layers.names[level], len(held)))
    return Spread(apart / (total * (total - 1)) if total > 1 else 0.0, tuple(spans))


def _path(tree: trees.Tree, node: str, length: int) -> trees.Path:
    found = tree.paths.get(node)
    # No label value has a space.
    return found if found is not None else (f"outside {node}",) * length
