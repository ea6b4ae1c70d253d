"""Puts plug-ins with other arguments in the place of those in force, without a pause.

Their figures of every node are computed in slices between calls. Until all of them are there, calls
are answered by the plug-ins before; then figures and plug-ins change in one step.
"""

import logging
from collections.abc import Callable, Mapping

from extender import plugin_selection, registry
from extender.framework import pipeline, protocols
from extender.informers.nodes import node_metrics
from extender.state import cluster_state
from process.runtime import metrics

logger = logging.getLogger(__name__)


class PluginReload:
    """The plug-ins in force, and those that are about to be."""

    def __init__(
        self,
        cluster: cluster_state.ClusterState,
        line: pipeline.Pipeline,
        reader: node_metrics.Reader,
        inforce: registry.Built,
        figures: metrics.Registry,
    ) -> None:
        self._cluster = cluster
        self._line = line
        self._reader = reader
        self._in_force = inforce
        self._next: registry.Built | None = None
        self.followers: list[Callable[[], None]] = []
        """Called when plug-ins begin to be prepared."""
        self._changes = figures.counter(
            "koord_extender_arguments_changes_total",
            "Changes of the plug-ins or of their arguments that took effect.",
        )

    @property
    def selection(self) -> plugin_selection.Selection:
        """By which arguments calls are answered."""
        return self._in_force.selection

    @property
    def plugins(self) -> Mapping[str, protocols.Plugin]:
        """The plug-ins that answer calls, by their names in scheduler configurations."""
        return self._in_force.plugins

    def kinds(self) -> frozenset[str]:
        """Return the kinds of objects that plug-ins in force, or about to be, need now."""
        found = registry.kinds(self._in_force.plugins.values(), self._cluster.view().cluster)
        if self._next is not None:
            found |= registry.kinds(self._next.plugins.values(), {})
        return found

    def want(self, selection: plugin_selection.Selection) -> None:
        """Begin to prepare plug-ins; those whose arguments are the same stay as they are."""
        self._next = built = registry.build(selection, self._in_force)
        kept = frozenset(
            plugin.name
            for name, plugin in built.plugins.items()
            if plugin is self._in_force.plugins.get(name)
        )
        self._reader.read_for(registry.universe(built.plugins.values()))
        self._cluster.prepare(registry.state_trackers(built.plugins.values()), kept)
        for follower in self.followers:
            follower()

    def finish(self) -> None:
        """Let what was prepared answer calls, once it is complete."""
        built = self._next
        if built is None or not self._cluster.adopt():
            return
        self._line.become(registry.assemble(built))
        self._in_force, self._next = built, None
        self._changes.inc()
        logger.info(
            "other plug-ins are in force names=%s", ",".join(sorted(built.selection.names()))
        )
