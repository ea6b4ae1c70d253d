"""Thresholds in amounts of each node, and what is above or below them. Pure."""

import dataclasses
from typing import Final

import numpy as np
import numpy.typing as npt

from descheduler.framework.nodes import node_load
from descheduler.plugins.low_node_load import pools

Flags = npt.NDArray[np.bool_]
_Percents = npt.NDArray[np.float64]
_TO_SHARE: Final = 0.01


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """Below `low` a node takes pods, above `high` pods leave it; a row per node of the pool."""

    low: node_load.Columns
    high: node_load.Columns


@dataclasses.dataclass(frozen=True, slots=True)
class PoolBounds:
    """The bounds of the load of nodes, and of that by their prod pods."""

    node: Bounds
    prod: Bounds


def bounds(
    levels: pools.Levels, load: node_load.Load, rows: node_load.Places, *, deviation: bool
) -> PoolBounds:
    """Return the thresholds of some nodes, in the order of their rows and of the resources."""
    at = np.ix_(rows, load.columns(levels.resources))
    capacity = load.capacity[at]
    kinds = (
        (levels.low, levels.high, load.usage[at]),
        (levels.prod_low, levels.prod_high, load.prod[at]),
    )
    node, prod = (
        _bounds(np.array(low), np.array(high), usage, capacity, deviation=deviation)
        for low, high, usage in kinds
    )
    return PoolBounds(node, prod)


def _bounds(
    low: _Percents,
    high: _Percents,
    usage: node_load.Columns,
    capacity: node_load.Columns,
    *,
    deviation: bool,
) -> Bounds:
    if deviation:
        mean, off = _mean(usage, capacity), low == 0.0
        low, high = (
            np.where(off, pools.FULL, np.clip(percent, 0.0, pools.FULL))
            for percent in (mean - low, mean + high)
        )
    return Bounds(_amounts(low, capacity), _amounts(high, capacity))


def _mean(usage: node_load.Columns, capacity: node_load.Columns) -> _Percents:
    """Return the mean load of the nodes in percent, of which one without capacity has none."""
    percents = np.divide(
        usage, capacity, out=np.zeros(usage.shape, dtype=np.float64), where=capacity > 0
    )
    rows = max(len(usage), 1)
    found: _Percents = (percents * pools.FULL).sum(axis=0) / rows
    return found


def _amounts(percent: _Percents, capacity: node_load.Columns) -> node_load.Columns:
    return np.trunc(percent * _TO_SHARE * capacity).astype(np.int64)
