"""Gauges of plug-ins about the cluster as a whole, read when they are scraped."""

from collections.abc import Callable, Iterable

from extender.framework import pipeline, protocols
from extender.state import cluster_state
from process.runtime import metrics


def add(
    registry: metrics.Registry,
    cluster: cluster_state.ClusterState,
    line: pipeline.Pipeline,
    plugins: Iterable[protocols.Plugin],
) -> None:
    """Add the gauges of all plug-ins there are; they are 0 where a plug-in is not enabled."""

    def reader(name: str, value: str) -> Callable[[], float]:
        def read() -> float:
            for plugin in line.pre_filters:
                if plugin.name == name and isinstance(plugin, protocols.Measured):
                    return plugin.measured(cluster.view()).get(value, 0.0)
            return 0.0

        return read

    for plugin in plugins:
        if isinstance(plugin, protocols.Measured):
            name, description, label, values = plugin.gauge
            gauge = registry.gauge(name, description, (label,))
            for value in values:
                gauge.labels(value).set_function(reader(plugin.name, value))
