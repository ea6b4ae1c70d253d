"""Settings of the search for targets."""

from pathlib import Path

from process.configuration import settings


class PlacementSettings(settings.Settings):
    """How nodes are found for pods that leave theirs."""

    extender_settings: Path | None = None
    """The settings file of the extender, whose plug-ins judge here as they do there; without one
    those that are enabled by default. ConfigMap koord-scheduler-config is followed as well."""
