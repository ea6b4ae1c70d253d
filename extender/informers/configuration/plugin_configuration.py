"""Follows ConfigMap koord-scheduler-config: which plug-ins are wanted and by which arguments.

A document with a fault changes nothing: what was wanted last is wanted still, an event on the
ConfigMap and a metric say why, and so does /readyz.
"""

import logging
from collections.abc import Callable
from typing import Final

from api import names
from api.kubernetes import core
from domain.cluster_settings.value_limits import Fault
from domain.scheduler_settings import documents
from extender import plugin_selection
from extender.settings import PluginSettings
from kube.controllers import recorder
from process.runtime import metrics

logger = logging.getLogger(__name__)

REFUSED: Final = "SchedulerConfigRefused"
"""Reason of the event on a ConfigMap that cannot be used."""


class PluginConfiguration:
    """What is wanted by the settings of the process and by the ConfigMap."""

    def __init__(
        self,
        settings: PluginSettings,
        events: recorder.EventRecorder,
        registry: metrics.Registry,
        changed: Callable[[plugin_selection.Selection], None],
    ) -> None:
        """`changed` hears of every selection that differs from the one before."""
        self._settings = settings
        self._events = events
        self._changed = changed
        self.wanted = plugin_selection.select(settings)
        self.faults: tuple[Fault, ...] = ()
        """What is wrong with the document that stands there now."""
        registry.gauge(
            "koord_extender_arguments_refused",
            f"1 while ConfigMap {names.CONFIG_MAP_SCHEDULER} cannot be used and the last good one "
            "stays in force.",
        ).set_function(lambda: float(bool(self.faults)))

    def take(self, written: core.ConfigMap | None) -> None:
        """Take in the ConfigMap as it is now; without one the settings of the process hold."""
        reading = documents.read({} if written is None else written.data)
        before, self.faults = self.faults, reading.faults
        if reading.settings is None:
            if written is not None and self.faults != before:
                self._tell(written)
            return
        for warning in reading.warnings:
            logger.warning("scheduler configuration is doubtful where=%s", warning)
        wanted = plugin_selection.select(self._settings, reading.settings)
        if wanted != self.wanted:
            self.wanted = wanted
            self._changed(wanted)

    def warning(self) -> str | None:
        """Return why the document that stands there is not in force."""
        if not self.faults:
            return None
        more = f" and {len(self.faults) - 1} more" if len(self.faults) > 1 else ""
        return f"the last good configuration stays in force: {self.faults[0]}{more}"

    def _tell(self, written: core.ConfigMap) -> None:
        said = "; ".join(map(str, self.faults))
        logger.warning("scheduler configuration is refused, the last one stays faults=%s", said)
        metadata = written.metadata
        regarding = recorder.Regarding(
            "v1", "ConfigMap", metadata.name, metadata.namespace, metadata.uid
        )
        note = f"The last good configuration stays in force: {said}"
        self._events.event(regarding, "Warning", REFUSED, note, "Configure")
