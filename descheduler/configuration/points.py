"""Extension points of a profile: which plug-ins extend which, and which are enabled by default."""

from collections.abc import Mapping
from typing import Final, Literal

from descheduler.configuration.arguments import models

Point = Literal["deschedule", "balance", "filter", "evict"]
DESCHEDULE: Final = "deschedule"
BALANCE: Final = "balance"
FILTER: Final = "filter"
EVICT: Final = "evict"
POINTS: Final[tuple[Point, ...]] = (DESCHEDULE, BALANCE, FILTER, EVICT)

STANDARD: Final[Mapping[Point, tuple[str, ...]]] = {
    DESCHEDULE: (),
    BALANCE: (),
    FILTER: (models.MIGRATION_CONTROLLER,),
    EVICT: (models.MIGRATION_CONTROLLER,),
}
"""Enabled unless a profile disables them."""

_EVICTORS: Final = frozenset({FILTER, EVICT})
_BALANCE: Final = frozenset({BALANCE})
_DESCHEDULE: Final = frozenset({DESCHEDULE})

EXTENDED: Final[Mapping[str, frozenset[str]]] = {
    models.MIGRATION_CONTROLLER: _EVICTORS,
    models.DEFAULT_EVICTOR: _EVICTORS,
    models.LOW_NODE_LOAD: _BALANCE,
    models.CUSTOM_PRIORITY: _BALANCE,
    models.FRAGMENTATION_AWARE: _BALANCE,
    models.SCALE_DOWN_BIN_PACK: _BALANCE,
    models.HIGH_NODE_UTILIZATION: _BALANCE,
    models.LOW_NODE_UTILIZATION: _BALANCE,
    models.POD_LIFE_TIME: _DESCHEDULE,
    models.FAILED_PODS: _DESCHEDULE,
    models.DUPLICATES: _BALANCE,
    models.TOO_MANY_RESTARTS: _DESCHEDULE,
    models.INTER_POD_ANTI_AFFINITY: _DESCHEDULE,
    models.NODE_AFFINITY: _DESCHEDULE,
    models.NODE_TAINTS: _DESCHEDULE,
    models.TOPOLOGY_SPREAD: _BALANCE,
}
"""Plug-in to the points that it extends."""
