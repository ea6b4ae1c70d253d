"""PreferNoSchedule taints of nodes: few distinct sets, each compared once with tolerations."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from api.kubernetes import core, selectors
from domain.scoring import columns as node_columns
from domain.scoring import pod as scored_pod
from domain.scoring.indexes import remembered

_MOST: Final = 256
Tolerations = tuple[core.Toleration, ...]


class TaintIndex:
    """Which distinct set of PreferNoSchedule taints each node has."""

    def __init__(self) -> None:
        self._by_row: node_columns.Integers = np.zeros(1, dtype=np.int64)
        self._sets: dict[int, tuple[core.Taint, ...]] = {0: ()}
        self._numbers: dict[tuple[core.Taint, ...], int] = {(): 0}
        self._nodes = {0: 1}
        """Number of nodes by set; the empty one is never given up."""
        self._counts = remembered.Remembered[Tolerations](
            self._intolerable, lambda: iter(self._sets), _MOST
        )

    def set(self, row: int, taints: Iterable[core.Taint]) -> None:
        """Note the taints of a node."""
        chosen = tuple(
            sorted(
                (one for one in taints if one.effect == scored_pod.PREFER_NO_SCHEDULE),
                key=lambda one: (one.key, one.value),
            )
        )
        if row >= len(self._by_row):
            self._by_row = remembered.grown(self._by_row, row + 1)
        before = int(self._by_row[row])
        if self._sets[before] == chosen:
            return
        self._by_row[row] = self._taken(chosen)
        self._given_up(before)

    def intolerable(self, tolerations: Tolerations, size: int) -> node_columns.Integers | None:
        """Return how many taints of each node are not tolerated; None where no node has any."""
        if len(self._sets) == 1:
            return None
        if len(self._by_row) < size:
            self._by_row = remembered.grown(self._by_row, size)
        counts = self._counts.get(tolerations, max(self._sets) + 1)
        return counts.take(self._by_row[:size])

    def _taken(self, chosen: tuple[core.Taint, ...]) -> int:
        number = self._numbers.get(chosen)
        if number is None:
            number = next(self._free())
            self._numbers[chosen], self._sets[number] = number, chosen
            self._counts.changed(number)
        self._nodes[number] = self._nodes.get(number, 0) + 1
        return number

    def _given_up(self, number: int) -> None:
        if not number:
            return
        self._nodes[number] -= 1
        if not self._nodes[number]:
            del self._nodes[number], self._numbers[self._sets.pop(number)]

    def _free(self) -> Iterator[int]:
        return (number for number in range(len(self._sets) + 1) if number not in self._sets)

    def _intolerable(self, tolerations: Tolerations, number: int) -> int:
        return sum(
            not any(selectors.tolerates(one, taint) for one in tolerations)
            for taint in self._sets[number]
        )
