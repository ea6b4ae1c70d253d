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


class Kept:
    """Results of one kind of pod."""

    def __init__(self, size: int) -> None:
        self.revisions = np.zeros(size, dtype=np.int64)
        self.values = np.zeros(size, dtype=np.int64)


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
        """Return a number for each row; `compute` gives those of rows that have changed.

        They may depend on the key, the figures and the sparse values of the row, nothing else.
        """
        if view.revisions is None:
            return compute(rows)
        kept = self._of(key, view.revisions.size)
        present = view.revisions[rows]
        late = np.flatnonzero(kept.revisions[rows] != present)
        if late.size:
            changed = rows[late]
            kept.values[changed] = compute(changed)
            kept.revisions[changed] = present[late]
        found: verdicts.Column = kept.values[rows]
        return found

    def _of(self, key: Hashable, size: int) -> Kept:
        kept = self._kept.pop(key, None)
        if kept is None or kept.revisions.size < size:
            kept = Kept(size)
        self._kept[key] = kept
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return kept
