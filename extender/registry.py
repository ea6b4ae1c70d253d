"""Plug-in name to class: one visible dict."""

from collections.abc import Callable, Mapping, Sequence

from extender import framework, pipeline
from extender.plugins import batch_fit, load_aware
from extender.settings import PluginSettings

PLUGINS: Mapping[str, Callable[[PluginSettings], framework.Plugin]] = {
    batch_fit.NAME: lambda _: batch_fit.BatchFit(),
    load_aware.NAME: lambda settings: load_aware.LoadAware(settings.load_aware.arguments()),
}


def build(settings: PluginSettings) -> list[framework.Plugin]:
    """Build the enabled plug-ins in their order; ValueError names one that does not exist."""
    for name in (*settings.enabled, *settings.weights):
        if name not in PLUGINS:
            raise ValueError(
                f"plugins.enabled: {name} does not exist; known are {', '.join(sorted(PLUGINS))}"
            )
    return [PLUGINS[name](settings) for name in settings.enabled]


def assemble(plugins: Sequence[framework.Plugin], weights: Mapping[str, int]) -> pipeline.Pipeline:
    """Sort plug-ins by what they implement."""
    return pipeline.Pipeline(
        filters=tuple(p for p in plugins if isinstance(p, framework.Filter)),
        scorers=tuple(
            pipeline.Weighted(p, weights[p.name])
            for p in plugins
            if isinstance(p, framework.Scorer) and weights.get(p.name, 0) > 0
        ),
        reservers=tuple(p for p in plugins if isinstance(p, framework.Reserver)),
    )


def summarizers(plugins: Sequence[framework.Plugin]) -> tuple[framework.Summarizer, ...]:
    """Return the plug-ins that keep figures of every node."""
    return tuple(p for p in plugins if isinstance(p, framework.Summarizer))
