"""Order of nodes for a lone pod by its annotation network-topology-selector. Pure.

Pods with the same selector are brought close to each other, and otherwise to where few nodes are
left, so that large domains stay free for gangs.
"""

from collections.abc import Mapping, Sequence

from domain.topology import tree as trees


def positions(
    tree: trees.Tree, feasible: Sequence[str], existing: Mapping[str, int]
) -> list[int] | None:
    """Return the place of each feasible node in line, 0 the best; None without a tree.

    More pods with the same selector come first, compared at the node, then at each domain above
    it; then fewer feasible nodes, compared alike; then the name. Nodes outside the tree come last.
    `existing` counts the pods with the same selector by node.
    """
    if tree.layers is None:
        return None
    pods: dict[trees.Path, int] = {}
    nodes: dict[trees.Path, int] = {}
    for name, count in existing.items():
        _add(pods, tree.paths.get(name), name, count)
    for name in feasible:
        _add(nodes, tree.paths.get(name), name, 1)

    def order(index: int) -> tuple[bool, tuple[int, ...], tuple[int, ...], str]:
        name = feasible[index]
        path = tree.paths.get(name)
        if path is None:
            return True, (-existing.get(name, 0),), (), name
        around = (*path, name)
        walk = [around[:level] for level in range(len(around), -1, -1)]
        return (
            False,
            tuple(-pods.get(one, 0) for one in walk),
            tuple(nodes[one] for one in walk),
            name,
        )

    found = [0] * len(feasible)
    for place, index in enumerate(sorted(range(len(feasible)), key=order)):
        found[index] = place
    return found


def _add(counts: dict[trees.Path, int], path: trees.Path | None, node: str, count: int) -> None:
    if path is None:
        return
    around = (*path, node)
    for level in range(len(around) + 1):
        counts[around[:level]] = counts.get(around[:level], 0) + count
