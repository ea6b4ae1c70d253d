"""The rows of all names of a call at once, where nodes are named alike.

To make a string of each name and to look it up is the largest single piece of a filter call. Where
the names of all nodes have one length, their list is a matrix of bytes: a few columns of it, taken
as numbers, say which node each row must be, and comparing the whole list with what these nodes are
called proves it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, overload

import msgspec
import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.intp]
_Words = npt.NDArray[np.uint64]
_Places = npt.NDArray[np.int32]

_WORD: Final = 8
_MIXES: Final = tuple(np.uint64(pow(0x9E3779B97F4A7C15, at, 1 << 64)) for at in range(1, 17))
"""Odd numbers with bits all over, as hash functions multiply by."""
_MIX: Final = _MIXES[0]
_KEY_BITS: Final = 64
_SLOTS_EACH: Final = 8
_WORTH: Final = 2


class NameTable:
    """The names of nodes, all of one length, by numbers that are made of their bytes.

    A number leads to a slot, and one that has lost it to another one leads to a second slot. Binary
    search would take three times as long where names come in no order.
    """

    def __init__(self, cells: bytes, width: int, rows: Sequence[int]) -> None:
        """`cells` are the names one after the other as a list holds them, `width` bytes each."""
        count = len(rows)
        self._width = width
        self._offsets = _telling(cells, width, count)
        self._keys = _keys(cells, width, count, self._offsets).copy()
        self._cells = np.frombuffer(cells, dtype=f"V{width}")
        self._rows = np.array(rows, dtype=np.intp)
        bits = (_SLOTS_EACH * count).bit_length()
        self._shift = np.uint64(_KEY_BITS - bits)
        places = np.arange(count, dtype=np.int32)
        self._first = np.zeros(1 << bits, dtype=np.int32)
        lost = self._settle(self._first, places, _MIX)
        for mix in _MIXES[1:]:
            self._other, self._second = mix, np.zeros_like(self._first)
            if not self._settle(self._second, lost, mix).size:
                break

    def _settle(self, slots: _Places, places: _Places, mix: np.uint64) -> _Places:
        """Write places into their slots; return those that have lost theirs to others."""
        chosen = self._keys[places] * mix >> self._shift
        slots[chosen] = places
        lost: _Places = places[slots[chosen] != places]
        return lost

    def find(self, text: bytes) -> Rows | None:
        """Return the rows of a list of names; None where it has to be read name by name."""
        cells = text[1:-1] + b","
        count, rest = divmod(len(cells), self._width)
        if rest or text[:1] != b"[" or text[-1:] != b"]":
            return None
        keys = _keys(cells, self._width, count, self._offsets)
        places = self._first.take(keys * _MIX >> self._shift)
        others = (self._keys.take(places) != keys).nonzero()[0]
        if others.size:
            places[others] = self._second.take(keys[others] * self._other >> self._shift)
        # What is no known name has led to one all the same.
        if self._cells.take(places).tobytes() != cells:
            return None
        return self._rows.take(places)


def table(rows: Mapping[str, int]) -> NameTable | None:
    """Return the table of these names; None where they are not alike enough, or too short."""
    cells = [msgspec.json.encode(name) + b"," for name in rows]
    widths = set(map(len, cells))
    if len(widths) != 1:
        return None
    width = widths.pop()
    return NameTable(b"".join(cells), width, tuple(rows.values())) if width >= _WORD else None


class Tables:
    """The table of the present nodes, made for the second call that has the same ones.

    Until then it has not shown that it is worth its price: some milliseconds for 5,000 nodes.
    """

    def __init__(self) -> None:
        self._members = -1
        self._calls = 0
        self._table: NameTable | None = None

    def find(self, text: bytes, rows: Mapping[str, int], members: int) -> Rows | None:
        """Return the rows of a list of names; None where it has to be read name by name.

        `members` is another number whenever a node has come or gone.
        """
        if members != self._members:
            self._members, self._calls, self._table = members, 0, None
        self._calls += 1
        if self._calls == _WORTH:
            self._table = table(rows)
        return None if self._table is None else self._table.find(text)


def _telling(cells: bytes, width: int, count: int) -> tuple[int, ...]:
    """Return at which offsets of a name words begin that tell all names apart, as few as needed."""
    offsets = {*range(0, width - _WORD + 1, _WORD), width - _WORD}
    numbers = {at: np.unique(_words(cells, width, count, at)).size for at in offsets}
    found: tuple[int, ...] = ()
    for at in sorted(offsets, key=lambda at: -numbers[at]):
        found = (*found, at)
        if np.unique(_keys(cells, width, count, found)).size == count:
            break
    return found


def _keys(cells: bytes, width: int, count: int, offsets: Sequence[int]) -> _Words:
    first, *others = offsets
    keys = _words(cells, width, count, first)
    for at in others:
        keys = keys * _MIX + _words(cells, width, count, at)
    return keys


def _words(cells: bytes, width: int, count: int, offset: int) -> _Words:
    """Return the eight bytes at an offset of each name as a number."""
    return np.ndarray((count,), np.uint64, cells, offset, (width,))


class NamesByRow(Sequence[str]):
    """The names of some rows, read when they are asked for: mostly one of them is."""

    __slots__ = ("_names", "_rows")

    def __init__(self, names: Sequence[str], rows: Rows) -> None:
        """`names` are those of all rows."""
        self._names, self._rows = names, rows

    def __len__(self) -> int:
        return self._rows.size

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return list(self)[place]
        return self._names[self._rows.item(place)]

    def __iter__(self) -> Iterator[str]:
        return map(self._names.__getitem__, self._rows.tolist())

    def __contains__(self, name: object) -> bool:
        return name in list(self)
