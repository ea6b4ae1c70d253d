"""Plug-in to its constructor: one visible table, and profiles made from their configuration. Pure.

`configuration.arguments.models` names the arguments of each, `configuration.points` its points.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from descheduler.configuration import points, profile
from descheduler.configuration.arguments import migration, models
from descheduler.framework import protocols
from descheduler.framework.planning import profiles
from descheduler.plugins.custom_priority import custom_priority
from descheduler.plugins.default_evictor import default_evictor
from descheduler.plugins.fragmentation_aware import fragmentation_aware
from descheduler.plugins.high_node_utilization import high_node_utilization
from descheduler.plugins.low_node_load import low_node_load
from descheduler.plugins.low_node_utilization import low_node_utilization
from descheduler.plugins.migration_filter import migration_filter
from descheduler.plugins.pod_life_time import pod_life_time
from descheduler.plugins.remove_duplicates import remove_duplicates
from descheduler.plugins.remove_failed_pods import remove_failed_pods
from descheduler.plugins.remove_pods_having_too_many_restarts import (
    remove_pods_having_too_many_restarts,
)
from descheduler.plugins.remove_pods_violating_inter_pod_anti_affinity import (
    remove_pods_violating_inter_pod_anti_affinity as inter_pod_anti_affinity,
)
from descheduler.plugins.remove_pods_violating_node_affinity import (
    remove_pods_violating_node_affinity,
)
from descheduler.plugins.remove_pods_violating_node_taints import remove_pods_violating_node_taints
from descheduler.plugins.remove_pods_violating_topology_spread_constraint import (
    remove_pods_violating_topology_spread_constraint as topology_spread,
)
from descheduler.plugins.scale_down_bin_pack import scale_down_bin_pack

PLUGINS: Final[Mapping[str, Callable[[Any], Any]]] = {
    models.MIGRATION_CONTROLLER: migration_filter.MigrationFilter,
    models.DEFAULT_EVICTOR: default_evictor.DefaultEvictor,
    models.LOW_NODE_LOAD: low_node_load.LowNodeLoad,
    models.CUSTOM_PRIORITY: custom_priority.CustomPriority,
    models.FRAGMENTATION_AWARE: fragmentation_aware.FragmentationAware,
    models.SCALE_DOWN_BIN_PACK: scale_down_bin_pack.ScaleDownBinPack,
    models.HIGH_NODE_UTILIZATION: high_node_utilization.HighNodeUtilization,
    models.LOW_NODE_UTILIZATION: low_node_utilization.LowNodeUtilization,
    models.POD_LIFE_TIME: pod_life_time.PodLifeTime,
    models.FAILED_PODS: remove_failed_pods.RemoveFailedPods,
    models.DUPLICATES: remove_duplicates.RemoveDuplicates,
    models.TOO_MANY_RESTARTS: remove_pods_having_too_many_restarts.RemovePodsHavingTooManyRestarts,
    models.INTER_POD_ANTI_AFFINITY: (
        inter_pod_anti_affinity.RemovePodsViolatingInterPodAntiAffinity
    ),
    models.NODE_AFFINITY: remove_pods_violating_node_affinity.RemovePodsViolatingNodeAffinity,
    models.NODE_TAINTS: remove_pods_violating_node_taints.RemovePodsViolatingNodeTaints,
    models.TOPOLOGY_SPREAD: topology_spread.RemovePodsViolatingTopologySpreadConstraint,
}
"""Constructors, each of which takes the arguments of its plug-in."""


def made(configured: profile.Profile) -> profiles.Profile:
    """Return a profile with its plug-ins; one that stands at several points is made once."""
    built = {
        name: PLUGINS[name](arguments) for name, arguments in sorted(configured.arguments.items())
    }
    evicting = configured.arguments.get(configured.evictor)
    return profiles.Profile(
        name=configured.name,
        evictor=configured.evictor,
        deschedule=tuple(
            profiles.Plugin(name, built[name].deschedule, _notes(built[name]))
            for name in configured.enabled[points.DESCHEDULE]
        ),
        balance=tuple(
            profiles.Plugin(name, built[name].balance, _notes(built[name]))
            for name in configured.enabled[points.BALANCE]
        ),
        filters=tuple(built[name] for name in configured.enabled[points.FILTER]),
        node_selector=configured.node_selector,
        dry_run=isinstance(evicting, migration.MigrationControllerArgs) and evicting.dry_run,
    )


def _notes(plugin: object) -> Callable[[protocols.View], Mapping[str, Mapping[str, str]]] | None:
    return plugin.notes if isinstance(plugin, protocols.Annotator) else None
