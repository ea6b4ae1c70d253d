"""What was sampled a while ago: bounded series, their averages and their percentiles. Pure.

Every sample is kept as it was taken as long as its series stays within `MOST_SAMPLES`; whenever it
grows longer, every two neighbours become their mean, and so do later samples that come as close.
All series together hold at most `MOST_TOTAL` samples of 16 bytes, looked at every ten seconds;
beyond that the longest ones are thinned in the same way.
"""

import bisect
import math
import struct
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeGuard

import msgspec

PERCENTILES: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
MOST_SAMPLES: Final = 2048
"""Half an hour and more of samples taken every second."""
MOST_TOTAL: Final = 1_500_000
MOST_SERIES: Final = 16_384
"""Beyond this many, new series take the place of those without news; where all have some, none
are begun."""
_FEWEST_SAMPLES: Final = 64
_COMPACT_AFTER: Final = 32
_PRUNE_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 1.0
_LATELY_SECONDS: Final = 60.0


class Kept(msgspec.Struct, frozen=True):
    """The samples of one series, to be put somewhere safe."""

    key: tuple[str, ...]
    keep_seconds: float
    times: "array[float]"
    values: "array[float]"


class Series:
    """Samples of one figure in the order of their time, kept for a limited while."""

    __slots__ = (
        "_latest",
        "_latest_at",
        "_merged",
        "_start",
        "_step",
        "_times",
        "_values",
        "keep_seconds",
        "most",
    )

    def __init__(self, keep_seconds: float, most: int = MOST_SAMPLES) -> None:
        self.keep_seconds = keep_seconds
        self.most = most
        self._times = array("d")
        self._values = array("d")
        self._start = 0
        self._merged = 1
        self._step = 0.0
        self._latest_at, self._latest = -math.inf, 0.0

    def __len__(self) -> int:
        return len(self._times) - self._start

    def add(self, at: float, value: float) -> None:
        """Take in a sample; one that is older than the newest, or no number, is dropped."""
        latest = self._latest_at
        if at < latest or not math.isfinite(value):
            return
        if at > latest:
            self._latest_at, self._latest = at, value
        times = self._times
        if self._step and len(self) and at - times[-1] < self._step:
            self._merged += 1
            self._values[-1] += (value - self._values[-1]) / self._merged
            return
        times.append(at)
        self._values.append(value)
        self._merged = 1
        before = at - self.keep_seconds
        if times[self._start] < before:
            self._forget(before)
        size = len(times) - self._start
        if size > self.most:
            self.thin(self.most)
        elif self._step and size * 4 < self.most:
            self._step = 0.0

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
        """The latest sample with its time, as it was taken."""
        return (self._latest_at, self._latest) if len(self) else None

    def lately(self, since: float) -> float | None:
        """Return the latest value unless it is older than that."""
        if self._latest_at < since or len(self._times) <= self._start:
            return None
        return self._latest

    def thin(self, most: int) -> None:
        """Keep at most so many samples from now on, means of what there was."""
        self.most = most
        times, values = self._times[self._start :], self._values[self._start :]
        while len(times) > most:
            pairs = zip(values[::2], values[1::2], strict=False)
            means = array("d", [(one + other) / 2 for one, other in pairs])
            values = means + values[len(means) * 2 :]
            times = times[::2]
            # A little less than the distance, so that a tick that comes early is no neighbour.
            self._step = 0.9 * (times[-1] - times[0]) / max(1, len(times) - 1)
        self._times, self._values, self._start, self._merged = times, values, 0, 1

    def kept(self, key: tuple[str, ...]) -> Kept:
        """Return a copy of the samples."""
        return Kept(key, self.keep_seconds, self._times[self._start :], self._values[self._start :])

    def restore(self, kept: Kept, later: float, now: float) -> None:
        """Take in samples of an earlier run, so much later; none may lie in the future."""
        times = array("d", [at + later for at in kept.times])
        last = bisect.bisect_right(times, now)
        self._times, self._values = times[:last], kept.values[:last]
        self._start, self._merged = 0, 1
        if last:
            self._latest_at, self._latest = times[last - 1], kept.values[last - 1]
            self._forget(now - self.keep_seconds)

    def close(self) -> None:
        """Give back what the series holds outside of memory; here nothing."""

    def _bounds(self, start: float, end: float) -> tuple[int, int]:
        first = bisect.bisect_left(self._times, start, self._start)
        return first, bisect.bisect_right(self._times, end, first)

    def _forget(self, before: float) -> None:
        self._start = bisect.bisect_left(self._times, before, self._start)
        # Moving the rest down is paid for by the samples that were dropped since the last time.
        if self._start > max(_COMPACT_AFTER, len(self) // 8):
            del self._times[: self._start]
            del self._values[: self._start]
            self._start = 0


class Histories:
    """The series of one process, by key; those that got no sample for long are dropped."""

    def __init__(
        self,
        most_total: int = MOST_TOTAL,
        most_series: int = MOST_SERIES,
        most_samples: int = MOST_SAMPLES,
        make: Callable[[float, int], Series] = Series,
    ) -> None:
        """`make` returns a series for so many seconds and samples: where samples are kept."""
        self._series: dict[Hashable, Series] = {}
        self._make, self._most_samples = make, most_samples
        self._most_total = most_total
        self._most_series = most_series
        self._most = most_samples
        self._pruned = self._looked = -math.inf
        self._told = self._refusals = 0
        self.problem: Callable[[], str] = lambda: ""
        """Returns why samples are lost where they are kept, empty while none are."""
        self.close: Callable[[], None] = lambda: None
        """Gives back what samples are kept in; none is asked for afterwards."""
        self.refused = 0
        """Samples that were not taken because there are too many series."""

    def __len__(self) -> int:
        return len(self._series)

    @property
    def crowded(self) -> bool:
        """Whether a sample had to be refused since the last prune."""
        return self.refused > self._told

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return sum(map(len, self._series.values()))

    def add(self, key: Hashable, at: float, value: float, keep_seconds: float) -> float | None:
        """Append a sample to a series, which is made at its first one.

        Return the latest value of the series unless it is older; None where there is no room.
        """
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= self._most_series and not self._made_room(at):
                self.refused += 1
                return None
            series = self._series[key] = self._make(keep_seconds, self._most)
        series.keep_seconds = keep_seconds
        series.add(at, value)
        return series.lately(at)

    def _made_room(self, at: float) -> bool:
        """Drop the series that got no sample lately, looking at most once per second."""
        if self._looked <= at < self._looked + _LOOK_SECONDS:
            return False
        self._looked = at
        before = len(self._series)
        self._drop_older(lambda _: at - _LATELY_SECONDS)
        return len(self._series) < before

    def _drop_older(self, than: Callable[[Series], float]) -> None:
        for key, series in tuple(self._series.items()):
            if series.newest is None or series.newest[0] < than(series):
                series.close()
                del self._series[key]

    def get(self, key: Hashable) -> Series | None:
        """Return a series, None where nothing was ever sampled."""
        return self._series.get(key)

    def average(self, key: Hashable, start: float, end: float) -> float | None:
        """Return the mean of a series over an interval, None without samples."""
        series = self._series.get(key)
        return average(series.window(start, end)) if series is not None else None

    def quantile(self, key: Hashable, share: float, start: float, end: float) -> float | None:
        """Return a percentile of a series over an interval, None without samples."""
        series = self._series.get(key)
        values = series.window(start, end) if series is not None else ()
        return percentile(sorted(values), share) if len(values) else None

    def newest(self, key: Hashable, since: float) -> float | None:
        """Return the latest value unless it is older than `since`."""
        series = self._series.get(key)
        return series.lately(since) if series is not None else None

    def prune(self, at: float) -> None:
        """Drop the series whose newest sample has left their own window, and keep the bound.

        Asked more often than every few seconds it does nothing.
        """
        if self._pruned <= at < self._pruned + _PRUNE_SECONDS:
            return
        self._pruned = at
        if self._refusals == self.refused:
            self._told = self.refused
        self._refusals = self.refused
        self._drop_older(lambda series: at - series.keep_seconds)
        while self.samples > self._most_total and self._most > _FEWEST_SAMPLES:
            self._most //= 2
            for series in self._series.values():
                series.thin(self._most)
        if self._most < self._most_samples and self.samples * 4 < self._most_total:
            self._most *= 2
            for series in self._series.values():
                series.most = self._most

    def words(self) -> list[tuple[str, ...]]:
        """Return the keys that are made of words; only such series can be kept."""
        return [key for key in self._series if _is_words(key)]

    def kept(self, keys: Iterable[tuple[str, ...]] | None = None) -> Iterator[Kept]:
        """Yield copies of series, one after another; those that went meanwhile are left out."""
        for key in self.words() if keys is None else keys:
            series = self._series.get(key)
            if series is not None:
                yield series.kept(key)

    def restore(self, kept: Iterable[Kept], later: float, now: float) -> int:
        """Take in series of an earlier run where there are none yet; return how many."""
        found = 0
        for one in kept:
            if one.key in self._series or len(self._series) >= self._most_series:
                continue
            if not _is_sound(one):
                continue
            series = self._make(one.keep_seconds, self._most)
            series.restore(one, later, now)
            if len(series):
                self._series[one.key] = series
                found += 1
        return found


class Counters:
    """Turns counters that only grow into rates per second."""

    def __init__(self, longest_gap: float) -> None:
        self._longest_gap = longest_gap
        self._pruned = -math.inf
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
        """Forget counters that were not read for longer than the longest gap.

        Asked more often than every few seconds it does nothing.
        """
        if self._pruned <= at < self._pruned + _PRUNE_SECONDS:
            return
        self._pruned = at
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


def _is_sound(kept: Kept) -> bool:
    """Tell whether samples are numbers in the order of their time."""
    numbers = all(map(math.isfinite, kept.times)) and all(map(math.isfinite, kept.values))
    return numbers and sorted(kept.times) == kept.times.tolist()


def _is_words(key: Hashable) -> TypeGuard[tuple[str, ...]]:
    return isinstance(key, tuple) and all(isinstance(word, str) for word in key)


def _single(value: float) -> float:
    result: float = struct.unpack("f", struct.pack("f", value))[0]
    return result
