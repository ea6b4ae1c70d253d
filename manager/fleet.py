"""What the cluster as a whole lends, and which nodes have stopped to report; for collectors."""

import functools
from collections.abc import Iterable
from typing import Final

from api import names
from kube import store as stores
from manager import views
from process import clock as clocks
from process import metrics

LATE_SECONDS: Final = 300.0
"""Several missed reports: nobody looks after the node's agent."""
_FRESH, _LATE, _NONE = "fresh", "late", "none"


def show(
    registry: metrics.Registry,
    nodes: stores.Store[views.Node],
    reports: stores.Store[views.Metric],
    clock: clocks.Clock,
) -> None:
    """Offer figures that are counted when somebody asks for them."""
    by_report = registry.gauge(
        "koord_manager_nodes",
        "Nodes by their agent's last report: fresh, late (over five minutes old) or none.",
        ("report",),
    )

    def counter(state: str) -> float:
        states = (_state(reports.get(node.name), clock.now()) for node in nodes.values())
        return float(sum(found == state for found in states))

    for state in (_FRESH, _LATE, _NONE):
        by_report.labels(state).set_function(functools.partial(counter, state))
    registry.gauge(
        "koord_manager_lent_cores", "What all nodes together offer to batch work."
    ).set_function(lambda: _sum(nodes.values(), names.BATCH_CPU) / 1000)
    registry.gauge(
        "koord_manager_lent_bytes", "Memory that all nodes together offer to batch work."
    ).set_function(lambda: _sum(nodes.values(), names.BATCH_MEMORY))
    registry.gauge(
        "koord_manager_allocatable_cores", "What all nodes together have for pods."
    ).set_function(lambda: sum(node.allocatable.cpu for node in nodes.values()) / 1000)


def _state(metric: views.Metric | None, now: float) -> str:
    at = None if metric is None else metric.report.updated_at
    if at is None:
        return _NONE
    return _LATE if now - at > LATE_SECONDS else _FRESH


def _sum(nodes: Iterable[views.Node], resource: str) -> float:
    return float(sum(node.published[1].get(resource, 0) for node in nodes))
