"""How gain and cost of moves are weighed."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from api import names

EXCHANGE_SECONDS: Final = 3600.0
_WEIGHTS: Final[Mapping[str, int]] = MappingProxyType({names.CPU: 1, names.MEMORY: 1})


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Gain and cost are in points; one point of cost is the eviction of an ordinary pod."""

    least_gain_per_cost: float = 0.25
    """Moves that gain less per point of cost are not made."""
    exchange_seconds: float = EXCHANGE_SECONDS
    """How long no pod moves to a node that others have left for the node that it is on."""
    resources: Mapping[str, int] = dataclasses.field(default_factory=lambda: _WEIGHTS)
    """Weight of each resource whose use nodes are compared by."""
    usage_seconds: float = 180.0
    """NodeMetrics that are older count as missing."""
    emptied_points: float = 50.0
    """What an emptied node gains."""
    near_best: float = 0.9
    """Of targets that gain at least this share of the best one, that comes first which the
    scheduler likes best; then all others that gain enough."""
    tries: int = 8
    """Targets that are looked at for one pod, those first that the scheduler likes best."""
