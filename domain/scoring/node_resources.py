"""NodeResourcesFit and NodeResourcesBalancedAllocation: how full and how even a node would be.

Arithmetic follows Go: integers truncate, shares are 64-bit floats, `math.Round` is half away from
zero. A resource that a node does not offer is left out for that node, and so is a scalar resource
that the pod does not request.
"""

import dataclasses
import enum
from collections.abc import Sequence
from typing import Final

import numpy as np

from domain.scoring import columns as node_columns
from domain.scoring import pod as scored_pod

Integers = node_columns.Integers
Floats = node_columns.Floats

HIGHEST: Final = 100
"""The largest score of one plug-in."""
RAMP: Final = HIGHEST + 1


class Strategy(enum.Enum):
    """`scoringStrategy.type` of NodeResourcesFit."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """The scoring strategy of NodeResourcesFit."""

    strategy: Strategy = Strategy.LEAST_ALLOCATED
    weights: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
    """Weight by resource, in the order of the configuration."""
    ramp: tuple[int, ...] = ()
    """Score at 0 to 100 percent of utilisation, of RequestedToCapacityRatio only."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Resource:
    """One scored resource on the candidate rows, without and with the pod."""

    capacity: Integers
    before: Integers
    after: Integers
    weight: int
    everywhere: bool


def is_scalar(resource: str) -> bool:
    """Tell whether the scheduler keeps a resource as a scalar: extended, huge page, attachable."""
    return "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


class Taken:
    """What the candidate rows offer, taken once for both plug-ins."""

    def __init__(self, nodes: node_columns.NodeColumns, rows: Integers) -> None:
        self.nodes, self.rows = nodes, rows
        self._offered: dict[str, tuple[Integers, bool]] = {}

    def offered(self, resource: str) -> tuple[Integers, bool]:
        """Return how much of a resource each candidate offers, and whether all offer some."""
        found = self._offered.get(resource)
        if found is None:
            capacity = self.nodes.allocatable[self.nodes.resources[resource]].take(self.rows)
            found = self._offered[resource] = capacity, bool(capacity.all())
        return found

    def used(self, resource: str, *, plain: bool) -> Integers:
        """Return what is requested there, for the scheduler's Fit with a minimum unless plain."""
        if plain or resource not in (node_columns.CPU, node_columns.MEMORY):
            amounts = self.nodes.requested[self.nodes.resources[resource]]
        else:
            amounts = self.nodes.nonzero[0 if resource == node_columns.CPU else 1]
        taken: Integers = amounts.take(self.rows)
        return taken


def fit_scores(fit: Fit, pod: scored_pod.PodScoring, taken: Taken) -> Integers:
    """Return the NodeResourcesFit score of each candidate row."""
    chosen = [
        _resource(taken, name, (pod.nonzero.get(name, 0), weight))
        for name, weight in fit.weights
        if _is_scored(name, pod.nonzero, taken.nodes)
    ]
    total = np.zeros(len(taken.rows), dtype=np.int64)
    weights: Integers | int = 0
    by_ratio = fit.strategy is Strategy.REQUESTED_TO_CAPACITY_RATIO
    ramp = np.array(fit.ramp, dtype=np.int64) if by_ratio else total
    for one in chosen:
        score = _fullness(fit.strategy, one, ramp)
        present = None if one.everywhere else one.capacity > 0
        if by_ratio:
            present = score > 0 if present is None else present & (score > 0)
        if present is None:
            total += score if one.weight == 1 else score * one.weight
            weights = weights + one.weight
        else:
            total += np.where(present, score * one.weight, 0)
            weights = weights + present * one.weight
    if isinstance(weights, int):
        return _rounded(total, weights) if by_ratio and weights else total // max(weights, 1)
    divisor = np.maximum(weights, 1)
    return _rounded(total, divisor) if by_ratio else total // divisor


def _is_scored(name: str, asked: scored_pod.Amounts, nodes: node_columns.NodeColumns) -> bool:
    return name in nodes.resources and (bool(asked.get(name)) or not is_scalar(name))


