"""Baseline of one figure: exponentially decayed mean and deviation. Pure."""

import math

import msgspec


class Baseline(msgspec.Struct, frozen=True, gc=False):
    """What a figure usually is. Old samples count less, by the half-life that each sample names."""

    weight: float = 0.0
    """Decayed number of samples."""
    mean: float = 0.0
    variance: float = 0.0
    samples: int = 0
    since: float = 0.0
    """Monotonic seconds of the first sample."""
    at: float = 0.0
    """Monotonic seconds of the latest one."""

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.variance)

    def learned(self, value: float, at: float, half_life: float) -> "Baseline":
        """Return the baseline with one more sample; what is no finite number changes nothing."""
        if not math.isfinite(value):
            return self
        if not self.samples:
            return Baseline(1.0, value, 0.0, 1, at, at)
        decay = 2.0 ** (-max(0.0, at - self.at) / half_life)
        weight = self.weight * decay + 1.0
        off = value - self.mean
        variance = (1.0 - 1.0 / weight) * (self.variance + off * off / weight)
        return Baseline(
            weight, self.mean + off / weight, variance, self.samples + 1, self.since, at
        )

    def clipped(self, value: float, rise: float) -> float:
        """Return the value, no further from the mean than `rise`: one outlier moves it little."""
        return min(max(value, self.mean - rise), self.mean + rise)
