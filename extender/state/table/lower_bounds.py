"""Lower bounds of figures over all nodes, kept while the figures of single nodes change."""

from collections.abc import Callable, Sequence
from typing import Final

from extender.framework import verdicts

_EXACT_AGAIN: Final = 256
"""After so many changes bounds are computed anew, since they only ever fall in between."""


class LowerBounds:
    """By subject, no figure of any known node is lower than its bound.

    A changed column can only lower a bound, so one pass over all nodes serves many changes. What
    leaves may let a bound be lower than need be, which is safe: callers look at every node
    where a bound says nothing.
    """

    def __init__(self) -> None:
        self._bounds: dict[str, list[int]] = {}
        self._changes: dict[str, int] = {}

    def changed(self, subject: str, column: Sequence[int]) -> None:
        """Take in the new figures of one node."""
        bounds = self._bounds.get(subject)
        if bounds is None:
            return
        self._bounds[subject] = list(map(min, bounds, column))
        self._changes[subject] += 1

    def forget(self, subject: str) -> None:
        """Forget the bounds of a matrix that others take the place of."""
        self._bounds.pop(subject, None)

    def get(self, subject: str, figures: Callable[[], verdicts.Column]) -> Sequence[int] | None:
        """Return the bounds by figure; None while no node is known.

        `figures` returns those of every known node, one row per figure.
        """
        bounds = self._bounds.get(subject)
        if bounds is None or self._changes[subject] >= _EXACT_AGAIN:
            present = figures()
            if not present.size:
                return None
            bounds = self._bounds[subject] = present.min(axis=1).tolist()
            self._changes[subject] = 0
        return bounds
