"""Room on nodes as NodeResourcesFit counts it: what is allocatable less what pods request. Pure.

Of several nodes that fit, the one with the largest free part is taken, as LeastAllocated does; a
scheduler that scores by other things may take another one.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_SCORED: Final = ("cpu", "memory")
_MOST_COLUMNS: Final = 256
"""Resources with a cell for each node; one node may offer thousands that no other one has."""


class Node(NamedTuple):
    """What is read of a node."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[core.Taint, ...]
    allocatable: Amounts
    schedulable: bool = True


class _Rare(NamedTuple):
    """Cells of a resource that few nodes offer: those of these nodes alone."""

    rows: Row
    cells: slice


class Table:
    """Free amounts of all nodes by resource; changes while pods come and go."""

    __slots__ = ("_at", "_eligible", "_free", "_free_rare", "_keys", "_nodes", "_rare", "_size")

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = sorted(nodes, key=lambda node: node.name)
        common, rare = _by_frequency(self._nodes)
        self._keys = {key: i for i, key in enumerate(common)}
        self._at = {node.name: i for i, node in enumerate(self._nodes)}
        self._size = np.zeros((len(self._nodes), len(common)), np.int64)
        offered: dict[str, list[tuple[int, int]]] = {key: [] for key in rare}
        for i, node in enumerate(self._nodes):
            for key, amount in node.allocatable.items():
                bounded = max(-_MOST, min(amount, _MOST))
                if key in self._keys:
                    self._size[i, self._keys[key]] = bounded
                else:
                    offered[key].append((i, bounded))
        self._free = self._size.copy()
        self._rare = dict(_cells(offered))
        amounts = (amount for listed in offered.values() for _, amount in listed)
        self._free_rare = np.fromiter(amounts, np.int64)
        self._eligible: dict[placement.OfNodes, npt.NDArray[np.bool_]] = {}

    def copy(self) -> "Table":
        """Return a table of the same nodes that changes on its own."""
        found = Table(())
        found._nodes, found._keys, found._at = self._nodes, self._keys, self._at
        found._size, found._eligible, found._rare = self._size, self._eligible, self._rare
        found._free, found._free_rare = self._free.copy(), self._free_rare.copy()
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
            more = sign * max(-_LARGEST, min(amount, _LARGEST))
            if column is not None:
                self._free[at, column] += more
            elif (cell := self._cell(at, key)) is not None:
                self._free_rare[cell] += more

    def _cell(self, at: int, key: str) -> int | None:
        """Return where a rare resource of a node is counted; None where the node has none."""
        found = self._rare.get(key)
        if found is None:
            return None
        place = int(np.searchsorted(found.rows, at))
        offers = place < len(found.rows) and found.rows[place] == at
        return found.cells.start + place if offers else None

    def _free_of(self, at: int, key: str) -> int | None:
        """Return what is free on a node; None where it does not offer that at all."""
        column = self._keys.get(key)
        if column is not None:
            return int(self._free[at, column])
        cell = self._cell(at, key)
        return int(self._free_rare[cell]) if cell is not None else None

    def fits(self, name: str, asks: Amounts, freed: Amounts = _NOTHING) -> bool:
        """Whether a node has room, once so much more is free on it."""
        at = self._at.get(name)
        return at is not None and all(
            (free := self._free_of(at, key)) is not None and amount <= free + freed.get(key, 0)
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
        scored = [self._keys[key] for key in _SCORED if key in self._keys]
        cells = np.ix_(rows, np.array(scored, np.intp))
        parts = (self._free[cells] / np.maximum(self._size[cells], 1)).mean(axis=1)
        return self._nodes[int(rows[int(np.argmax(parts))])].name

    def fitting(self, asks: Amounts, wanted: placement.Requirements) -> npt.NDArray[np.bool_]:
        """Return which nodes, in their order, a pod may run on and has room on."""
        found = self._candidates(wanted).copy()
        for key, amount in asks.items():
            if amount and (column := self._keys.get(key)) is not None:
                found &= self._free[:, column] >= amount
            elif amount:
                found &= self._with_rare(key, amount)
        return found

    def _with_rare(self, key: str, amount: int) -> npt.NDArray[np.bool_]:
        """Return which nodes have so much of a resource that few or none offer."""
        found = np.zeros(len(self._nodes), np.bool_)
        rare = self._rare.get(key)
        if rare is not None:
            found[rare.rows] = self._free_rare[rare.cells] >= amount
        return found

    def lacks(self, asks: Amounts, wanted: placement.Requirements) -> dict[str, int]:
        """Return what the nearest node lacks for a pod; empty where no node may take it."""
        known = {key: amount for key, amount in asks.items() if self._is_offered(key)}
        short = np.zeros((2, len(self._nodes)))
        for key, amount in known.items():
            lacking = self._lacking(key, amount)
            short[1] += lacking
            if key == "cpu":
                short[0] = lacking
        rows = np.flatnonzero(self._candidates(wanted) & (short[1] > 0))
        if not rows.size:
            return {}
        at = int(rows[int(np.lexsort(short[::-1, rows])[0])])
        free = {key: self._free_of(at, key) or 0 for key in known}
        return {key: amount - free[key] for key, amount in known.items() if amount > free[key]}

    def _lacking(self, key: str, amount: int) -> npt.NDArray[np.float64]:
        """Return how much of a resource each node lacks."""
        wanted = float(min(amount, 2 * _MOST))
        short: npt.NDArray[np.float64] = np.full(len(self._nodes), wanted)
        column, rare = self._keys.get(key), self._rare.get(key)
        if column is not None:
            short -= self._free[:, column]
        elif rare is not None:
            short[rare.rows] -= self._free_rare[rare.cells]
        return np.maximum(short, 0.0, out=short)

    def _is_offered(self, key: str) -> bool:
        return key in self._keys or key in self._rare

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


def _by_frequency(nodes: Iterable[Node]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the resources that many nodes offer, and those that few do."""
    often = collections.Counter(key for node in nodes for key in node.allocatable)
    if len(often) <= _MOST_COLUMNS:
        return sorted(often), ()
    order = sorted(often, key=lambda key: (key not in _SCORED, -often[key], key))
    return sorted(order[:_MOST_COLUMNS]), order[_MOST_COLUMNS:]


def _cells(offered: Mapping[str, Sequence[tuple[int, int]]]) -> Iterator[tuple[str, _Rare]]:
    """Yield where each resource is counted, one after the other."""
    start = 0
    for key, listed in offered.items():
        rows = np.array([row for row, _ in listed], np.int64)
        yield key, _Rare(rows, slice(start, start + len(rows)))
        start += len(rows)
