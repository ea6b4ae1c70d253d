"""Counters and histograms for hot paths: to count takes one lock and few steps of the interpreter.

They are exported exactly as those of prometheus_client are.
"""

import bisect
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar

import prometheus_client
from prometheus_client import core, registry, samples, utils


class Count:
    """One series of a counter."""

    __slots__ = ("_lock", "created", "value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.created = time.time()
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        """Count one more, or so many."""
        if amount < 0:
            raise ValueError(f"a counter only grows, not by {amount}")
        with self._lock:
            self.value += amount


class Observed:
    """One series of a histogram."""

    __slots__ = ("_bounds", "_counts", "_lock", "_sum", "created")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._lock = threading.Lock()
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        """How many are up to each bound and above the one before, then how many are above all."""
        self._sum = 0.0
        self.created = time.time()

    def observe(self, amount: float) -> None:
        """Take in one value."""
        with self._lock:
            self._sum += amount
            self._counts[bisect.bisect_left(self._bounds, amount)] += 1

    def read(self) -> tuple[list[int], float]:
        """Return how many are up to each bound, then how many there are, and their sum."""
        with self._lock:
            return list(itertools.accumulate(self._counts)), self._sum


Series = TypeVar("Series", Count, Observed)


class _Metric(registry.Collector, Generic[Series]):
    """The series of one metric by the values of its labels; without labels there is one series."""

    def __init__(self, labels: Sequence[str], made: Callable[[], Series]) -> None:
        self._labels = tuple(labels)
        self._made: Callable[[], Series] = made
        self._series: dict[tuple[str, ...], Series] = {}
        if not labels:
            self.labels()

    def labels(self, *values: object) -> Series:
        """Return the series with these values of the labels, always the same."""
        if len(values) != len(self._labels):
            raise ValueError(f"the labels are {self._labels}; {len(values)} values were given")
        key = tuple(map(str, values))
        found = self._series.get(key)
        # Of two threads that come at once, both get the series of the first.
        return self._series.setdefault(key, self._made()) if found is None else found

    def _exported(self) -> tuple[tuple[tuple[str, ...], Series], ...]:
        return tuple(self._series.items())


class Counter(_Metric[Count]):
    """A metric that only grows."""

    def __init__(self, name: str, description: str, labels: Sequence[str] = ()) -> None:
        """Take a name, which ends in _total."""
        self._name, self._description = name, description
        super().__init__(labels, Count)

    def inc(self, amount: float = 1) -> None:
        """Count where there are no labels."""
        self.labels().inc(amount)

    def describe(self) -> Iterator[core.CounterMetricFamily]:
        """Yield the metric without samples."""
        yield core.CounterMetricFamily(self._name, self._description, labels=self._labels)

    def collect(self) -> Iterator[core.CounterMetricFamily]:
        """Yield the metric with the value of each series."""
        for family in self.describe():
            for values, one in self._exported():
                created = one.created if _SHOWS_CREATED else None
                family.add_metric(values, one.value, created)
            yield family


class Histogram(_Metric[Observed]):
    """A metric that counts values by buckets."""

    def __init__(
        self, name: str, description: str, labels: Sequence[str], buckets: Sequence[float]
    ) -> None:
        """Take the upper bounds of the buckets, the lowest one first."""
        bounds = tuple(map(float, buckets))
        if not bounds or list(bounds) != sorted(bounds) or bounds[0] < 0:
            raise ValueError(f"histogram {name}: {bounds} are no bounds that grow from 0 on")
        self._name, self._description = name, description
        self._bounds = (*map(utils.floatToGoString, bounds), _ALL)
        super().__init__(labels, lambda: Observed(bounds))

    def observe(self, amount: float) -> None:
        """Take in a value where there are no labels."""
        self.labels().observe(amount)

    def describe(self) -> Iterator[core.HistogramMetricFamily]:
        """Yield the metric without samples."""
        yield core.HistogramMetricFamily(self._name, self._description, labels=self._labels)

    def collect(self) -> Iterator[core.HistogramMetricFamily]:
        """Yield the metric with the buckets of each series."""
        for family in self.describe():
            for values, one in self._exported():
                counts, total = one.read()
                family.add_metric(values, tuple(zip(self._bounds, counts, strict=True)), total)
                if _SHOWS_CREATED:
                    labels = dict(zip(self._labels, values, strict=True))
                    created = samples.Sample(f"{self._name}_created", labels, one.created)
                    family.samples.append(created)
            yield family


_ALL: Final = "+Inf"


def _shows_created() -> bool:
    """Tell whether prometheus_client exports since when each series counts, which is a setting."""
    (family,) = prometheus_client.Counter("probe", "A probe.", registry=None).collect()
    return any(one.name.endswith("_created") for one in family.samples)


_SHOWS_CREATED: Final = _shows_created()