def _resource(taken: Taken, name: str, asked: tuple[int, int], *, plain: bool = False) -> _Resource:
    capacity, everywhere = taken.offered(name)
    before = taken.used(name, plain=plain)
    amount, weight = asked
    return _Resource(capacity, before, before + amount, weight, everywhere)


def _fullness(strategy: Strategy, one: _Resource, ramp: Integers) -> Integers:
    divisor = one.capacity if one.everywhere else np.maximum(one.capacity, 1)
    used = np.minimum(one.after, one.capacity)
    if strategy is Strategy.LEAST_ALLOCATED:
        return (one.capacity - used) * HIGHEST // divisor
    percent: Integers = used * HIGHEST // divisor
    return percent if strategy is Strategy.MOST_ALLOCATED else ramp.take(percent)


def _rounded(total: Integers, divisor: Integers | int) -> Integers:
    """Divide and round half away from zero; scores and weights are never negative."""
    return (2 * total + divisor) // (2 * divisor)


def ramp(shape: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the score at each percent of utilisation between points of (utilisation, score).

    Scores are 0 to 10 in the configuration and 0 to 100 here; slopes truncate towards zero.
    """
    points = [(utilization, score * (HIGHEST // 10)) for utilization, score in shape]
    return tuple(_interpolated(points, percent) for percent in range(RAMP))


def _interpolated(points: Sequence[tuple[int, int]], percent: int) -> int:
    for place, (utilization, score) in enumerate(points):
        if percent <= utilization:
            if not place:
                return score
            before, low = points[place - 1]
            rise = (score - low) * (percent - before)
            step = abs(rise) // (utilization - before)
            return low + (step if rise >= 0 else -step)
    return points[-1][1]


def balance_scores(
    resources: Sequence[str],
    gain: bool,
    pod: scored_pod.PodScoring,
    taken: Taken,
) -> Integers:
    """Return the NodeResourcesBalancedAllocation score of each candidate row.

    With `gain` the pod's effect on the balance is scored, else the balance that it leaves behind.
    """
    chosen = [
        _resource(taken, name, (pod.requests.get(name, 0), 1), plain=True)
        for name in resources
        if _is_scored(name, pod.requests, taken.nodes)
    ]
    size = len(taken.rows)
    after = _balance(chosen, [one.after for one in chosen], size)
    if not gain:
        return after
    before = _balance(chosen, [one.before for one in chosen], size)
    half = HIGHEST // 2
    return half + (half + after - before) // 2


def _balance(chosen: Sequence[_Resource], used: Sequence[Integers], size: int) -> Integers:
    if len(chosen) == 2 and chosen[0].everywhere and chosen[1].everywhere:
        first = np.minimum(used[0] / chosen[0].capacity, 1.0)
        second = np.minimum(used[1] / chosen[1].capacity, 1.0)
        deviation = np.abs((first - second) / 2)
    else:
        deviation = _deviation(chosen, used, size)
    return ((1 - deviation) * float(HIGHEST)).astype(np.int64)


def _deviation(chosen: Sequence[_Resource], used: Sequence[Integers], size: int) -> Floats:
    """Return the standard deviation of the shares in use of the resources that each row offers.

    Two shares have half their distance, computed as the scheduler does, since the general formula
    rounds otherwise; fewer than two have none.
    """
    number = np.zeros(size, dtype=np.int64)
    total, low, high = np.zeros(size), np.ones(size), np.zeros(size)
    shares = []
    for one, amount in zip(chosen, used, strict=True):
        present = one.capacity > 0
        share = np.minimum(amount / np.maximum(one.capacity, 1), 1.0)
        shares.append((present, share))
        number += present
        total += np.where(present, share, 0.0)
        low = np.where(present, np.minimum(low, share), low)
        high = np.where(present, np.maximum(high, share), high)
    count = np.maximum(number, 1).astype(np.float64)
    mean = total / count
    squares = np.zeros(size)
    for present, share in shares:
        squares += np.where(present, (share - mean) * (share - mean), 0.0)
    several = np.where(number == 2, (high - low) / 2, np.sqrt(squares / count))
    return np.where(number < 2, 0.0, several)
