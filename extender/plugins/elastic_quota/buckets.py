"""A map that is never changed: every change is a new one that shares most of the old."""

from typing import Final, Generic, TypeVar

V = TypeVar("V")

_BUCKETS: Final = 256


class Buckets(Generic[V]):
    """Values by text; a change copies one of many small dicts, so it costs microseconds.

    Two maps with the same content are equal, whatever their histories.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[dict[str, V], ...] | None = None) -> None:
        """`parts` is for this class alone."""
        self._parts = parts if parts is not None else ({},) * _BUCKETS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buckets) and self._parts == other._parts

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        """Return how many there are."""
        return sum(map(len, self._parts))

    def __contains__(self, key: str) -> bool:
        return key in self._parts[hash(key) % _BUCKETS]

    def get(self, key: str) -> V | None:
        """Return a value, None where there is none."""
        return self._parts[hash(key) % _BUCKETS].get(key)

    def put(self, key: str, value: V | None) -> "Buckets[V]":
        """Return the map with another value; None takes it out."""
        at = hash(key) % _BUCKETS
        part = dict(self._parts[at])
        if value is None:
            part.pop(key, None)
        else:
            part[key] = value
        return Buckets((*self._parts[:at], part, *self._parts[at + 1 :]))
