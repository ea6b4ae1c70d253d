"""Histograms that forget: buckets whose weights halve with age.

A sample at time ``t`` weighs ``2 ** ((t - reference) / half_life)``, so nothing has to be touched
as time passes; once the newest sample is a hundred half-lives after the reference, the reference
moves and every weight shrinks with it. References are multiples of the half-life.
"""

import bisect
import dataclasses
import itertools
import math
from array import array
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from api.wire import durations

YEAR_ONE: Final = -62_135_596_800
"""0001-01-01T00:00:00Z in seconds since the epoch: the reference of what has seen no sample."""
HEAVIEST: Final = 10_000
"""What the heaviest bucket of a checkpoint weighs."""
_MOST_HALF_LIVES: Final = 100


class HistogramError(ValueError):
    """A checkpoint that does not fit the histogram; says what is wrong with it."""


class Buckets(Protocol):
    """How values fall into buckets."""

    @property
    def count(self) -> int:
        """How many there are."""

    def find(self, value: float) -> int:
        """Return the bucket of a value; those out of range go to the first or the last one."""

    def start(self, bucket: int) -> float:
        """Return the lowest value of a bucket."""


@dataclasses.dataclass(frozen=True, slots=True)
class Exponential:
    """Buckets that widen by a constant ratio."""

    largest: float
    first: float
    ratio: float

    @property
    def count(self) -> int:
        """How many there are."""
        return math.ceil(self._position(self.largest)) + 1

    def find(self, value: float) -> int:
        """Return the bucket of a value."""
        if value < self.first:
            return 0
        return min(int(self._position(value)), self.count - 1)

    def start(self, bucket: int) -> float:
        """Return the lowest value of a bucket."""
        if not bucket:
            return 0.0
        return float(self.first * (self.ratio**bucket - 1) / (self.ratio - 1))

    def _position(self, value: float) -> float:
        return math.log(value * (self.ratio - 1) / self.first + 1) / math.log(self.ratio)


