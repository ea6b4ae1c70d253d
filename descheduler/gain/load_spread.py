"""How unevenly nodes are loaded, and what one move makes of it. Pure.

Load is what is measured, in percent of a node's capacity. The spread is the standard deviation over
all nodes, averaged over resources by their weight times the share that is used of them: what hardly
any node uses keeps no hot node hot. A move gains what the sum of squared deviations loses, in
hundredths: 10 percent of a node that go from one at 90 percent to one at 30 gain 10 points, however
many nodes there are.
"""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

Amounts = npt.NDArray[np.int64]
"""One row per node, one column per resource; of a pod one row."""
Percents = npt.NDArray[np.float64]
"""The same in percent of capacity, or one number per node."""
PERCENT: Final = 100.0
_TINY: Final = 1e-9


@dataclasses.dataclass(frozen=True, slots=True)
class Outlook:
    """What a move to each of some nodes would make of loads."""

    rows: npt.NDArray[np.intp]
    gain: Percents
    """In points; negative where loads grow apart."""
    spread: Percents
    """Of all nodes, after it."""
    source: tuple[Percents, Percents]
    """Load of the node that is left by resource, before and after."""
    target: tuple[Percents, Percents]
    """Load of each of the nodes by resource, before and after."""

    @property
    def below(self) -> npt.NDArray[np.bool_]:
        """Whether what is used most of a node stays below what is used most of the one left."""
        found: npt.NDArray[np.bool_] = self.target[1].max(axis=1) < self.source[1].max()
        return found


class LoadSpread:
    """Loads of nodes, as the moves so far leave them."""

    def __init__(
        self, rows: Mapping[str, int], used: Amounts, capacity: Amounts, weights: Percents
    ) -> None:
        """`rows` is by name of the node, in order; weights are by column, of any sum."""
        self._rows = rows
        self._names = tuple(rows)
        self._capacity = capacity.astype(np.float64)
        self._percents = _percents(used.astype(np.float64), self._capacity)
        scarcity = weights * self._percents.sum(axis=0)
        self._weights = scarcity / max(float(scarcity.sum()), _TINY)
        self._sums = self._percents.sum(axis=0)
        self._squares = (self._percents**2).sum(axis=0)
        self.before = self.after
        """The spread before the first move."""

    @property
    def after(self) -> float:
        """Return the spread with the moves so far."""
        return float(self._spread(self._sums, self._squares))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the nodes, in the order of their rows."""
        return self._names

    def row(self, node: str) -> int:
        """Return the row of a node."""
        return self._rows[node]

    def knows(self, node: str) -> bool:
        """Whether the load of a node is known."""
        return node in self._rows

    def load(self, node: str) -> Percents:
        """Return the load of a node by resource."""
        found: Percents = self._percents[self._rows[node]].copy()
        return found

    def chosen(
        self, among: Collection[str] | None, without: Collection[str]
    ) -> npt.NDArray[np.intp]:
        """Return the rows of nodes whose load is known, in their order."""
        names = self._rows if among is None else among
        rows = [self._rows[one] for one in names if one not in without and one in self._rows]
        return np.array(sorted(rows), dtype=np.intp)

    def outlook(self, amounts: Amounts, source: str, rows: npt.NDArray[np.intp]) -> Outlook:
        """Return what it would do if a pod used so much on each of these nodes instead."""
        here = self._rows[source]
        used = amounts.astype(np.float64)
        left, taken = self._percents[here].copy(), self._percents[rows]
        # Usage of a pod may be older than that of its node.
        leaves = np.maximum(left - _percents(used, self._capacity[here]), 0.0)
        takes = taken + _percents(np.broadcast_to(used, taken.shape), self._capacity[rows])
        sums = self._sums + (leaves - left) + (takes - taken)
        squares = self._squares + (leaves**2 - left**2) + (takes**2 - taken**2)
        lost = self._deviations(self._sums, self._squares) - self._deviations(sums, squares)
        gain: Percents = lost @ self._weights / PERCENT
        return Outlook(rows, gain, self._spread(sums, squares), (left, leaves), (taken, takes))

    def move(self, amounts: Amounts, source: str, target: str) -> None:
        """Let a pod use so much on another node; an unknown one is outside of what is compared."""
        if not self.knows(source):
            return
        rows = np.array([self._rows[target]] if self.knows(target) else [], dtype=np.intp)
        found = self.outlook(amounts, source, rows)
        self._set(self._rows[source], found.source[1])
        for row, after in zip(rows.tolist(), found.target[1], strict=True):
            self._set(row, after)

    def _set(self, row: int, after: Percents) -> None:
        before = self._percents[row]
        self._sums += after - before
        self._squares += after**2 - before**2
        self._percents[row] = after

    def _deviations(self, sums: Percents, squares: Percents) -> Percents:
        """Return by resource the sum of squared deviations from the mean."""
        count = max(len(self._rows), 1)
        found: Percents = np.maximum(squares - sums**2 / count, 0.0)
        return found

    def _spread(self, sums: Percents, squares: Percents) -> Percents:
        count = max(len(self._rows), 1)
        found: Percents = np.sqrt(self._deviations(sums, squares) / count) @ self._weights
        return found


def _percents(used: Percents, capacity: Percents) -> Percents:
    """Return shares in percent; of a node without capacity nothing is used."""
    shares = np.zeros(used.shape)
    np.divide(PERCENT * used, capacity, out=shares, where=capacity > 0)
    return shares
