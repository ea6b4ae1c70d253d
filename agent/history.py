"""Ring buffers of samples; averages and percentiles."""

import bisect
import struct
from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence

PERCENTILES: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_COMPACT_AFTER = 64


class Series:
    """Samples of one figure in the order of their time, kept for a limited while."""

    __slots__ = ("_start", "_times", "_values", "keep_seconds")

    def __init__(self, keep_seconds: float) -> None:
        self.keep_seconds = keep_seconds
        self._times = array("d")
        self._values = array("d")
        self._start = 0

    def __len__(self) -> int:
        return len(self._times) - self._start

    def add(self, at: float, value: float) -> None:
        """Append a sample; one that is older than the newest is dropped."""
        if self._times and at < self._times[-1]:
            return
        self._times.append(at)
        self._values.append(value)
        self._forget(at - self.keep_seconds)

    def window(self, start: float, end: float) -> Sequence[float]:
        """Return the values sampled in the closed interval."""
        first, last = self._bounds(start, end)
        return self._values[first:last]

    def covered(self, start: float, end: float) -> float:
        """Return the seconds between the first and the last sample of the interval."""
        first, last = self._bounds(start, end)
        return self._times[last - 1] - self._times[first] if last > first else 0.0

    @property
    def newest(self) -> tuple[float, float] | None:
        """The latest sample with its time."""
        return (self._times[-1], self._values[-1]) if len(self) else None

    def _bounds(self, start: float, end: float) -> tuple[int, int]:
        first = bisect.bisect_left(self._times, start, self._start)
        return first, bisect.bisect_right(self._times, end, first)

    def _forget(self, before: float) -> None:
        self._start = bisect.bisect_left(self._times, before, self._start)
        # Moving the rest down is paid for by the samples that were dropped since the last time.
        if self._start > max(_COMPACT_AFTER, len(self)):
            del self._times[: self._start]
            del self._values[: self._start]
            self._start = 0


class Histories:
    """The series of one process, by key; those that got no sample for long are dropped."""

    def __init__(self) -> None:
        self._series: dict[Hashable, Series] = {}

    def __len__(self) -> int:
        return len(self._series)

    def add(self, key: Hashable, at: float, value: float, keep_seconds: float) -> None:
        """Append a sample to a series, which is made at its first one."""
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = Series(keep_seconds)
        series.keep_seconds = keep_seconds
        series.add(at, value)

    def get(self, key: Hashable) -> Series | None:
        """Return a series, None where nothing was ever sampled."""
        return self._series.get(key)

    def average(self, key: Hashable, start: float, end: float) -> float | None:
        """Return the mean of a series over an interval, None without samples."""
        series = self._series.get(key)
        return average(series.window(start, end)) if series is not None else None

    def newest(self, key: Hashable, since: float) -> float | None:
        """Return the latest value unless it is older than `since`."""
        series = self._series.get(key)
        latest = series.newest if series is not None else None
        return latest[1] if latest is not None and latest[0] >= since else None

    def prune(self, at: float) -> None:
        """Drop the series whose newest sample has left their own window."""
        for key, series in tuple(self._series.items()):
            if series.newest is None or series.newest[0] < at - series.keep_seconds:
                del self._series[key]


class Counters:
    """Turns counters that only grow into rates per second."""

    def __init__(self, longest_gap: float) -> None:
        self._longest_gap = longest_gap
        self._last: dict[Hashable, tuple[float, float]] = {}

    def rate(self, key: Hashable, at: float, value: float) -> float | None:
        """Return the rate since the last reading.

        None for the first one, after a long gap, and when the counter went back: what was counted
        before a reset is unknown, and a guess would stay in averages for minutes.
        """
        last = self._last.get(key)
        self._last[key] = (at, value)
        if last is None:
            return None
        elapsed, grown = at - last[0], value - last[1]
        if elapsed <= 0 or elapsed > self._longest_gap or grown < 0:
            return None
        return grown / elapsed

    def prune(self, at: float) -> None:
        """Forget counters that were not read for longer than the longest gap."""
        self._last = {
            key: last for key, last in self._last.items() if at - last[0] <= self._longest_gap
        }


def average(values: Sequence[float]) -> float | None:
    """Return the mean, None for nothing."""
    return sum(values) / len(values) if len(values) else None


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which a share of the ascending values lies.

    The index is worked out in single precision, as every consumer of these figures expects.
    """
    index = int(_single(_single(len(ordered)) * _single(share))) - 1
    return ordered[max(0, index)]


def summary(values: Iterable[float]) -> dict[str, float]:
    """Return the mean and the usual percentiles, empty for nothing."""
    ordered = sorted(values)
    if not ordered:
        return {}
    figures = {"avg": sum(ordered) / len(ordered)}
    return figures | {name: percentile(ordered, share) for name, share in PERCENTILES.items()}


def _single(value: float) -> float:
    result: float = struct.unpack("f", struct.pack("f", value))[0]
    return result
