"""What was worked out for pods that are alike, once for all nodes that are alike.

Nodes are told apart by digests of everything that the work depends on, so that a result holds for
every node of the class, now and later.
"""

import collections
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

import numpy as np

from extender.framework import verdicts, views
from extender.framework.nodes import row_memo

MOST_PODS: Final = 64
"""Kinds of pods whose results are kept ..."""
MOST_NODES: Final = 1024
"""... for so many classes of nodes each."""


class Budget(NamedTuple):
    """When to leave the rest for later: after so much work, once enough nodes have passed."""

    most: int
    """Classes that are worked out in any case."""
    enough: int
    """Nodes whose number is 0, beyond which no further class is looked at."""
    passing: int = 0
    """How many of them are known already."""


UNBOUNDED: Final = Budget(1 << 62, 1 << 62)


class NodeClasses:
    """Numbers by class of node for the kinds of pods that were asked about last."""

    def __init__(self) -> None:
        self._kept: collections.OrderedDict[Hashable, dict[int, int]] = collections.OrderedDict()

    def get(
        self,
        key: Hashable,
        classes: verdicts.Column,
        compute: Callable[[int], int],
        budget: Budget = UNBOUNDED,
    ) -> verdicts.Column:
        """Return a number for each place; `compute` gives that of the first place of a class.

        It is LATER where the budget does not reach. Places are looked at in their order.
        """
        known = self._of(key)
        unique, first, inverse, counts = np.unique(
            classes, return_index=True, return_inverse=True, return_counts=True
        )
        numbers = [known.get(one, row_memo.LATER) for one in unique.tolist()]
        sizes = counts.tolist()
        passing = budget.passing + sum(
            size for size, number in zip(sizes, numbers, strict=True) if number == 0
        )
        done = 0
        for one in first.argsort().tolist():
            if numbers[one] != row_memo.LATER:
                continue
            if done >= budget.most and passing >= budget.enough:
                break
            numbers[one] = known[int(unique[one])] = compute(int(first[one]))
            done += 1
            passing += sizes[one] if numbers[one] == 0 else 0
        found: verdicts.Column = np.array(numbers, dtype=np.int64)[inverse]
        return found

    def _of(self, key: Hashable) -> dict[int, int]:
        kept = self._kept.pop(key, None)
        if kept is None or len(kept) >= MOST_NODES:
            kept = {}
        self._kept[key] = kept
        if len(self._kept) > MOST_PODS:
            self._kept.popitem(last=False)
        return kept


Alike = Callable[[views.View, verdicts.Rows], verdicts.Column]
"""Returns digests of all that a result depends on."""


class Results:
    """Numbers by node: kept until it changes, and worked out once for nodes that are alike."""

    def __init__(self) -> None:
        self._by_row = row_memo.RowMemo()
        self._by_class = NodeClasses()

    def get(
        self,
        key: Hashable,
        view: views.View,
        rows: verdicts.Rows,
        work: tuple[Alike, Callable[[int], int]],
    ) -> verdicts.Column:
        """Return a number for each row; `work` tells which are alike, and works out one row."""
        alike, one = work

        def several(changed: verdicts.Rows) -> verdicts.Column:
            if view.revisions is None:
                # A what-if, perhaps of what a claim lends: digests do not say that.
                return np.array([one(row) for row in changed.tolist()], dtype=np.int64)
            return self._by_class.get(
                key, alike(view, changed), lambda place: one(int(changed[place]))
            )

        return self._by_row.get(key, view, rows, several)
