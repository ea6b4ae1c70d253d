"""The plug-in: reads the load of nodes once a round and balances one pool after another."""

from typing import Final

from descheduler.configuration.arguments import load as arguments
from descheduler.framework import protocols
from descheduler.framework.nodes import node_load
from descheduler.plugins.low_node_load import anomaly, pool_round, pools, relief

NAME: Final = relief.NAME
_DETECTORS: Final = "detectors"
_MISSED_ROUNDS: Final = 2


class LowNodeLoad:
    """Moves pods from nodes whose measured load is high to nodes whose load is low."""

    name = NAME

    def __init__(self, given: arguments.LowNodeLoadArgs) -> None:
        self._settings = pools.settings(given)

    def balance(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest pods that leave overloaded nodes, pool after pool."""
        return balance(self._settings, view, memory)


def balance(
    settings: pools.Settings, view: protocols.View, memory: protocols.Memory
) -> protocols.Suggestions:
    """Suggest pods that leave overloaded nodes; what is remembered is how often they were."""
    now = view.picture.now
    seconds = max(settings.cache_seconds, _MISSED_ROUNDS * view.interval_seconds)
    kept: anomaly.Kept = anomaly.current(memory.get(_DETECTORS, {}), now, seconds)
    resources = tuple(sorted({name for pool in settings.pools for name in pool.resources()}))
    load = node_load.read(view.picture, view.nodes, resources, settings.expiration_seconds)
    shared = pool_round.Round(settings, view, load)
    for index, pool in enumerate(settings.pools):
        detectors = anomaly.Detectors(kept, f"{index}/{pool.name}", pool.condition, now)
        yield from pool_round.balance(shared, pool, detectors)
        kept = detectors.kept
    return {
        _DETECTORS: kept,
        protocols.NOTES: tuple(shared.notes),
        protocols.COUNTS: shared.counts,
    }
