"""Plug-in name to class: one visible dict."""

from collections.abc import Callable, Mapping, Sequence

from extender.framework import pipeline, protocols
from extender.plugins.batch_fit import batch_fit
from extender.plugins.load_aware import load_aware
from extender.settings import PluginSettings

PLUGINS: Mapping[str, Callable[[PluginSettings], protocols.Plugin]] = {
    batch_fit.NAME: lambda _: batch_fit.BatchFit(),
    load_aware.NAME: lambda settings: load_aware.LoadAware(settings.load_aware.arguments()),
}


def build(settings: PluginSettings) -> list[protocols.Plugin]:
    """Build the enabled plug-ins in their order; ValueError names one that does not exist."""
    for name in (*settings.enabled, *settings.weights):
        if name not in PLUGINS:
            raise ValueError(
                f"plugins.enabled: {name} does not exist; known are {', '.join(sorted(PLUGINS))}"
            )
    return [PLUGINS[name](settings) for name in settings.enabled]


def assemble(plugins: Sequence[protocols.Plugin], weights: Mapping[str, int]) -> pipeline.Pipeline:
    """Sort plug-ins by what they implement."""
    return pipeline.Pipeline(
        filters=tuple(p for p in plugins if isinstance(p, protocols.Filter)),
        scorers=tuple(
            pipeline.Weighted(p, weights[p.name])
            for p in plugins
            if isinstance(p, protocols.Scorer) and weights.get(p.name, 0) > 0
        ),
        reservers=tuple(p for p in plugins if isinstance(p, protocols.Reserver)),
    )


def state_trackers(plugins: Sequence[protocols.Plugin]) -> tuple[protocols.StateTracker, ...]:
    """Return the plug-ins that keep figures of every node."""
    return tuple(p for p in plugins if isinstance(p, protocols.StateTracker))
