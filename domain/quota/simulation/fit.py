"""Room on nodes as NodeResourcesFit counts it: what is allocatable less what pods request. Pure.

Of several nodes that fit, the one with the largest free part is taken, as LeastAllocated does; a
scheduler that scores by other things may take another one.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from api.kubernetes import core
from domain.quota import model, placement

Amounts = model.Amounts
Row = npt.NDArray[np.int64]
_NOTHING: Final[Amounts] = MappingProxyType({})
_MOST: Final = 1 << 62
"""Of a node; amounts beyond it are cut, since no machine has them and 64 bits hold no more."""
_LARGEST: Final = 1 << 53
"""Of a pod, so that many of them fit into 64 bits."""


class Node(NamedTuple):
    """What is read of a node."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[core.Taint, ...]
    allocatable: Amounts
    schedulable: bool = True


class Table:
    """Free amounts of all nodes by resource; changes while pods come and go."""

    __slots__ = ("_at", "_eligible", "_free", "_keys", "_nodes", "_size")

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = sorted(nodes, key=lambda node: node.name)
        keys = sorted({key for node in self._nodes for key in node.allocatable})
        self._keys = {key: i for i, key in enumerate(keys)}
        self._at = {node.name: i for i, node in enumerate(self._nodes)}
        self._size = np.zeros((len(self._nodes), len(keys)), np.int64)
        for i, node in enumerate(self._nodes):
            for key, amount in node.allocatable.items():
                self._size[i, self._keys[key]] = max(-_MOST, min(amount, _MOST))
        self._free = self._size.copy()
        self._eligible: dict[placement.OfNodes, npt.NDArray[np.bool_]] = {}

    def copy(self) -> "Table":
        """Return a table of the same nodes that changes on its own."""
        found = Table(())
        found._nodes, found._keys, found._at = self._nodes, self._keys, self._at
        found._size, found._eligible = self._size, self._eligible
        found._free = self._free.copy()
        return found

    @property
    def nodes(self) -> Sequence[Node]:
        """Return all nodes, by name."""
        return self._nodes

    def __contains__(self, name: object) -> bool:
        return name in self._at

    def take(self, name: str, asks: Amounts) -> None:
        """Count a pod on a node; one that is not known has nothing to take."""
        self._add(name, asks, -1)

    def give_back(self, name: str, asks: Amounts) -> None:
        """Count a pod no longer."""
        self._add(name, asks, 1)

    def _add(self, name: str, asks: Amounts, sign: int) -> None:
        at = self._at.get(name)
        if at is None:
            return
        for key, amount in asks.items():
            column = self._keys.get(key)
            if column is not None:
                self._free[at, column] += sign * max(-_LARGEST, min(amount, _LARGEST))

    def fits(self, name: str, asks: Amounts, freed: Amounts = _NOTHING) -> bool:
        """Whether a node has room, once so much more is free on it."""
        at = self._at.get(name)
        return at is not None and all(
            key in self._keys and amount <= int(self._free[at, self._keys[key]]) + freed.get(key, 0)
            for key, amount in asks.items()
            if amount
        )

    def takes(
        self,
        name: str,
        asks: Amounts,
        wanted: placement.Requirements,
        freed: Amounts = _NOTHING,
    ) -> bool:
        """Whether a pod may run on a node and has room there, once so much more is free on it."""
        at = self._at.get(name)
        return (
            at is not None and bool(self._candidates(wanted)[at]) and self.fits(name, asks, freed)
        )

    def place(self, asks: Amounts, wanted: placement.Requirements) -> str:
        """Return the node that a pod would get, empty where it fits nowhere."""
        rows = np.flatnonzero(self.fitting(asks, wanted))
        if not rows.size:
            return ""
        scored = [self._keys[key] for key in ("cpu", "memory") if key in self._keys]
        size = np.maximum(self._size[rows][:, scored], 1)
        parts = (self._free[rows][:, scored] / size).mean(axis=1)
        return self._nodes[int(rows[int(np.argmax(parts))])].name

    def fitting(self, asks: Amounts, wanted: placement.Requirements) -> npt.NDArray[np.bool_]:
        """Return which nodes, in their order, a pod may run on and has room on."""
        found = self._candidates(wanted).copy()
        for key, amount in asks.items():
            if amount and key not in self._keys:
                found[:] = False
            elif amount:
                found &= self._free[:, self._keys[key]] >= amount
        return found

    def lacks(self, asks: Amounts, wanted: placement.Requirements) -> dict[str, int]:
        """Return what the nearest node lacks for a pod; empty where no node may take it."""
        best: dict[str, int] = {}
        for at in np.flatnonzero(self._candidates(wanted)).tolist():
            short = {
                key: amount - int(self._free[at, self._keys[key]])
                for key, amount in asks.items()
                if key in self._keys and amount > self._free[at, self._keys[key]]
            }
            if short and (not best or _weight(short) < _weight(best)):
                best = short
        return best

    def _candidates(self, wanted: placement.Requirements) -> npt.NDArray[np.bool_]:
        found = self._eligible.get(wanted.of_nodes)
        if found is None:
            found = np.array(
                [
                    node.schedulable
                    and placement.eligible(wanted, node.name, node.labels, node.taints)
                    for node in self._nodes
                ],
                dtype=np.bool_,
            )
            self._eligible[wanted.of_nodes] = found
        return found


def _weight(short: Amounts) -> tuple[int, int]:
    return short.get("cpu", 0), sum(short.values())
