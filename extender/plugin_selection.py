"""Which plug-ins are enabled and by which arguments: the settings as the ConfigMap changes them.

A plug-in whose arguments the ConfigMap names takes nothing from the settings; sets of plug-ins are
merged as kube-scheduler merges those of a profile with its standard ones.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final

from api.plugin_args import models
from api.plugin_args.arguments import Arguments
from domain.scheduler_settings import documents, known_names, plugin_sets
from domain.scheduler_settings.plugin_sets import Enabled
from extender.settings import PluginSettings

SETTINGS: Final = "settings"
CONFIG_MAP: Final = f"ConfigMap {documents.KEY}"


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """What plug-ins are built from; equal selections build equal plug-ins."""

    points: Mapping[str, tuple[Enabled, ...]]
    """By extension point: the plug-ins in the order in which they are asked, with their weights."""
    arguments: Mapping[str, Arguments]
    """Of every plug-in that takes some, complete."""
    sources: Mapping[str, str]
    """Where these arguments come from."""

    def names(self) -> tuple[str, ...]:
        """Return every plug-in that is enabled anywhere, in the order of first mention."""
        return tuple(dict.fromkeys(one.name for each in self.points.values() for one in each))

    def at(self, point: str) -> tuple[str, ...]:
        """Return the plug-ins that are enabled at an extension point, in order."""
        return tuple(one.name for one in self.points[point])

    def weight(self, name: str) -> int:
        """Return how much the score of a plug-in counts; 0 where it does not score."""
        scoring = self.points[plugin_sets.SCORE]
        return next((one.weight for one in scoring if one.name == name), 0)


def select(
    settings: PluginSettings, written: documents.SchedulerSettings = documents.NOTHING
) -> Selection:
    """Return what holds by the settings of the process and by the ConfigMap."""
    enabled = tuple(map(known_names.full, settings.enabled))
    weights = {known_names.full(name): weight for name, weight in settings.weights.items()}
    standard = {point: tuple(map(Enabled, enabled)) for point in plugin_sets.TAKING_EFFECT}
    standard[plugin_sets.SCORE] = tuple(
        Enabled(name, weights[name]) for name in enabled if weights.get(name, 0) > 0
    )
    own: dict[str, Arguments] = {models.LOAD_AWARE: settings.load_aware}
    return Selection(
        points={
            point: plugin_sets.resolved(point, found, written.plugins)
            for point, found in standard.items()
        },
        arguments={
            name: (written.arguments.get(name) or own.get(name) or model()).complete()
            for name, model in models.MODELS.items()
        },
        sources={
            name: CONFIG_MAP if name in written.arguments else SETTINGS for name in models.MODELS
        },
    )
