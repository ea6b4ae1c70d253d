"""Which nodes of a pool are low, and which are high. Pure."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from descheduler.framework.nodes import node_load
from descheduler.plugins.low_node_load import thresholds


@dataclasses.dataclass(frozen=True, slots=True)
class Classes:
    """Rows of the nodes of each class; a node that is in none is as loaded as it should be."""

    low: node_load.Places
    """Takes pods, but no prod pods."""
    high: node_load.Places
    """Pods leave it."""
    prod_low: node_load.Places
    """Takes prod pods only."""
    prod_high: node_load.Places
    """Prod pods leave it."""
    both_low: node_load.Places
    """Takes pods of any class."""

    def counts(self) -> Mapping[str, int]:
        """Return how many nodes each class has."""
        return {
            "low": len(self.low),
            "high": len(self.high),
            "prodLow": len(self.prod_low),
            "prodHigh": len(self.prod_high),
            "bothLow": len(self.both_low),
        }

    @property
    def targets(self) -> int:
        """How many nodes take pods."""
        return len(self.low) + len(self.prod_low) + len(self.both_low)


def classify(
    load: node_load.Load,
    rows: node_load.Places,
    columns: node_load.Places,
    bounds: thresholds.PoolBounds,
) -> Classes:
    """Tell the nodes of a pool apart; one that is cordoned is never low."""
    at = np.ix_(rows, columns)
    usage, prod = load.usage[at], load.prod[at]
    schedulable = np.array([load.nodes[row].is_schedulable for row in rows], dtype=np.bool_)
    under = schedulable & (usage <= bounds.node.low).all(axis=1)
    over = ~under & (usage > bounds.node.high).any(axis=1)
    prod_under = schedulable & (prod <= bounds.prod.low).all(axis=1)
    prod_over = ~over & (prod > bounds.prod.high).any(axis=1)
    low = under & ~prod_over
    return Classes(
        low=rows[low & ~prod_under],
        high=rows[over],
        prod_low=rows[~under & ~over & ~prod_over & prod_under],
        prod_high=rows[prod_over],
        both_low=rows[low & prod_under],
    )
