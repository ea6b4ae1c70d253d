"""Numbers of all nodes side by side: one matrix per subject, one column of it per node."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from extender.framework import verdicts
from extender.state.table import lower_bounds

_FIRST_CAPACITY = 64
_REVISIONS: Final = itertools.count(1)
"""One sequence for all states of the process: two states never show different figures as one."""


class Columns:
    """Matrices of 64-bit integers that grow together; places of nodes that went are used again."""

    def __init__(self, heights: Mapping[str, int]) -> None:
        self.names: list[str] = []
        """Node name by place, empty where no node is."""
        self._heights = dict(heights)
        self._free: list[int] = []
        self._matrices: dict[str, verdicts.Column] = {
            subject: np.zeros((height, _FIRST_CAPACITY), dtype=np.int64)
            for subject, height in heights.items()
        }
        self._capacity = _FIRST_CAPACITY
        self._born = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._revisions = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.bounds = lower_bounds.LowerBounds()
        self.layout = 0
        """Another number whenever a matrix is another one, or has another width."""
        self._shown: dict[str, verdicts.Column] = {}
        """What was shown last by subject, as long as it is the same part of the same matrix."""

    def __getitem__(self, subject: str) -> verdicts.Column:
        """Return a matrix to write to."""
        return self._matrices[subject]

    def shown(self, subject: str) -> verdicts.Column:
        """Return a matrix that cannot be written to, as wide as there are places."""
        matrix, width = self._matrices[subject], len(self.names)
        shown = self._shown.get(subject)
        if shown is None or shown.base is not matrix or shown.shape[1] != width:
            shown = self._shown[subject] = matrix[:, :width]
            shown.flags.writeable = False
        return shown

    def set(self, subject: str, place: int, figures: Sequence[int]) -> None:
        """Write the figures of one node."""
        self._matrices[subject][:, place] = figures
        self.bounds.changed(subject, figures)

    def lowest(self, subject: str) -> Sequence[int] | None:
        """Return what no figure of a known node is lower than; None while no node is known."""
        return self.bounds.get(subject, lambda: self.shown(subject)[:, self.shown("known")[0] != 0])

    def born(self) -> verdicts.Column:
        """Return since when each place holds its node; it cannot be written to."""
        part = self._born[: len(self.names)]
        part.flags.writeable = False
        return part

    def revisions(self) -> verdicts.Column:
        """Return a number by place, another one after every change; it cannot be written to."""
        part = self._revisions[: len(self.names)]
        part.flags.writeable = False
        return part

    def revise(self, place: int) -> None:
        """Note that something about a node has changed."""
        self._revisions[place] = next(_REVISIONS)

    def bear(self, place: int, moment: int) -> None:
        """Note that another node has come to a place."""
        self._born[place] = moment

    def figures(self, place: int) -> tuple[tuple[int, ...], ...]:
        """Return everything in one place, by subject."""
        return tuple(
            tuple(map(int, self._matrices[subject][:, place])) for subject in sorted(self._matrices)
        )

    def allot(self, name: str) -> int:
        """Find a place for a node; all its numbers are zero."""
        if self._free:
            place = self._free.pop()
            self.names[place] = name
            return place
        if len(self.names) == self._capacity:
            self._widen()
        self.names.append(name)
        self.layout += 1
        return len(self.names) - 1

    def release(self, place: int) -> None:
        """Give a place back and clear it."""
        self.names[place] = ""
        for matrix in self._matrices.values():
            matrix[:, place] = 0
        self._free.append(place)

    def copy(self) -> "Columns":
        """Return the same numbers for another state."""
        other = Columns({})
        other.names, other._free = list(self.names), list(self._free)
        other._heights, other._capacity = dict(self._heights), self._capacity
        other._matrices = {subject: part.copy() for subject, part in self._matrices.items()}
        other._born, other._revisions = self._born.copy(), self._revisions.copy()
        return other

    def drop(self, subject: str) -> None:
        """Forget a matrix."""
        del self._matrices[subject], self._heights[subject]
        self.layout += 1
        self._shown.pop(subject, None)
        self.bounds.forget(subject)

    def adopt(self, subject: str, matrix: verdicts.Column) -> None:
        """Take over a matrix that another part has filled, perhaps for fewer places."""
        height, width = matrix.shape
        whole = np.zeros((height, self._capacity), dtype=np.int64)
        whole[:, : min(width, self._capacity)] = matrix[:, : self._capacity]
        self._matrices[subject], self._heights[subject] = whole, height
        self.layout += 1
        self.bounds.forget(subject)

    def _widen(self) -> None:
        for subject, height in self._heights.items():
            wider = np.zeros((height, 2 * self._capacity), dtype=np.int64)
            wider[:, : self._capacity] = self._matrices[subject]
            self._matrices[subject] = wider
        self._born = _doubled(self._born)
        self._revisions = _doubled(self._revisions)
        self._capacity *= 2


def _doubled(row: verdicts.Column) -> verdicts.Column:
    return np.concatenate((row, np.zeros_like(row)))
