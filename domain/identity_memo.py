"""What follows from frozen objects alone, worked out once for them.

It saves work and changes no answer. Objects are told apart by identity: those that hold mappings
cannot be hashed, and comparing them would cost as much as the work.
"""

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

Known = ParamSpec("Known")
Found = TypeVar("Found")


class IdentityMemo(Generic[Known, Found]):
    """Results of a pure function by its arguments, which are kept alive with them."""

    def __init__(self, compute: Callable[Known, Found], most: int) -> None:
        self._compute, self._most = compute, most
        self._found: dict[tuple[int, ...], tuple[object, Found]] = {}

    def get(self, *known: Known.args, **none: Known.kwargs) -> Found:
        """Return the result for some objects."""
        key = tuple(map(id, known))
        kept = self._found.get(key)
        if kept is not None:
            # The objects are kept alive, so no others can have their identities.
            return kept[1]
        if len(self._found) >= self._most:
            self._found.clear()
        found = self._compute(*known, **none)
        self._found[key] = known, found
        return found
