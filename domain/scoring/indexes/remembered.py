"""Arrays over rows that are computed once per question and corrected where a row changes."""

import collections
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Question = TypeVar("Question", bound=Hashable)
Array = npt.NDArray[Any]


class Remembered(Generic[Question]):
    """The least recently used arrays are forgotten first; rows beyond those known hold zeros."""

    def __init__(
        self,
        answer: Callable[[Question, int], int],
        rows: Callable[[], Iterator[int]],
        most: int,
        dtype: type[np.generic] = np.int64,
    ) -> None:
        self._answer, self._rows, self._most, self._dtype = answer, rows, most, dtype
        self._arrays: collections.OrderedDict[Question, Array] = collections.OrderedDict()

    def __len__(self) -> int:
        """Return the number of arrays that are remembered."""
        return len(self._arrays)

    def get(self, question: Question, size: int) -> Array:
        """Return the answers for the first rows."""
        found = self._arrays.get(question)
        if found is None:
            if len(self._arrays) >= self._most:
                self._arrays.popitem(last=False)
            found = self._arrays[question] = self._computed(question, size)
        else:
            self._arrays.move_to_end(question)
            if len(found) < size:
                found = self._arrays[question] = grown(found, size)
        return read_only(found, size)

    def changed(self, row: int) -> None:
        """Answer every remembered question anew for one row."""
        for question, array in self._arrays.items():
            if len(array) <= row:
                array = self._arrays[question] = grown(array, row + 1)
            array[row] = self._answer(question, row)

    def _computed(self, question: Question, size: int) -> Array:
        rows = list(self._rows())
        array = np.zeros(max(size, *rows, 0) + 1, dtype=self._dtype)
        for row in rows:
            array[row] = self._answer(question, row)
        return array


def grown(array: Array, size: int) -> Array:
    """Return a longer copy with room for more."""
    longer = np.zeros(max(size, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def read_only(array: Array, size: int) -> Array:
    """Return the first entries; they cannot be written to."""
    part = array[:size]
    part.flags.writeable = False
    return part
