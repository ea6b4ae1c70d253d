"""Sort plug-ins by the extension points that they implement and at which they are enabled."""

from collections.abc import Callable, Mapping, Sequence

from domain.scheduler_settings import plugin_sets
from extender.framework import pipeline, protocols
from extender.framework.nodes import numa, reserved_capacity

Enabled = Callable[[str], Sequence[protocols.Plugin]]
"""Returns the plug-ins of an extension point in the order in which they are asked."""


def assemble(enabled: Enabled, weights: Mapping[str, int]) -> pipeline.Pipeline:
    """Return the pipeline of these plug-ins; a scorer without a weight does not count.

    What belongs to a decision follows it: node filters, NUMA hints and diagnoses the filter,
    PreFilter whatever a plug-in is enabled for, the choice of victims postFilter.
    """
    points = {point: enabled(point) for point in plugin_sets.TAKING_EFFECT}
    anywhere = tuple(dict.fromkeys(plugin for found in points.values() for plugin in found))
    filtering = points[plugin_sets.FILTER]
    aligned = numa.Aligned(
        tuple(p for p in filtering if isinstance(p, protocols.HintProvider)),
        next((p for p in filtering if isinstance(p, protocols.TopologySource)), None),
    )
    selectors = points[plugin_sets.POST_FILTER]
    counting = [p for p in points[plugin_sets.SCORE] if weights.get(p.name, 0) > 0]
    return pipeline.Pipeline(
        pre_filters=tuple(p for p in anywhere if isinstance(p, protocols.PreFilter)),
        filters=tuple(p for p in filtering if isinstance(p, protocols.Filter)),
        node_filters=tuple(p for p in filtering if isinstance(p, protocols.NodeFilter)),
        screens={
            p.name: p
            for p in filtering
            if isinstance(p, protocols.Filter) and isinstance(p, protocols.Prescreen)
        },
        scorers=tuple(
            pipeline.Weighted(p, weights[p.name])
            for p in counting
            if isinstance(p, protocols.Scorer)
        ),
        rankers=tuple((p, weights[p.name]) for p in counting if isinstance(p, protocols.Ranker)),
        aligned=aligned,
        reserved=reserved_capacity.ReservedCapacity(
            next((p for p in filtering if isinstance(p, protocols.Nominator)), None), aligned
        ),
        reservers=tuple(
            p for p in points[plugin_sets.RESERVE] if isinstance(p, protocols.Reserver)
        ),
        permits=tuple(p for p in points[plugin_sets.PERMIT] if isinstance(p, protocols.Permit)),
        selectors={p.name: p for p in selectors if isinstance(p, protocols.VictimSelector)},
        cluster_selectors={
            p.name: p for p in selectors if isinstance(p, protocols.ClusterVictimSelector)
        },
        guards=tuple(p for p in selectors if isinstance(p, protocols.VictimGuard)),
        companions=tuple(p for p in selectors if isinstance(p, protocols.VictimCompanions)),
        codecs=tuple(p for p in anywhere if isinstance(p, protocols.AllocationCodec)),
        diagnosers={p.name: p for p in filtering if isinstance(p, protocols.Diagnoser)},
        sorts=tuple(p for p in filtering if isinstance(p, protocols.QueueSort)),
        hints={p.name: p for p in filtering if isinstance(p, protocols.QueueingHints)},
    )
