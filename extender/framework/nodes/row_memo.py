"""What was worked out for pods that are alike, by node, until that node changes.

A function of the snapshot alone: it saves work and changes no answer.
"""

import collections
from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from extender.framework import verdicts, views

MOST: Final = 64
"""Kinds of pods whose results are kept: 16 bytes by node each."""


LATER: Final = int(np.iinfo(np.int64).min)
"""A result that is not known yet: it is asked for again in the next call."""


class Kept:
    """Results of one kind of pod."""

    def __init__(self, size: int) -> None:
        self.revisions = np.zeros(size, dtype=np.int64)
        self.values = np.zeros(size, dtype=np.int64)

    def put(
        self,
        rows: verdicts.Rows,
        present: verdicts.Column,
        compute: Callable[[verdicts.Rows], verdicts.Column],
    ) -> None:
        """Compute the results of some rows."""
        self.values[rows] = found = compute(rows)
        self.revisions[rows] = np.where(found == LATER, 0, present[rows])


class RowMemo:
    """Numbers by node for the kinds of pods that were asked about last."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: collections.OrderedDict[Hashable, Kept] = collections.OrderedDict()

    def get(
        self,
        key: Hashable,
        view: views.View,
        rows: verdicts.Rows,
        compute: Callable[[verdicts.Rows], verdicts.Column],
    ) -> verdicts.Column:
        """Return a number for each row; `compute` gives those of rows that have changed, or LATER.

        They may depend on the key, the figures and the sparse values of the row, nothing else.
        """
        present = view.revisions
        if present is None:
            return compute(rows)
        kept = self._of(key, present.size)
        if rows.size == 1:
            # One node, as every bind asks: plain integers are cheaper than vectors of one.
            row = rows.item()
            if kept.revisions[row] != present[row]:
                kept.put(rows, present, compute)
            return kept.values[rows]
        if rows is views.every(present.size):
            # All of them, so that nothing has to be picked.
            late = (kept.revisions[: present.size] != present).nonzero()[0]
            if late.size:
                kept.put(late, present, compute)
            return kept.values[: present.size].copy()
        late = rows[kept.revisions.take(rows) != present.take(rows)]
        if late.size:
            kept.put(late, present, compute)
        found: verdicts.Column = kept.values.take(rows)
        return found

    def known(self, key: Hashable, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Return the numbers of those rows that have not changed since they were worked out."""
        kept, present = self._kept.get(key), view.revisions
        if kept is None or present is None or kept.revisions.size < present.size:
            return np.zeros(0, dtype=np.int64)
        found: verdicts.Column = kept.values[rows[kept.revisions[rows] == present[rows]]]
        return found

    def _of(self, key: Hashable, size: int) -> Kept:
        kept = self._kept.get(key)
        if kept is None or kept.revisions.size < size:
            kept = self._kept[key] = Kept(size)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return kept
