"""Immutable vectors and maps whose changed copies share almost all of what they hold. Pure.

Both keep their values in small parts and copy only the parts that a change touches, so that one
change among ten thousand values costs about a microsecond.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_BITS: Final = 6
_SIZE: Final = 1 << _BITS
_FULL: Final = 32
"""Values per part of a map, on average, from which on it gets more parts."""


class Vector(Generic[V]):
    """A sequence of fixed length."""

    __slots__ = ("_parts",)

    def __init__(self, values: Iterable[V] = ()) -> None:
        listed = list(values)
        self._parts = [listed[at : at + _SIZE] for at in range(0, len(listed), _SIZE)]

    def __getitem__(self, at: int) -> V:
        return self._parts[at >> _BITS][at & (_SIZE - 1)]

    def __iter__(self) -> Iterator[V]:
        for part in self._parts:
            yield from part

    def replaced(self, changes: Sequence[tuple[int, V]]) -> "Vector[V]":
        """Return a vector with other values in some places."""
        parts = self._parts[:]
        fresh = set[int]()
        for at, value in changes:
            number = at >> _BITS
            if number not in fresh:
                fresh.add(number)
                parts[number] = parts[number][:]
            parts[number][at & (_SIZE - 1)] = value
        changed: Vector[V] = Vector.__new__(Vector)
        changed._parts = parts
        return changed


class Map(Mapping[K, V]):
    """A mapping; equal to another that holds the same, in whatever order it came about."""

    __slots__ = ("_parts", "_size")

    def __init__(self, items: Iterable[tuple[K, V]] = (), parts: int = 1) -> None:
        self._parts: list[dict[K, V]] = [{} for _ in range(parts)]
        self._size = 0
        for key, value in items:
            part = self._parts[hash(key) & (parts - 1)]
            self._size += key not in part
            part[key] = value

    def __getitem__(self, key: K) -> V:
        return self._parts[hash(key) & (len(self._parts) - 1)][key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | T) -> V | T: ...
    def get(self, key: K, /, default: Any = None) -> Any:
        """Return the value of a key, else the default; no error is raised and caught meanwhile."""
        return self._parts[hash(key) & (len(self._parts) - 1)].get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._parts[hash(key) & (len(self._parts) - 1)]

    def __iter__(self) -> Iterator[K]:
        for part in self._parts:
            yield from part

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Map):
            return NotImplemented
        if len(self._parts) == len(other._parts):
            return self._size == other._size and self._parts == other._parts
        return self._size == other._size and dict(self) == dict(other)

    def replaced(self, key: K, value: V | None) -> "Map[K, V]":
        """Return a mapping with another value for a key, or with None without the key."""
        parts = self._parts[:]
        at = hash(key) & (len(parts) - 1)
        part = parts[at] = parts[at].copy()
        size = self._size - (key in part)
        if value is None:
            part.pop(key, None)
        else:
            part[key] = value
            size += 1
        changed: Map[K, V] = Map.__new__(Map)
        changed._parts = parts
        changed._size = size
        return changed if size <= _FULL * len(parts) else Map(changed.items(), 2 * len(parts))

    def updated(self, changes: Mapping[K, V | None]) -> "Map[K, V]":
        """Return a mapping with other values for some keys, or with None without them.

        Each part is copied once, however many of its values change.
        """
        parts = self._parts[:]
        fresh = set[int]()
        size = self._size
        for key, value in changes.items():
            at = hash(key) & (len(parts) - 1)
            if at not in fresh:
                fresh.add(at)
                parts[at] = parts[at].copy()
            size -= key in parts[at]
            if value is None:
                parts[at].pop(key, None)
            else:
                parts[at][key] = value
                size += 1
        changed: Map[K, V] = Map.__new__(Map)
        changed._parts = parts
        changed._size = size
        count = len(parts)
        while size > _FULL * count:
            count *= 2
        return changed if count == len(parts) else Map(changed.items(), count)
