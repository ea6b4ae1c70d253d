"""What the cluster as a whole lends, and which nodes have stopped to report; for collectors."""

import dataclasses
from collections.abc import Callable
from typing import Final

from api import names
from kube.informers import store as stores
from manager.model import projections
from process.runtime import clock as clocks
from process.runtime import metrics

LATE_SECONDS: Final = 300.0
"""Several missed reports: the node's agent is not looked after."""
_FRESH, _LATE, _NONE = "fresh", "late", "none"
# All figures of one scrape come from one look at the nodes, which are many.
_SAME_SECONDS: Final = 1.0


@dataclasses.dataclass(slots=True)
class _Totals:
    """Sums over all nodes, in the units of the API."""

    reports: dict[str, int]
    allocatable: int = 0
    lent_cpu: int = 0
    lent_memory: int = 0


class Fleet:
    """Adds up the nodes when metrics are read."""

    def __init__(
        self,
        nodes: stores.Store[projections.Node],
        reports: stores.Store[projections.Metric],
        clock: clocks.Clock,
    ) -> None:
        self._nodes = nodes
        self._reports = reports
        self._clock = clock
        self._totals = _Totals({})
        self._until = -1.0

    def show(self, registry: metrics.Registry) -> None:
        """Offer the sums as figures."""
        by_report = registry.gauge(
            "koord_manager_nodes",
            "Nodes by their agent's last report: fresh, late (over five minutes old) or none.",
            ("report",),
        )
        for state in (_FRESH, _LATE, _NONE):
            by_report.labels(state).set_function(self._counting(state))
        registry.gauge(
            "koord_manager_lent_cores", "What all nodes together offer to batch work."
        ).set_function(lambda: self._look().lent_cpu / 1000)
        registry.gauge(
            "koord_manager_lent_bytes", "Memory that all nodes together offer to batch work."
        ).set_function(lambda: float(self._look().lent_memory))
        registry.gauge(
            "koord_manager_allocatable_cores", "What all nodes together have for pods."
        ).set_function(lambda: self._look().allocatable / 1000)

    def _counting(self, state: str) -> Callable[[], float]:
        return lambda: float(self._look().reports.get(state, 0))

    def _look(self) -> _Totals:
        if self._clock.monotonic() >= self._until:
            self._totals = self._added()
            self._until = self._clock.monotonic() + _SAME_SECONDS
        return self._totals

    def _added(self) -> _Totals:
        totals, oldest = _Totals({}), self._clock.now() - LATE_SECONDS
        for node in self._nodes.values():
            metric = self._reports.get(node.name)
            at = None if metric is None else metric.report.updated_at
            state = _NONE if at is None else _FRESH if at >= oldest else _LATE
            totals.reports[state] = totals.reports.get(state, 0) + 1
            totals.allocatable += node.allocatable.cpu
            lent = node.published[1]
            totals.lent_cpu += lent.get(names.BATCH_CPU, 0)
            totals.lent_memory += lent.get(names.BATCH_MEMORY, 0)
        return totals
