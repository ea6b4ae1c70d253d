"""How the groups of this node are arranged and by which runtime, told once and as a metric."""

import logging
from collections.abc import Iterable
from typing import Final

from agent.model import cgroup_layout, state
from agent.observe import collectors
from agent.observe.cgroups import cgroup_files
from process.runtime import metrics

_logger = logging.getLogger(__name__)
SECONDS: Final = 60.0
_SOON: Final = 5.0


class Stated:
    """Tells the layout of this node, again when it changes."""

    name = "layout"

    def __init__(self, figures: metrics.Registry) -> None:
        self._table = figures.table(
            "koord_agent_layout_info",
            "How the control groups of this node are arranged; always 1.",
            ["version", "hybrid", "driver", "runtime", "below"],
        )
        self._told: tuple[cgroup_layout.Layout, str] | None = None

    @property
    def seconds(self) -> float:
        """Time between two looks: a runtime is known only once a container runs."""
        return SECONDS if self._told is not None and self._told[1] else _SOON

    def collect(self, sight: collectors.Sight) -> None:
        """Tell what is new."""
        arranged = sight.layout
        runtime = runtimes(sight.pods) or cgroup_files.runtime(arranged)
        if self._told == (arranged, runtime):
            return
        self._told = (arranged, runtime)
        hybrid = "yes" if arranged.hybrid else "no"
        labels = (str(arranged.version), hybrid, arranged.driver, runtime, arranged.base)
        self._table.replace({labels: 1.0})
        _logger.info("groups found layout=%r runtime=%r", str(arranged), runtime)

    def close(self) -> None:
        """Nothing is open."""


def runtimes(pods: Iterable[state.PodState]) -> str:
    """Return the runtimes that the containers of these pods name, empty for none."""
    found = {
        cgroup_layout.runtime_of(status.container_id)
        for pod in pods
        for status in pod.pod.status.container_statuses
    }
    return "+".join(sorted(filter(None, found)))
