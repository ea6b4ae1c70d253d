"""What is remembered of a node and its report gives the figures that both give anew."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.usage import load
from extender.framework import views
from extender.plugins.load_aware import load_aware
from extender.state import lending, records

NOTES = [
    "",
    *map(
        json.dumps,
        (
            {"usageThresholds": {"cpu": 65, "memory": 95}},
            {"prodUsageThresholds": {"cpu": 50}},
            {"aggregatedUsage": {"usageThresholds": {"cpu": 60}, "usageAggregationType": "p95"}},
        ),
    ),
]
NODES = [
    records.NodeRecord("n0", (), (("cpu", cpu), ("memory", 9000)), thresholds=text)
    for cpu in (0, 4000)
    for text in NOTES
]
VECTORS = st.tuples(st.integers(0, 9000), st.integers(0, 9000))
REPORTS = st.builds(
    load.Report,
    updated_at=st.none() | st.floats(0, 100),
    interval=st.just(60.0),
    usage=st.none() | VECTORS,
    system=VECTORS,
    windows=st.sampled_from(((), (load.Window(300.0, {"p95": (7000, 70)}),))),
    pods=st.just({}),
)
STEPS = st.lists(st.tuples(st.sampled_from(NODES), st.integers(0, 2)), min_size=1, max_size=12)
BASE = load.Arguments(
    profile=load.Profile(
        load.Thresholds({"cpu": 70}), load.Thresholds(), load.Thresholds({"memory": 80}, "p95")
    ),
    factors={"cpu": 85, "memory": 70},
    weights={"cpu": 1, "memory": 1},
)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(BASE, id="usage"),
        pytest.param(dataclasses.replace(BASE, score_prod_usage=True), id="usage of prod pods"),
        pytest.param(dataclasses.replace(BASE, score_kind="p95"), id="usage over a window"),
        pytest.param(dataclasses.replace(BASE, filter_expired=False), id="however old"),
    ],
)
@given(steps=STEPS, reports=st.lists(REPORTS, min_size=3, max_size=3))
def test_figures_are_those_of_a_plugin_that_remembers_nothing(arguments, steps, reports):
    kept = load_aware.LoadAware(arguments)
    for node, number in steps:
        info = views.NodeInfo(node, reports[number], (), lending.PUBLISHED)
        assert kept.node(info) == load_aware.LoadAware(arguments).node(info)
