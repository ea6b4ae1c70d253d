"""What a pod will use, how full a node really is, and how much of it may still be taken.

Every amount is a vector over one fixed *universe* of resource names (cpu in milli, everything
else in base units), so that a node's figures stay small and become columns without a lookup.
Times are seconds since the epoch.
"""

import dataclasses
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from api import names
from api.koordinator.metadata.qos import Band

Vector = tuple[int, ...]

UNLIMITED = (1 << 62) - 1
"""Room on a node that nothing restricts."""

_LARGEST = 1 << 52
"""Estimates beyond this are cut: no machine has them, and sums must stay within 64 bits."""

_CPU_GUESS = 250
_MEMORY_GUESS = 200 << 20

_BORROWED: Mapping[Band, Mapping[str, str]] = {
    Band.BATCH: {"cpu": names.BATCH_CPU, "memory": names.BATCH_MEMORY},
    Band.MID: {"cpu": names.MID_CPU, "memory": names.MID_MEMORY},
}
_GUESSES: Mapping[str, int] = {
    "cpu": _CPU_GUESS,
    names.BATCH_CPU: _CPU_GUESS,
    "memory": _MEMORY_GUESS,
    names.BATCH_MEMORY: _MEMORY_GUESS,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Thresholds:
    """Percentages of a node above which it is too busy, and by which usage that is measured."""

    percent: Mapping[str, int] = dataclasses.field(default_factory=dict)
    kind: str = ""
    """Aggregation such as p95; empty = the latest usage."""
    duration: float = 0.0
    """Exact window in seconds; 0 = the longest there is."""

    def active(self) -> bool:
        """Whether any resource is restricted."""
        return any(self.percent.values())


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """The three groups of thresholds that hold on one node."""

    usage: Thresholds
    prod: Thresholds
    aggregated: Thresholds

    def chosen(self, *, prod: bool) -> tuple[Thresholds, bool]:
        """Return the group that decides for such a pod and whether it compares prod usage."""
        if prod and self.prod.active():
            return self.prod, True
        if self.aggregated.kind and self.aggregated.percent:
            return self.aggregated, False
        return self.usage, False


@dataclasses.dataclass(frozen=True, slots=True)
class Arguments:
    """How load is judged; the values are already defaulted and checked."""

    profile: Profile
    factors: Mapping[str, int]
    weights: Mapping[str, int]
    dominant_weight: int = 0
    filter_expired: bool = True
    expiration_seconds: float = 180.0
    schedule_when_expired: bool = False
    prod_includes_system: bool = False
    score_prod_usage: bool = False
    score_kind: str = ""
    score_duration: float = 0.0
    seconds_after_scheduled: float | None = None
    seconds_after_initialized: float | None = None
    customizable: bool = False
    extra_resources: tuple[str, ...] = ()

    def universe(self) -> tuple[str, ...]:
        """Every resource that takes part, by name."""
        groups = (self.profile.usage, self.profile.prod, self.profile.aggregated)
        found = {"cpu", "memory", *self.factors, *self.weights, *self.extra_resources}
        return tuple(sorted(found.union(*(group.percent for group in groups))))


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """Usage of a node aggregated over one duration, by kind of aggregation."""

    duration: float
    usage: Mapping[str, Vector]


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """What the agent of one node last measured."""

    updated_at: float | None
    interval: float
    usage: Vector | None
    """None: the report carries no node figures at all."""
    system: Vector
    windows: tuple[Window, ...]
    pods: Mapping[str, tuple[bool, Vector | None]]
    """By namespace/name: whether reported as prod, and the usage (None: nothing measured)."""
    universe: tuple[str, ...] = ()
    """The resources that the vectors are about; empty: those that its reader means."""

    def aggregated(self, kind: str, duration: float) -> Vector | None:
        """Look up an aggregated usage; None where the exact window asked for is missing."""
        fitting = [window for window in self.windows if kind in window.usage]
        if duration > 0:
            return next((w.usage[kind] for w in fitting if w.duration == duration), None)
        if not fitting:
            return self.usage
        return max(fitting, key=lambda window: window.duration).usage[kind]


def restated(report: Report, universe: tuple[str, ...]) -> Report:
    """Return a report over another universe; a resource that it was not read for is nothing."""
    if not report.universe or report.universe == universe:
        return report
    places = {name: place for place, name in enumerate(report.universe)}
    chosen = [places.get(name) for name in universe]

    def moved(vector: Vector | None) -> Vector | None:
        if vector is None:
            return None
        return tuple([0 if place is None else vector[place] for place in chosen])

    return dataclasses.replace(
        report,
        usage=moved(report.usage),
        system=moved(report.system) or (),
        windows=tuple(
            Window(one.duration, {kind: moved(used) or () for kind, used in one.usage.items()})
            for one in report.windows
        ),
        pods={key: (prod, moved(used)) for key, (prod, used) in report.pods.items()},
        universe=universe,
    )


class Resident(NamedTuple):
    """A pod known to be on a node, as far as load is concerned.

    Many are made for every change of a node, hence the leanest of immutable shapes.
    """

    key: str
    estimate: Vector
    prod: bool
    assigned_at: float
    due: float | None = None
    """Until a report newer than this, the estimate counts rather than the measurement."""


class Sums(msgspec.Struct, frozen=True, gc=False):
    """What the residents of a node add to its measured usage."""

    prod_usage: Vector
    node_delta: Vector
    prod_delta: Vector
    node_estimated: Vector

    def with_unreported(self, pod: Resident) -> "Sums":
        """Return the sums with one more resident, of which the report says nothing."""
        estimate = pod.estimate
        return Sums(
            self.prod_usage,
            plus(self.node_delta, estimate),
            plus(self.prod_delta, estimate) if pod.prod else self.prod_delta,
            plus(self.node_estimated, estimate),
        )

    def plus(self, other: "Sums") -> "Sums":
        """Return the sums with those of other residents."""
        return Sums(
            plus(self.prod_usage, other.prod_usage),
            plus(self.node_delta, other.node_delta),
            plus(self.prod_delta, other.prod_delta),
            plus(self.node_estimated, other.node_estimated),
        )

    def less(self, other: "Sums") -> "Sums":
        """Return the sums without those of some of the residents."""
        return Sums(
            minus(self.prod_usage, other.prod_usage),
            minus(self.node_delta, other.node_delta),
            minus(self.prod_delta, other.prod_delta),
            minus(self.node_estimated, other.node_estimated),
        )


def vector(amounts: Mapping[str, int], universe: Sequence[str]) -> Vector:
    """Lay out amounts over the universe; what is missing is nothing."""
    return tuple([amounts.get(name, 0) for name in universe])


def plus(left: Vector, right: Vector) -> Vector:
    """Add two vectors."""
    return tuple(map(operator.add, left, right))


def minus(left: Vector, right: Vector) -> Vector:
    """Subtract a vector from another."""
    return tuple(map(operator.sub, left, right))


def estimate(
    requests: Mapping[str, int],
    limits: Mapping[str, int],
    band: Band,
    factors: Mapping[str, int],
) -> dict[str, int]:
    """Estimate what a pod will use of each resource that has a factor."""
    return {name: _estimate_one(requests, limits, band, name, factors[name]) for name in factors}


def _estimate_one(
    requests: Mapping[str, int], limits: Mapping[str, int], band: Band, name: str, factor: int
) -> int:
    asked = _counted_as(band, name)
    limit = limits.get(asked, 0)
    quantity = max(limit, requests.get(asked, 0))
    if quantity == 0:
        return _GUESSES.get(asked, 0)
    expected = (2 * quantity * factor + 100) // 200  # half away from zero
    expected = max(-_LARGEST, min(expected, _LARGEST))
    return min(expected, limit) if limit > 0 else expected


def _counted_as(band: Band, name: str) -> str:
    if band in (Band.PROD, Band.NONE):
        return name
    return _BORROWED.get(band, {}).get(name, "")


def due_time(
    assigned_at: float,
    initialized_at: float | None,
    after_scheduled: float | None,
    after_initialized: float | None,
) -> float | None:
    """Say until when a pod's estimate counts even if a measurement exists."""
    if after_initialized and initialized_at is not None:
        return initialized_at + after_initialized
    if after_scheduled:
        return assigned_at + after_scheduled
    return None


_UNREPORTED: tuple[bool, Vector | None] = (False, None)


def accumulate(
    report: Report, residents: Iterable[Resident], width: int, *, include_system: bool = False
) -> Sums:
    """Sum what the residents of a node use and are still expected to use."""
    updated = float("-inf") if report.updated_at is None else report.updated_at
    reported = report.pods.get
    # Collected first and summed by column at the end: thousands of nodes change every minute.
    used_by_prod: list[Vector] = [report.system] if include_system else []
    estimates: list[Vector] = []
    missing_here: list[Vector] = []
    missing_of_prod: list[Vector] = []
    for pod in residents:
        reported_prod, used = reported(pod.key, _UNREPORTED)
        active = pod.prod and reported_prod
        if active and used is not None:
            used_by_prod.append(used)
        if not any(pod.estimate):
            continue
        estimates.append(pod.estimate)
        missing = _missing(pod, used, updated, report.interval)
        if missing is not None:
            missing_here.append(missing)
        if pod.prod and not active and used is not None:
            missing_of_prod.append(pod.estimate)
        elif pod.prod and missing is not None:
            missing_of_prod.append(missing)
    return Sums(
        _total(used_by_prod, width),
        _total(missing_here, width),
        _total(missing_of_prod, width),
        _total(estimates, width),
    )


def _total(vectors: Sequence[Vector], width: int) -> Vector:
    if len(vectors) == 1:
        return vectors[0]
    return tuple(map(sum, zip(*vectors, strict=True))) if vectors else (0,) * width


def _missing(pod: Resident, used: Vector | None, updated: float, interval: float) -> Vector | None:
    """What the measurement does not show yet of a pod; None where it shows everything."""
    if used is None:
        return pod.estimate
    recent = pod.assigned_at > updated - interval
    if not recent and (pod.due is None or pod.due <= updated):
        return None
    return tuple([max(0, e - u) for e, u in zip(pod.estimate, used, strict=True)])


class Basis(msgspec.Struct, frozen=True, gc=False):
    """What the usage of a node is expected to be, before its pods are added."""

    prod: bool
    """Whether only what prod pods use counts."""
    measured: Vector | None
    """None: what is measured of the node does not count."""

    def expected(self, sums: Sums) -> Vector:
        """Return the expected usage of the node before the incoming pod."""
        if self.prod:
            return plus(sums.prod_usage, sums.prod_delta)
        if self.measured is None:
            return sums.node_estimated
        return plus(self.measured, sums.node_delta)


def basis(report: Report, *, prod: bool, kind: str = "", duration: float = 0.0) -> Basis:
    """Return by what the usage of a node is judged; the report has node figures."""
    if prod:
        return Basis(prod, None)
    if kind:
        return Basis(prod, report.aggregated(kind, duration))
    assert report.usage is not None
    return Basis(prod, report.usage)


def full(total: int, percent: int) -> int | None:
    """Return the largest usage whose rounded share is at or under a percentage; None: any is."""
    if percent == 0 or total == 0:
        return None
    return -((2 * percent + 1) * total // -200) - 1


def room(most: int | None, used: int) -> int:
    """Return the largest estimate for which a largest usage leaves room."""
    if most is None:
        return UNLIMITED
    return max(-UNLIMITED, min(most - used, UNLIMITED))
