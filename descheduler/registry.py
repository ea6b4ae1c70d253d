"""Plug-in to its constructor: one visible table, and profiles made from their configuration. Pure.

`configuration.arguments.models` names the arguments of each, `configuration.points` its points.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from descheduler.configuration import points, profile
from descheduler.configuration.arguments import migration, models
from descheduler.framework import profiles, protocols
from descheduler.plugins.default_evictor import default_evictor
from descheduler.plugins.migration_filter import migration_filter
from descheduler.plugins.pod_life_time import pod_life_time
from descheduler.plugins.remove_failed_pods import remove_failed_pods
from descheduler.plugins.remove_pods_having_too_many_restarts import (
    remove_pods_having_too_many_restarts,
)
from descheduler.plugins.remove_pods_violating_node_affinity import (
    remove_pods_violating_node_affinity,
)
from descheduler.plugins.remove_pods_violating_node_taints import remove_pods_violating_node_taints

PLUGINS: Final[Mapping[str, Callable[[Any], Any]]] = {
    models.MIGRATION_CONTROLLER: migration_filter.MigrationFilter,
    models.DEFAULT_EVICTOR: default_evictor.DefaultEvictor,
    models.POD_LIFE_TIME: pod_life_time.PodLifeTime,
    models.FAILED_PODS: remove_failed_pods.RemoveFailedPods,
    models.TOO_MANY_RESTARTS: remove_pods_having_too_many_restarts.RemovePodsHavingTooManyRestarts,
    models.NODE_AFFINITY: remove_pods_violating_node_affinity.RemovePodsViolatingNodeAffinity,
    models.NODE_TAINTS: remove_pods_violating_node_taints.RemovePodsViolatingNodeTaints,
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
