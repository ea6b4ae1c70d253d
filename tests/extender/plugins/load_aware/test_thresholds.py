"""Annotations about load: read strictly, void as a whole where something is wrong."""

import json

import pytest

from domain.usage import load
from extender.plugins.load_aware import thresholds

BASE = load.Profile(
    usage=load.Thresholds({"cpu": 65}),
    prod=load.Thresholds({"cpu": 55}),
    aggregated=load.Thresholds({"cpu": 60}, "p95", 300.0),
)
WINDOW = {"usageThresholds": {"cpu": 40}, "usageAggregationType": "p50"}


@pytest.mark.parametrize(
    ("document", "group", "expected"),
    [
        pytest.param({"usageThresholds": {"cpu": 9}}, "usage", load.Thresholds({"cpu": 9}), id="u"),
        pytest.param({"usageThresholds": {}}, "usage", BASE.usage, id="empty keeps the base"),
        pytest.param(
            {"prodUsageThresholds": {"memory": 1}}, "prod", load.Thresholds({"memory": 1}), id="p"
        ),
        pytest.param(
            {"usageThresholds": {"cpu": None}}, "usage", load.Thresholds({"cpu": 0}), id="null is 0"
        ),
        pytest.param(
            {"aggregatedUsage": WINDOW}, "aggregated", load.Thresholds({"cpu": 40}, "p50"), id="w"
        ),
        pytest.param(
            {"aggregatedUsage": WINDOW | {"usageAggregatedDuration": "10m"}},
            "aggregated",
            load.Thresholds({"cpu": 40}, "p50", 600.0),
            id="exact window",
        ),
        pytest.param(
            {"aggregatedUsage": {"usageThresholds": {"cpu": 1}}},
            "aggregated",
            BASE.aggregated,
            id="a window without a kind",
        ),
    ],
)
def test_a_group_replaces_the_cluster_s_as_a_whole(document, group, expected):
    assert getattr(thresholds.profile(json.dumps(document), BASE), group) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"usageThresholds":{"cpu":5},"prodUsageThresholds":7}',
        '{"usageThresholds":{"cpu":5.5}}',
        '{"usageThresholds":{"cpu":"5"}}',
        '{"usageThresholds":{"cpu":true}}',
        '{"usageThresholds":{"cpu":5},"aggregatedUsage":[]}',
        '{"usageThresholds":{"cpu":5},"aggregatedUsage":{"usageAggregationType":5}}',
        '{"usageThresholds":{"cpu":5},"aggregatedUsage":{"usageAggregatedDuration":300}}',
        '{"usageThresholds":{"cpu":5},"aggregatedUsage":{"usageAggregatedDuration":"soon"}}',
    ],
)
def test_one_mistake_voids_the_annotation(text):
    assert thresholds.profile(text, BASE) == BASE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("{}", {}),
        ("bad", {}),
        ('{"cpu":100}', {"cpu": 100}),
        ('{"cpu":1.5}', {}),
        ('{"cpu":"80"}', {}),
    ],
)
def test_factors_of_a_pod(text, expected):
    assert thresholds.factors(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 7), ("30", 30), ("+30", 30), ("-30", 7), ("x", 7), ("1.5", 7), (str(1 << 64), 7)],
)
def test_delays_of_a_pod(text, expected):
    assert thresholds.seconds(text, 7) == expected
