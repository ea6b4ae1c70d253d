"""What was learned of the containers of one workload; small enough to stand in its status. Pure.

Cpu is a histogram of every figure that was reported. Memory is a histogram of peaks, one per pod
and day: a request has to hold the peak, not the mean. Both forget half in a day.
"""

import base64
import binascii
import dataclasses
import json
import math
import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from domain.usage import histogram

MOST_PODS: Final = 256
"""Of larger workloads a steady part is followed."""
MOST_CONTAINERS: Final = 32
MOST_BYTES: Final = 1024 * 1024
"""A longer state is not read; nothing here can become so long."""
DAY: Final = 86_400.0
_FORGOTTEN_SECONDS: Final = 8 * DAY
_VERSION: Final = "1"
_CORES: Final = histogram.Exponential(1000.0, 0.001, 1.05)
_BYTES: Final = histogram.Exponential(2.0**41, 2.0**20, 1.05)
_EMPTY_BELOW: Final = 0.0001


class StateError(ValueError):
    """A state that cannot be read; says why."""


class Use(NamedTuple):
    """What one container used: cores and bytes."""

    cpu: float
    memory: float

    @property
    def sound(self) -> bool:
        """Whether it is a use at all."""
        return all(0 <= part < math.inf for part in self)


class Report(NamedTuple):
    """What the containers of one pod used, and when that was measured."""

    at: float
    containers: Mapping[str, Use]


@dataclasses.dataclass(frozen=True, slots=True)
class Followed:
    """How far a pod has been taken in: its last report, and its peaks on the day of that."""

    at: float
    day: int
    peaks: Mapping[str, float]


class Container:
    """The containers of one name."""

    __slots__ = ("count", "cpu", "first", "last", "memory")

    def __init__(self, at: float) -> None:
        self.cpu = histogram.Histogram(_CORES, _EMPTY_BELOW, DAY)
        self.memory = histogram.Histogram(_BYTES, _EMPTY_BELOW, DAY)
        self.first = self.last = at
        self.count = 0

    @property
    def days(self) -> float:
        """The days that are known well: as long as was looked, as much as one look per minute."""
        return min((self.last - self.first) / DAY, self.count / (DAY / 60))

    def learn(self, used: Use, at: float, day: int, peak: float | None) -> float:
        """Take in a figure; return the peak of its pod on that day."""
        self.cpu.add(used.cpu, 1.0, at)
        self.first, self.last = min(self.first, at), max(self.last, at)
        self.count += 1
        if peak is not None and used.memory <= peak:
            return peak
        # The day is over at its end: a peak weighs the same, whenever on that day it is seen.
        end = (day + 1) * DAY
        if peak is not None:
            self.memory.subtract(peak, 1.0, end)
        self.memory.add(used.memory, 1.0, end)
        return used.memory

    def written(self) -> list[Any]:
        """Return it as JSON holds it."""
        parts = [_pairs(part.exact()) for part in (self.cpu, self.memory)]
        return [self.first, self.last, self.count, *parts]


class Learned:
    """Everything that was learned of one target."""

    def __init__(self, target: str) -> None:
        self.target = target
        """What it was learned of; another target begins afresh."""
        self.containers: dict[str, Container] = {}
        self.pods: dict[str, Followed] = {}
        """How far each pod has been taken in, by a short name."""

    def learn(self, reports: Mapping[str, Report], now: float) -> int:
        """Take in what is new in the present reports, by pod; return how many figures were."""
        chosen = sorted((_short(pod), pod) for pod in reports)[:MOST_PODS]
        taken = 0
        for short, pod in chosen:
            taken += self._learn(short, reports[pod], now)
        followed = {short for short, _ in chosen}
        self.pods = {short: pod for short, pod in self.pods.items() if short in followed}
        oldest = now - _FORGOTTEN_SECONDS
        self.containers = {n: c for n, c in self.containers.items() if c.last >= oldest}
        return taken

    def _learn(self, short: str, report: Report, now: float) -> int:
        followed = self.pods.get(short)
        if followed is not None and followed.at == report.at:
            return 0
        # A node whose clock is ahead must not make everything else look old.
        at = min(report.at, now)
        day = int(at // DAY)
        peaks = dict(followed.peaks) if followed is not None and followed.day == day else {}
        taken = 0
        for name, used in sorted(report.containers.items()):
            if name not in self.containers and len(self.containers) >= MOST_CONTAINERS:
                continue
            if not used.sound:
                continue
            known = self.containers.setdefault(name, Container(at))
            peaks[name] = known.learn(used, at, day, peaks.get(name))
            taken += 1
        self.pods[short] = Followed(report.at, day, peaks)
        return taken

    def written(self) -> str:
        """Return everything in few letters."""
        body = {
            "target": self.target,
            "containers": {name: part.written() for name, part in self.containers.items()},
            "pods": {short: [pod.at, pod.day, dict(pod.peaks)] for short, pod in self.pods.items()},
        }
        packed = zlib.compress(json.dumps(body, separators=(",", ":")).encode(), 6)
        return f"{_VERSION}:{base64.b64encode(packed).decode()}"


def unpacked(text: str) -> Any:
    """Return what stands in a state, as JSON holds it."""
    version, _, packed = text.partition(":")
    if version != _VERSION:
        raise StateError(f"version {version[:20]!r} is not known")
    try:
        return json.loads(_unpacked(packed))
    except (ValueError, RecursionError) as error:
        raise StateError(f"{type(error).__name__}: {error}") from error


def read(text: str, target: str) -> Learned:
    """Read what was written; nothing, or what was learned of another target, begins afresh."""
    learned = Learned(target)
    if not text:
        return learned
    body = unpacked(text)
    try:
        if body["target"] != target:
            return learned
        for name, part in body["containers"].items():
            learned.containers[name] = _container(part)
        for short, (at, day, peaks) in body["pods"].items():
            sizes = {name: _finite(size) for name, size in peaks.items()}
            learned.pods[short] = Followed(_finite(at), int(day), sizes)
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        raise StateError(f"{type(error).__name__}: {error}") from error
    return learned


def _unpacked(packed: str) -> bytes:
    try:
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(base64.b64decode(packed, validate=True), MOST_BYTES)
    except (zlib.error, binascii.Error) as error:
        raise StateError(f"{type(error).__name__}: {error}") from error
    if not unpacking.eof:
        raise StateError(f"cut short, or longer than {MOST_BYTES} bytes")
    return plain


def _container(part: Any) -> Container:
    first, last, count, cpu, memory = part
    container = Container(_finite(first))
    container.last, container.count = _finite(last), int(count)
    container.cpu.resume(_checkpoint(cpu))
    container.memory.resume(_checkpoint(memory))
    return container


def _finite(written: Any) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"{number} is no figure")
    return number


def _pairs(kept: histogram.Checkpoint) -> list[Any]:
    return [kept.reference, kept.total, list(kept.weights), list(kept.weights.values())]


def _checkpoint(part: Any) -> histogram.Checkpoint:
    reference, total, buckets, weights = part
    pairs = zip(map(int, buckets), map(float, weights), strict=True)
    return histogram.Checkpoint(dict(pairs), float(total), float(reference))


def _short(pod: str) -> str:
    """Return a short name of a pod that is as good as its name, and in no order of its own."""
    return f"{zlib.crc32(pod.encode()):08x}"
