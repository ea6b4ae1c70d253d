"""Settings: defaults, mistakes that are named, and a description for everything."""

import pydantic
import pytest

from api.plugin_args import node
from extender import settings
from process.configuration import settings as plumbing


def test_everything_is_described():
    undescribed = [
        entry.path for entry in plumbing.describe(settings.Settings) if not entry.description
    ]
    assert undescribed == []


def test_kube_scheduler_keeps_its_connections():
    """Its only extender is in the same pod: to dial again would cost a call time for nothing."""
    assert settings.Settings().server.max_connection_age_seconds == 0


def test_load_aware_defaults_are_those_that_people_know():
    arguments = settings.LoadAwareSettings().arguments()
    assert arguments.profile.usage.percent == {"cpu": 65, "memory": 95}
    assert arguments.factors == {"cpu": 85, "memory": 70}
    assert arguments.weights == {"cpu": 1, "memory": 1}
    assert arguments.expiration_seconds == 180
    assert arguments.universe() == ("cpu", "memory")


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        pytest.param({"usageThreshold": {}}, "usageThreshold", id="unknown key"),
        pytest.param({"usageThresholds": {"cpu": 101}}, "usageThresholds.cpu", id="over 100"),
        pytest.param({"resourceWeights": {"cpu": 0}}, "resourceWeights.cpu", id="weight of zero"),
        pytest.param(
            {"resourceWeights": {"x": 1}}, "add x to estimatedScalingFactors", id="no factor"
        ),
        pytest.param(
            {"aggregated": {"usageAggregationType": "p42"}}, "usageAggregationType", id="kind"
        ),
        pytest.param(
            {"nodeMetricExpirationSeconds": 0}, "nodeMetricExpirationSeconds", id="expiration"
        ),
    ],
)
def test_mistakes_are_named(written, problem):
    with pytest.raises(pydantic.ValidationError, match=problem):
        settings.LoadAwareSettings.model_validate(written)


def test_durations_are_read_as_text_and_as_seconds():
    for written in ("5m0s", 300):
        windows = node.AggregatedArgs(usage_aggregated_duration=written)
        assert windows.usage_aggregated_duration == 300.0


def test_all_resources_that_are_named_anywhere_take_part():
    arguments = settings.LoadAwareSettings(
        usage_thresholds={"b": 1}, prod_usage_thresholds={"a": 1}, supported_resources=("z",)
    ).arguments()
    assert arguments.universe() == ("a", "b", "cpu", "memory", "z")


def test_kube_scheduler_may_have_a_connection_for_each_bind_of_a_large_gang():
    """They all come from one address; one that gave way would end a held bind."""
    made = settings.Settings().server
    assert min(made.max_connections, made.max_connections_by_address) >= 8 * 1024
