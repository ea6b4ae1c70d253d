"""What is the same for everybody who may read the same: made once a second, however many ask."""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

from process.runtime import clock as clocks

T = TypeVar("T")

_FRESH_SECONDS: Final = 1.0
_MOST: Final = 32


class Prepared:
    """Values that are at most a second old; bounded in number."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self._kept: dict[Hashable, tuple[float, Any]] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a value that is known, else make it."""
        now = self._clock.monotonic()
        kept = self._kept.get(key)
        if kept is not None and kept[0] > now:
            found: T = kept[1]
            return found
        value = make()
        self._kept.pop(key, None)
        while len(self._kept) >= _MOST:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (now + _FRESH_SECONDS, value)
        return value
