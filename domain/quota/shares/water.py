"""Water filling for many parents and resources at once, column-wise. Pure.

The shares are those of `runtime.share` to the last unit: products beyond 64 bits are divided by an
estimate in floating point, whose remainder is exact because it is small and integers wrap around.
Columns with figures so large that this would not hold are left out.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_ERROR: Final = 2.0**-51
"""More than the relative error of an estimated quotient."""
_MOST: Final = 2.0**62


class Block:
    """The children of many parents in their resources, one after the other: what is written."""

    def __init__(
        self,
        minimums: Sequence[Sequence[int]],
        weights: Sequence[Sequence[int]],
        lends: Sequence[Sequence[bool]],
        priorities: Sequence[Sequence[int]],
    ) -> None:
        sizes = np.array([len(column) for column in minimums], dtype=np.int64)
        self.sizes = sizes
        self.starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
        self.columns = np.repeat(np.arange(len(sizes)), sizes)
        self.minimums, small = _read(minimums, sizes)
        self.weights, light = _read(weights, sizes)
        self.lends = np.fromiter(chain.from_iterable(lends), np.bool_, int(sizes.sum()))
        self.priorities = np.fromiter(chain.from_iterable(priorities), np.int64, int(sizes.sum()))
        self.readable = small & light
        self.together = _sums(self.minimums, self.starts)
        self.weighs = _sums(self.weights, self.starts).astype(np.float64)

    def share(
        self,
        totals: Sequence[int],
        requests: Sequence[Sequence[int]],
        first: Sequence[Sequence[int]] | None,
        *,
        scales: bool,
    ) -> list[list[int] | None]:
        """Share the total of each column out; None for a column that is too large for this.

        `first` is what each child keeps whatever others ask for; None stands for the minimums.
        """
        fits = self.readable.copy()
        available, in_range = _bounded(totals)
        fits &= in_range
        wishes, small = _read(requests, self.sizes)
        fits &= small
        if first is not None:
            least, small = _read(first, self.sizes)
            fits &= small
        else:
            least = self._least(available) if scales else self.minimums
        largest = np.abs(available).astype(np.float64) * _ERROR + 2
        fits &= largest * np.maximum(self.weighs, self.together.astype(np.float64)) < _MOST
        given = self._filled(np.where(fits, available, 0), wishes, least)
        return [
            column if fine else None
            for column, fine in zip(_split(given, self.starts, self.sizes), fits, strict=True)
        ]

    def _least(self, available: Ints) -> Ints:
        """Return the minimums, scaled down where there is less than all of them."""
        short = available < self.together
        if not short.any():
            return self.minimums
        at = np.flatnonzero(short[self.columns])
        columns = self.columns[at]
        most = np.maximum(available, 0)
        least = self.minimums.copy()
        least[at] = _quotients(least[at], most[columns], self.together[columns])[0]
        return least

    def _filled(self, available: Ints, wishes: Ints, least: Ints) -> Ints:
        more = wishes > least
        given = np.where(more | ~self.lends, least, wishes)
        remaining = available - _sums(given, self.starts)
        joined = np.flatnonzero(more & (self.weights > 0))
        tiered = bool(joined.size) and np.ptp(self.priorities[joined]) > 0
        while True:
            joined = joined[remaining[self.columns[joined]] > 0]
            if not joined.size:
                return given
            served = self._first_served(joined) if tiered else joined
            full = self._round(served, remaining, wishes, given)
            joined = joined[~full] if not tiered else np.setdiff1d(joined, served[full])

    def _first_served(self, joined: Ints) -> Ints:
        """Return those of the highest priority in each column."""
        columns = self.columns[joined]
        starts = _beginnings(columns)
        highest = np.maximum.reduceat(self.priorities[joined], starts)
        sizes = np.diff(np.append(starts, len(joined)))
        served: Ints = joined[self.priorities[joined] == np.repeat(highest, sizes)]
        return served

    def _round(self, served: Ints, remaining: Ints, wishes: Ints, given: Ints) -> Flags:
        """Share once what remains in each column; return who has all that it asks for."""
        columns = self.columns[served]
        starts = _beginnings(columns)
        sizes = np.diff(np.append(starts, len(served)))
        weights = self.weights[served]
        together = np.add.reduceat(weights, starts)
        amounts = remaining[columns[starts]]
        parts, rests = _quotients(weights, np.repeat(amounts, sizes), np.repeat(together, sizes))
        left = amounts - np.add.reduceat(parts, starts)
        parts += _largest_remainders(rests, left, starts, sizes)
        got = given[served] + parts
        over = got - wishes[served]
        full = over >= 0
        given[served] = got - np.where(full, over, 0)
        remaining[columns[starts]] = np.add.reduceat(np.where(full, over, 0), starts)
        return full


def _largest_remainders(rests: Ints, left: Ints, starts: Ints, sizes: Ints) -> Ints:
    """Return 1 for those who get one more: the largest rests of each column, the earlier first."""
    more = np.zeros(len(rests), dtype=np.int64)
    if not left.any():
        return more
    order = np.lexsort((-rests, np.repeat(np.arange(len(starts)), sizes)))
    place = np.arange(len(rests)) - np.repeat(starts, sizes)
    more[order[place < np.repeat(left, sizes)]] = 1
    return more


def _quotients(factors: Ints, amounts: Ints, divisors: Ints) -> tuple[Ints, Ints]:
    """Return factors times amounts, divided by divisors, rounded down; and the remainders."""
    divisors = np.maximum(divisors, 1)
    parts = (factors.astype(np.float64) * amounts / divisors).astype(np.int64)
    rests = factors * amounts - parts * divisors
    wrong = rests // divisors
    return parts + wrong, rests - wrong * divisors


def _read(columns: Sequence[Sequence[int]], sizes: Ints) -> tuple[Ints, Flags]:
    """Return all values of columns, and which columns are small enough to be added up."""
    count, fits = int(sizes.sum()), np.ones(len(sizes), dtype=np.bool_)
    try:
        values = np.fromiter(chain.from_iterable(columns), np.int64, count)
    except OverflowError:
        fits = np.array([abs(sum(column)) < _MOST for column in columns])
        kept = (
            column if fine else [0] * len(column)
            for column, fine in zip(columns, fits, strict=True)
        )
        values = np.fromiter(chain.from_iterable(kept), np.int64, count)
    together = _sums(values.astype(np.float64), np.concatenate(([0], np.cumsum(sizes)[:-1])))
    return values, fits & (together < _MOST)


def _bounded(totals: Iterable[int]) -> tuple[Ints, Flags]:
    listed = list(totals)
    fits = np.array([abs(total) < _MOST for total in listed])
    kept = [total if abs(total) < _MOST else 0 for total in listed]
    return np.array(kept, dtype=np.int64), fits


def _sums(values: npt.NDArray[Any], starts: Ints) -> npt.NDArray[Any]:
    return np.add.reduceat(values, starts)


def _beginnings(columns: Ints) -> Ints:
    """Return where each run of equal values begins."""
    return np.flatnonzero(np.concatenate(([True], columns[1:] != columns[:-1])))


def _split(values: Ints, starts: Ints, sizes: Ints) -> list[list[int]]:
    listed = values.tolist()
    return [
        listed[start : start + size]
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
    ]
