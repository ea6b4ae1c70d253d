"""A generated day of load: what pods use minute by minute, wherever they are.

No recorded trace of machines is at hand, so this one is generated. Workloads follow the time of the
day, each with a peak and a level of its own, and bursts now and then; pods of one workload differ,
and every figure is noisy. Machines have hot spots of their own, as a backup or a neighbour outside
of Kubernetes causes them.
"""

import dataclasses
from typing import Final

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]
DAY: Final = 1440
"""Minutes."""
_GIB: Final = float(1 << 30)
_BURST_HOURS: Final = 10.0
"""Mean time from one burst of a workload to the next."""
_HOT_HOURS: Final = 60.0
"""The same of the hot spots of a machine."""
_MEMORY_OF_SYSTEM: Final = 4 * _GIB


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """How large a day is."""

    nodes: int = 300
    pods_per_node: int = 14
    minutes: int = DAY
    cores: int = 32
    memory_gib: int = 128


class Trace:
    """Use of cpu in thousandths and of memory in bytes, by line of pods and by minute."""

    def __init__(self, size: Size, seed: int) -> None:
        self.size, rng = size, np.random.default_rng(seed)
        count = size.nodes * size.pods_per_node
        self.workload = np.sort(rng.integers(0, max(count // 30, 4), count))
        """Number of the workload by line."""
        workloads = int(self.workload[-1]) + 1
        self.cpu_request = rng.choice([500, 1000, 1500, 2000], workloads).astype(np.float64)
        """By workload."""
        self.memory_request = rng.choice([1, 2, 4, 6], workloads) * _GIB
        self._level = rng.lognormal(np.log(0.6), 0.8, workloads).clip(0.1, 2.0)
        self._swing = rng.uniform(0.1, 0.5, workloads)
        # Most peaks are in the same half of the day, as those of people are.
        self._peak = rng.normal(14 * 60, 180, workloads)
        self._bursts = _spells(rng, workloads, size.minutes, _BURST_HOURS, (20, 90), (1.4, 2.2))
        self._hot = _spells(rng, size.nodes, size.minutes, _HOT_HOURS, (60, 180), (1.15, 1.35))
        self._own = rng.normal(1.0, 0.15, count).clip(0.5, 1.6)
        self._memory_share = rng.uniform(0.4, 0.9, count)
        self._noise, self._rng = np.zeros(count), rng

    def step(self, minute: int) -> tuple[Column, Column]:
        """Return what each line uses in a minute; minutes are asked for in their order."""
        phase = 2 * np.pi * (minute - self._peak) / DAY
        shares = self._level * (1 + self._swing * np.cos(phase)) * self._bursts[:, minute]
        self._noise = 0.8 * self._noise + 0.06 * self._rng.normal(size=self._noise.size)
        factor = (self._own * (1 + self._noise)).clip(0.1, 3.0)
        cpu = (self.cpu_request * shares)[self.workload] * factor
        return cpu, self.memory_request[self.workload] * self._memory_share

    def system(self, minute: int) -> tuple[Column, float]:
        """Return what machines use besides pods."""
        extra = (self._hot[:, minute] - 1.0) * self.size.cores * 1000
        return 0.03 * self.size.cores * 1000 + extra, _MEMORY_OF_SYSTEM


def _spells(
    rng: np.random.Generator,
    count: int,
    minutes: int,
    hours: float,
    lasting: tuple[int, int],
    factors: tuple[float, float],
) -> Column:
    """Return factors by row and minute, 1 but for spells that come by chance."""
    found = np.ones((count, minutes))
    for row in range(count):
        at = int(rng.exponential(hours * 60))
        while at < minutes:
            end = at + int(rng.integers(*lasting))
            found[row, at:end] = rng.uniform(*factors)
            at = end + int(rng.exponential(hours * 60))
    return found
