"""NodeResourcesFit and NodeResourcesBalancedAllocation: how full and how even a node would be.

Arithmetic follows Go: integers truncate, shares are 64-bit floats, `math.Round` is half away from
zero. A resource that a node does not offer is left out for that node, and so is a scalar resource
that the pod does not request.
"""

import dataclasses
import enum
import itertools
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
_MINIMAL: Final = (node_columns.CPU, node_columns.MEMORY)
"""Resources of which every container counts as requesting some."""


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


def is_scalar(resource: str) -> bool:
    """Tell whether the scheduler keeps a resource as a scalar: extended, huge page, attachable."""
    return "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


class Taken:
    """What the candidate rows offer, taken once for both plug-ins."""

    def __init__(self, nodes: node_columns.NodeColumns, rows: Integers) -> None:
        self.nodes, self.rows = nodes, rows
        self._offered = nodes.allocatable.take(rows, axis=1)
        self._everywhere: list[bool] = np.logical_and.reduce(self._offered, axis=1).tolist()

    def offered(self, resources: Sequence[int]) -> tuple[Integers, bool]:
        """Return how much each candidate offers of resources, and whether all offer all of them."""
        found = _chosen(self._offered, resources)
        return found, all(map(self._everywhere.__getitem__, resources))

    def requested(self, resources: Sequence[int]) -> Integers:
        """Return what is requested there."""
        return _chosen(self.nodes.requested.take(self.rows, axis=1), resources)

    def nonzero(self, names: tuple[str, ...], resources: Sequence[int]) -> Integers:
        """Return what counts for the scheduler's Fit: cpu and memory have a minimum."""
        minimal = self.nodes.nonzero.take(self.rows, axis=1)
        if names == _MINIMAL:
            return minimal
        found = self.requested(resources)
        for at, name in enumerate(names):
            if name in _MINIMAL:
                found[at] = minimal[_MINIMAL.index(name)]
        return found


def _chosen(taken: Integers, resources: Sequence[int]) -> Integers:
    """Return some of the rows of a matrix; the matrix itself where these are all."""
    if list(resources) == list(range(len(taken))):
        return taken
    found: Integers = taken[list(resources)]
    return found


def fit_scores(fit: Fit, pod: scored_pod.PodScoring, taken: Taken) -> Integers:
    """Return the NodeResourcesFit score of each candidate row."""
    nodes, asked = taken.nodes, pod.nonzero
    chosen = [one for one in fit.weights if _is_scored(one[0], asked, nodes)]
    if not chosen:
        return np.zeros(len(taken.rows), dtype=np.int64)
    names: tuple[str, ...]
    weights: tuple[int, ...]
    names, weights = zip(*chosen, strict=True)
    places = [*map(nodes.resources.__getitem__, names)]
    capacity, everywhere = taken.offered(places)
    after = taken.nonzero(names, places) + _column(_asked(names, asked))
    scores = _fullness(fit, capacity, everywhere, after)
    by_ratio = fit.strategy is Strategy.REQUESTED_TO_CAPACITY_RATIO
    if everywhere and not by_ratio:
        return _column_sums(scores, weights) // max(sum(weights), 1)
    present = capacity > 0
    if by_ratio:
        present &= scores > 0
    counted = present * _column(weights)
    total, divisor = (scores * counted).sum(axis=0), np.maximum(counted.sum(axis=0), 1)
    if by_ratio:
        # Half away from zero; scores and weights are never negative.
        total, divisor = 2 * total + divisor, 2 * divisor
    found: Integers = total // divisor
    return found


def _is_scored(name: str, asked: scored_pod.Amounts, nodes: node_columns.NodeColumns) -> bool:
    return name in nodes.resources and (bool(asked.get(name)) or not is_scalar(name))


def _asked(names: Sequence[str], asked: scored_pod.Amounts) -> list[int]:
    return [*map(asked.get, names, itertools.repeat(0))]


def _column(values: Sequence[int]) -> Integers:
    return np.array(values, dtype=np.int64)[:, np.newaxis]


def _column_sums(scores: Integers, weights: Sequence[int]) -> Integers:
    """Return the weighted sum of each column."""
    if weights.count(1) < len(weights):
        scores = scores * _column(weights)
    total: Integers = np.add.reduce(scores, axis=0)
    return total


def _fullness(fit: Fit, capacity: Integers, everywhere: bool, after: Integers) -> Integers:
    """Score each resource by how much of it would be in use."""
    used = np.minimum(after, capacity)
    if fit.strategy is Strategy.LEAST_ALLOCATED:
        used = capacity - used
    used *= HIGHEST
    used //= capacity if everywhere else np.maximum(capacity, 1)
    if fit.strategy is not Strategy.REQUESTED_TO_CAPACITY_RATIO:
        return used
    return np.array(fit.ramp, dtype=np.int64).take(used)


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
    nodes, asked = taken.nodes, pod.requests
    names = [name for name in resources if _is_scored(name, asked, nodes)]
    places = [*map(nodes.resources.__getitem__, names)]
    capacity, everywhere = taken.offered(places)
    amounts = _asked(names, asked)
    # With the pod and, where that matters, without it, both in one go.
    added = np.array([amounts, [0] * len(amounts)] if gain else [amounts], dtype=np.int64)
    used = taken.requested(places) + added[:, :, np.newaxis]
    if len(names) == 2 and everywhere:
        shares = np.minimum(used / capacity, 1.0)
        deviation = np.abs((shares[:, 0] - shares[:, 1]) / 2)
    else:
        deviation = np.array([_deviation(capacity, one) for one in used])
    scores: Integers = ((1 - deviation) * float(HIGHEST)).astype(np.int64)
    half = HIGHEST // 2
    found: Integers = half + (half + scores[0] - scores[1]) // 2 if gain else scores[0]
    return found


def _deviation(capacity: Integers, used: Integers) -> Floats:
    """Return the standard deviation of the shares in use of the resources that each row offers.

    Two shares have half their distance, computed as the scheduler does, since the general formula
    rounds otherwise; fewer than two have none.
    """
    size = capacity.shape[1]
    number = np.zeros(size, dtype=np.int64)
    total, low, high = np.zeros(size), np.ones(size), np.zeros(size)
    shares = []
    for offered, amount in zip(capacity, used, strict=True):
        present = offered > 0
        share = np.minimum(amount / np.maximum(offered, 1), 1.0)
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
