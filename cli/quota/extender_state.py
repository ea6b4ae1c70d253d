"""The plug-ins of an extender and the cluster state that they look at, inside a what-if."""

from collections.abc import Iterable
from typing import NamedTuple

from api import names
from api.plugin_args import job, models
from domain.quota.tree import forest as forests
from extender import registry
from extender.framework import assembly, pipeline, protocols
from extender.scoring import traits
from extender.state import cluster_state, deltas, records


class Extender(NamedTuple):
    """What decides, what reads pods and nodes for it, and the state that it decides on."""

    pipeline: pipeline.Pipeline
    records: records.Projector
    state: cluster_state.ClusterState


def empty(
    line: pipeline.Pipeline,
    enabled: Iterable[protocols.Plugin],
    every: Iterable[protocols.Plugin],
    scoring: traits.Projector | None = None,
) -> Extender:
    """Return an extender that knows no objects yet.

    Allocations on pods are read by the codecs of `every` plug-in, enabled or not. With `scoring`,
    what kube-scheduler's scores depend on is read as well.
    """
    known = tuple(every)
    reader = records.Projector(scoring, registry.codecs(known), registry.inputs(known))
    trackers = registry.state_trackers(enabled)
    return Extender(line, reader, cluster_state.ClusterState(trackers, [names.CPU, names.MEMORY]))


def of_quotas(arguments: job.ElasticQuotaArgs, home: str) -> Extender:
    """Return an extender in the namespace `home` whose only plug-in is ElasticQuota."""
    plugin = registry.at_home(registry.PLUGINS, home)[models.ELASTIC_QUOTA](arguments)
    line = assembly.assemble(lambda _: [plugin], {})
    return empty(line, [plugin], [plugin])


def add_quotas(state: cluster_state.ClusterState, forest: forests.Forest) -> None:
    """Bring every quota of a forest into the state."""
    for name in (*forest.names(), names.DEFAULT_QUOTA, names.SYSTEM_QUOTA):
        if (quota := forest.quota(name)) is not None:
            delta = deltas.ObjectDelta(deltas.ELASTIC_QUOTA, quota.identity, None, quota)
            state.apply(delta)
