"""What a Prometheus answers, and over which moments it is asked. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Figure(NamedTuple):
    """One series of an answer at one moment."""

    labels: Mapping[str, str]
    value: float


class Series(NamedTuple):
    """One series of an answer over a range."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]
    """Moments and values; a moment without a number is left out."""


class Range(NamedTuple):
    """Moments at the same distance from each other."""

    first: float
    points: int
    step: float

    @property
    def last(self) -> float:
        """Return the last moment."""
        return self.first + (self.points - 1) * self.step
