"""The cluster in a few figures, counted when asked for."""

import pytest

from api import names
from domain.lending import colocation
from kube.informers import store
from manager.model import projections
from manager.overcommit import fleet_metrics
from manager.reconcile import node_objects
from process.runtime import metrics
from process.runtime.clock import ManualClock

NOW = 1_000_000.0


def node(name: str, cores: int, lent: int) -> projections.Node:
    batch = {names.BATCH_CPU: lent, names.BATCH_MEMORY: lent << 20}
    amount = colocation.Amount(cores * 1000, 1 << 30)
    return projections.Node(name, "u", {}, {}, amount, amount, colocation.NOTHING, ({}, batch))


def reported(at: float | None) -> projections.Metric:
    report = projections.Report(at, colocation.NOTHING, {})
    return projections.Metric(node_objects.present({"metadata": {"name": "x"}, "spec": {}}), report)


@pytest.fixture
def figures() -> metrics.Registry:
    registry = metrics.Registry()
    nodes: store.Store[projections.Node] = store.Store()
    reports: store.Store[projections.Metric] = store.Store()
    ages = {
        "a": 0.0,
        "b": fleet_metrics.LATE_SECONDS,
        "c": fleet_metrics.LATE_SECONDS + 1,
        "d": None,
        "e": None,
    }
    for version, (name, age) in enumerate(ages.items(), start=1):
        nodes.put(store.Meta(name, "", version), node(name, 8, 1500))
        if name != "e":
            reports.put(store.Meta(name, "", version), reported(None if age is None else NOW - age))
    fleet_metrics.Fleet(nodes, reports, ManualClock(NOW)).show(registry)
    return registry


@pytest.mark.parametrize(("state", "count"), [("fresh", 2), ("late", 1), ("none", 2)])
def test_nodes_by_their_last_report(figures: metrics.Registry, state: str, count: int) -> None:
    assert figures.value("koord_manager_nodes", {"report": state}) == count


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("koord_manager_lent_cores", 7.5),
        ("koord_manager_lent_bytes", 7500 << 20),
        ("koord_manager_allocatable_cores", 40.0),
    ],
)
def test_what_all_nodes_have_together(figures: metrics.Registry, name: str, value: float) -> None:
    assert figures.value(name) == value


async def test_the_figures_of_one_scrape_are_of_one_look() -> None:
    registry, clock = metrics.Registry(), ManualClock(NOW)
    nodes: store.Store[projections.Node] = store.Store()
    fleet_metrics.Fleet(nodes, store.Store(), clock).show(registry)
    assert registry.value("koord_manager_lent_cores") == 0
    nodes.put(store.Meta("a", "", 1), node("a", 8, 2000))
    assert registry.value("koord_manager_nodes", {"report": "none"}) == 0
    await clock.advance(1.0)
    assert registry.value("koord_manager_nodes", {"report": "none"}) == 1
    assert registry.value("koord_manager_lent_cores") == 2