@dataclasses.dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is kept of a histogram: whole weights relative to the heaviest bucket, and the sum."""

    weights: Mapping[int, float]
    total: float
    reference: float = YEAR_ONE
    """Seconds since the epoch."""

    def written(self) -> dict[str, Any]:
        """Return it as JSON holds it; what is zero is left out."""
        body: dict[str, Any] = {"referenceTimestamp": durations.moment(self.reference)}
        if self.weights:
            body["bucketWeights"] = {str(key): weight for key, weight in self.weights.items()}
        if self.total:
            body["totalWeight"] = self.total
        return body


def read(body: Any) -> Checkpoint:
    """Read a checkpoint as JSON holds it."""
    try:
        weights = body.get("bucketWeights") or {}
        return Checkpoint(
            {int(key): int(weight) for key, weight in weights.items()},
            float(body.get("totalWeight") or 0.0),
            durations.timestamp(body["referenceTimestamp"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise HistogramError(f"no checkpoint: {type(error).__name__}: {error}") from error


class Histogram:
    """Weights of buckets; with a half-life they lose half of their weight every so often."""

    __slots__ = (
        "_count",
        "_empty_below",
        "_first",
        "_last",
        "_reference",
        "_scheme",
        "_total",
        "_weights",
        "half_life",
    )

    def __init__(self, scheme: Buckets, empty_below: float, half_life: float | None = None) -> None:
        self.half_life = half_life
        self._scheme = scheme
        self._count = scheme.count
        self._empty_below = empty_below
        self._weights = array("d", bytes(8 * self._count))
        self._total = 0.0
        self._reference: float = YEAR_ONE
        self._first, self._last = self._count - 1, 0

    @property
    def empty(self) -> bool:
        """Whether no bucket weighs anything to speak of."""
        return self._weights[self._first] < self._empty_below

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return self._total

    @property
    def reference(self) -> float:
        """The time whose samples weigh what they are given, in seconds since the epoch."""
        return self._reference

    def add(self, value: float, weight: float, at: float) -> None:
        """Take in a value that was sampled at a time in seconds since the epoch."""
        weight = self._decayed(weight, at)
        bucket = self._scheme.find(value)
        self._weights[bucket] += weight
        self._total += weight
        if self._weights[bucket] >= self._empty_below:
            self._first, self._last = min(self._first, bucket), max(self._last, bucket)

    def subtract(self, value: float, weight: float, at: float) -> None:
        """Take back a value that was added with this weight and time."""
        weight = self._decayed(weight, at)
        bucket = self._scheme.find(value)
        self._weights[bucket] = self._less(self._weights[bucket], weight)
        self._total = self._less(self._total, weight)
        self._narrow()

    def percentile(self, share: float) -> float:
        """Return the end of the bucket below which a share of the weight lies; zero for nothing."""
        if self.empty:
            return 0.0
        return self._end(self._below(self._sums(), share))

    def percentiles(self, shares: Iterable[float]) -> list[float]:
        """Return several percentiles, added up once."""
        if self.empty:
            return [0.0 for _ in shares]
        sums = self._sums()
        return [self._end(self._below(sums, share)) for share in shares]

    def checkpoint(self) -> Checkpoint:
        """Return what is to be kept."""
        part = self._weights[self._first : self._last + 1]
        heaviest = max(part, default=0.0)
        if heaviest <= 0.0:
            return Checkpoint({}, self._total, self._reference)
        factor = HEAVIEST / heaviest
        # Halves are rounded up.
        rounded = (math.floor(weight * factor + 0.5) for weight in part)
        weights = {bucket: whole for bucket, whole in enumerate(rounded, self._first) if whole}
        return Checkpoint(weights, self._total, self._reference)

    def restore(self, kept: Checkpoint) -> None:
        """Become what a checkpoint says."""
        self._begin(kept)
        everything = sum(kept.weights.values())
        if not everything:
            return
        self._total = kept.total
        for bucket, weight in kept.weights.items():
            self._weights[bucket] = weight * kept.total / everything
            if self._weights[bucket] >= self._empty_below:
                self._first, self._last = min(self._first, bucket), max(self._last, bucket)

    def exact(self) -> Checkpoint:
        """Return everything as it is, for callers that save so often that rounding adds up."""
        weights = {bucket: weight for bucket, weight in enumerate(self._weights) if weight}
        return Checkpoint(weights, self._total, self._reference)

    def resume(self, kept: Checkpoint) -> None:
        """Become exactly what was kept as it was."""
        self._begin(kept)
        for bucket, weight in kept.weights.items():
            self._weights[bucket] = weight
        self._total = kept.total
        self._first, self._last = 0, self._count - 1
        self._narrow()

    def _begin(self, kept: Checkpoint) -> None:
        """Forget everything, unless the checkpoint makes no sense."""
        if not math.isfinite(kept.total) or kept.total < 0:
            raise HistogramError(f"the total weight {kept.total} is no positive number")
        if not math.isfinite(kept.reference):
            raise HistogramError(f"the reference {kept.reference} is no time")
        for bucket, weight in kept.weights.items():
            if not 0 <= bucket < self._count or not 0 <= weight < math.inf:
                raise HistogramError(f"bucket {bucket} of {self._count} with weight {weight}")
        self._weights = array("d", bytes(8 * self._count))
        self._first, self._last = self._count - 1, 0
        self._total, self._reference = 0.0, kept.reference

    def moved(self, seconds: float) -> None:
        """Take every sample for later by so many seconds, after the clock was set.

        References stay multiples of the half-life, so this is exact to half of one.
        """
        if self.half_life is not None:
            self._reference += self.half_life * round(seconds / self.half_life)

    def _decayed(self, weight: float, at: float) -> float:
        half_life = self.half_life
        if half_life is None:
            return weight
        if at > self._reference + _MOST_HALF_LIVES * half_life:
            self._refer(at, half_life)
        return float(weight * 2.0 ** ((at - self._reference) / half_life))

    def _refer(self, at: float, half_life: float) -> None:
        """Move the reference to the multiple of the half-life that is nearest to a time."""
        reference = math.floor((at - YEAR_ONE) / half_life + 0.5) * half_life + YEAR_ONE
        factor = math.ldexp(1.0, round((self._reference - reference) / half_life))
        self._reference = reference
        self._weights = array("d", [weight * factor for weight in self._weights])
        self._total *= factor
        self._narrow()

    def _less(self, weight: float, taken: float) -> float:
        rest = weight - taken
        return rest if rest >= self._empty_below else 0.0

    def _narrow(self) -> None:
        """Leave out the buckets at both ends that weigh nothing to speak of."""
        weights, least = self._weights, self._empty_below
        while weights[self._first] < least and self._first < self._count - 1:
            self._first += 1
        while weights[self._last] < least and self._last > 0:
            self._last -= 1

    def _sums(self) -> list[float]:
        return list(itertools.accumulate(self._weights[self._first : self._last + 1]))

    def _below(self, sums: list[float], share: float) -> int:
        found = self._first + bisect.bisect_left(sums, share * self._total)
        return min(found, self._last)

    def _end(self, bucket: int) -> float:
        return self._scheme.start(bucket + 1 if bucket < self._count - 1 else bucket)
