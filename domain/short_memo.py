"""What follows from values that others write, worked out once for those that are short.

What is kept outlives the object that it was read of, and the API server bounds the length of many
lists by the size of the object alone. What is long is remembered while it is there at most.
"""

import functools
import weakref
from collections.abc import Callable, Sized
from typing import Any, Final, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

MOST_LISTED: Final = 32
"""Resources or ports of a pod or node that is remembered; real ones have ten."""


def are_few(listed: Sized) -> bool:
    """Whether as much is listed as real objects do."""
    return len(listed) <= MOST_LISTED


def remembered(
    most: int, is_short: Callable[[Any], bool] = are_few, *, weakly: bool = False
) -> Callable[[Function], Function]:
    """Keep results of a pure function by its arguments, of which the first may be long.

    If `weakly`, those of a long one are kept until that object is gone; they must not refer to it.
    """

    def wrap(compute: Function) -> Function:
        found = _Results(compute, most, is_short, weakly=weakly)

        @functools.wraps(compute)
        def get(*key: Any) -> Any:
            return found[key]

        return cast("Function", get)

    return wrap


class _Results(dict[tuple[Any, ...], Any]):
    """Results by arguments; looking up in a dict is what Python does fastest."""

    def __init__(
        self,
        compute: Callable[..., Any],
        most: int,
        is_short: Callable[[Any], bool],
        *,
        weakly: bool,
    ) -> None:
        self._compute, self._most, self._is_short, self._weakly = compute, most, is_short, weakly
        self._long: weakref.WeakKeyDictionary[Any, dict[tuple[Any, ...], Any]] = (
            weakref.WeakKeyDictionary()
        )

    def __missing__(self, key: tuple[Any, ...]) -> Any:
        first, rest = key[0], key[1:]
        if self._is_short(first):
            if len(self) >= self._most:
                self.clear()
            found = self[key] = self._compute(*key)
            return found
        if not self._weakly:
            return self._compute(*key)
        kept = self._long.setdefault(first, {})
        if rest not in kept:
            kept[rest] = self._compute(*key)
        return kept[rest]
