"""Order of nodes for a lone pod by its annotation network-topology-selector. Pure.

Pods with the same selector are brought close to each other, and otherwise to where few nodes are
left, so that large domains stay free for gangs.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from domain.topology import tree as trees

Integers = npt.NDArray[np.int64]


class Order:
    """The nodes of a tree as numbers, by which thousands of candidates are put in order at once.

    It holds as long as the paths of the tree are the same object.
    """

    def __init__(self, tree: trees.Tree) -> None:
        self.paths = tree.paths
        names = sorted(self.paths)
        self._numbers = {name: number for number, name in enumerate(names)}
        paths = [self.paths[name] for name in names]
        depth = len(paths[0]) if paths else 0
        self._around = [
            _numbered([path[:level] for path in paths]) for level in range(depth, 0, -1)
        ]
        """By layer above the nodes, upwards: the domain of each node."""

    def positions(self, feasible: Sequence[str], existing: Mapping[str, int]) -> Integers:
        """Return the place of each feasible node, named once, in line; 0 is the best.

        More pods with the same selector come first, compared at the node, then at each domain above
        it; then fewer feasible nodes, compared alike; then the name. Nodes outside the tree come
        last. `existing` counts the pods with the same selector by node.
        """
        numbers = self._numbered(feasible)
        inside = numbers >= 0
        here = numbers[inside]
        keys = self._more_pods(here, existing) if existing else []
        keys += [np.bincount(domains[here])[domains[here]] for domains in self._around]
        keys.append(here)
        # The last key is the first that counts.
        first = inside.nonzero()[0][np.lexsort(keys[::-1])]
        last = sorted(
            (~inside).nonzero()[0].tolist(),
            key=lambda place: (-existing.get(feasible[place], 0), feasible[place]),
        )
        found = np.empty(len(feasible), dtype=np.int64)
        found[first] = np.arange(first.size)
        found[last] = np.arange(first.size, len(feasible))
        return found

    def _more_pods(self, here: Integers, existing: Mapping[str, int]) -> list[Integers]:
        """Return keys that put nodes first which have more pods, at the node and around it."""
        numbers = self._numbered(existing)
        inside = numbers >= 0
        pods = np.zeros(len(self._numbers), dtype=np.int64)
        pods[numbers[inside]] = np.fromiter(existing.values(), np.int64, len(existing))[inside]
        keys = [-pods[here]]
        for domains in self._around:
            sums = np.zeros(int(domains.max(initial=-1)) + 1, dtype=np.int64)
            np.add.at(sums, domains, pods)
            keys.append(-sums[domains[here]])
        return keys

    def _numbered(self, names: Mapping[str, int] | Sequence[str]) -> Integers:
        """Return the number of each node, -1 of those outside the tree."""
        found = map(self._numbers.get, names, itertools.repeat(-1))
        return np.fromiter(found, np.int64, len(names))


def _numbered(paths: Sequence[trees.Path]) -> Integers:
    """Return the same number for the same domain."""
    known: dict[trees.Path, int] = {}
    return np.array([known.setdefault(path, len(known)) for path in paths], dtype=np.int64)
