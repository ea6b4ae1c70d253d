"""The plug-ins, the state that they look at, and who replaces them: wired from settings."""

import dataclasses

from extender import plugin_selection, registry
from extender.explain import plugin_gauges
from extender.framework import pipeline, protocols
from extender.informers.configuration import plugin_reload
from extender.informers.nodes import node_metrics
from extender.scoring import assembly
from extender.settings import Settings
from extender.state import cluster_state, records, requirement_reader
from process.runtime import metrics

COUNTED = (
    "cpu",
    "memory",
    "kubernetes.io/batch-cpu",
    "kubernetes.io/batch-memory",
    "kubernetes.io/mid-cpu",
    "kubernetes.io/mid-memory",
)
"""Resources that have a column of their own."""


@dataclasses.dataclass(frozen=True, slots=True)
class Deciding:
    """The plug-ins, what they look at, and who replaces them."""

    line: pipeline.Pipeline
    cluster: cluster_state.ClusterState
    reader: node_metrics.Reader
    reload: plugin_reload.PluginReload
    codecs: tuple[protocols.AllocationCodec, ...]
    """Of all plug-ins, enabled or not, as what they look at of pods is."""
    inputs: requirement_reader.Inputs

    def projector(self, scoring: assembly.Scoring | None) -> records.Projector:
        """Return what reads pods and nodes for all of them."""
        if scoring is None:
            return records.Projector(None, self.codecs, self.inputs)
        schedulers = scoring.decider.profiles
        return records.Projector(scoring.projector, self.codecs, self.inputs, schedulers)


def build(settings: Settings, figures: metrics.Registry, known: registry.Plugins) -> Deciding:
    """Build the plug-ins that are enabled, and the state that they look at."""
    registry.check(settings.plugins, known)
    known = registry.at_home(known, settings.namespace)
    built = registry.build(plugin_selection.select(settings.plugins), known=known)
    plugins = built.plugins.values()
    line = registry.assemble(built)
    reader = node_metrics.Reader(registry.universe(plugins))
    cluster = cluster_state.ClusterState(registry.state_trackers(plugins), COUNTED)
    reload = plugin_reload.PluginReload(cluster, line, reader, built, figures)
    every = registry.every(built)
    codecs, inputs = registry.codecs(every), registry.inputs(every)
    plugin_gauges.add(figures, cluster, line, every)
    return Deciding(line, cluster, reader, reload, codecs, inputs)
