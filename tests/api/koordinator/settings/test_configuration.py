"""The configuration map is read key by key and merged as published."""

import pytest

from api.koordinator.settings import configuration, layers
from api.wire import base, untrusted


@pytest.mark.parametrize(
    ("under", "over", "expected"),
    [
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"a": 0}, {"a": 0}),
        ({"a": True}, {"a": False}, {"a": False}),
        ({"a": 1}, {"a": None}, {"a": 1}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": [1, 2, 3]}, {"a": [4]}, {"a": [4]}),
        ({"a": []}, {"a": [4]}, {"a": [4]}),
        ({"a": [1]}, {"a": []}, {"a": []}),
        (
            {"a": [{"x": 1, "y": 2}]},
            {"a": [{"x": 3}, {"z": 4}]},
            {"a": [{"x": 3, "y": 2}, {"z": 4}]},
        ),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        (
            {"ratioModel": {"m": {"baseRatio": 1.0, "turboEnabledRatio": 2.0}, "n": {}}},
            {"ratioModel": {"m": {"baseRatio": 3.0}}},
            {"ratioModel": {"m": {"baseRatio": 3.0}, "n": {}}},
        ),
        (
            {"extensions": {"a": {"b": 1}}},
            {"extensions": {"a": {"c": 2}}},
            {"extensions": {"a": {"c": 2}}},
        ),
    ],
)
def test_merging(under, over, expected):
    before = repr((under, over))
    assert layers.merge(under, over) == expected
    assert repr((under, over)) == before


def test_strategies_stand_beside_the_selector():
    text = """{"clusterStrategy":{"enable":true,"cpuSuppressThresholdPercent":60},
    "nodeStrategies":[{"name":"gpu","nodeSelector":{"matchLabels":{"pool":"gpu"}},
                       "cpuSuppressThresholdPercent":75}]}"""
    read = configuration.read(configuration.RESOURCE_THRESHOLD, text)
    assert isinstance(read, configuration.ResourceThresholdConfig)
    assert read.cluster_strategy is not None
    assert read.cluster_strategy.cpu_suppress_threshold_percent == 60
    (entry,) = read.node_strategies
    assert (entry.name, entry.cpu_suppress_threshold_percent) == ("gpu", 75)
    assert entry.node_selector is not None
    assert entry.node_selector.match_labels == {"pool": "gpu"}


def test_overcommit_by_ratio_is_a_policy():
    read = configuration.read(
        configuration.COLOCATION,
        '{"enable":true,"cpuCalculatePolicy":"overcommitRatio","overcommitPercent":30}',
    )
    assert isinstance(read, configuration.ColocationConfig)
    assert (read.cpu_calculate_policy, read.overcommit_percent) == ("overcommitRatio", 30)


def test_an_empty_text_is_no_document():
    with pytest.raises(base.ReadError, match="resource-threshold-config: not JSON"):
        configuration.read(configuration.RESOURCE_THRESHOLD, "")


def test_defaults_of_colocation():
    assert configuration.DEFAULT_COLOCATION.wire() == {
        "enable": False,
        "metricAggregateDurationSeconds": 300,
        "metricReportIntervalSeconds": 60,
        "metricAggregatePolicy": {"durations": ["5m0s", "10m0s", "30m0s"]},
        "metricMemoryCollectPolicy": "usageWithoutPageCache",
        "cpuReclaimThresholdPercent": 60,
        "memoryReclaimThresholdPercent": 65,
        "cpuCalculatePolicy": "usage",
        "memoryCalculatePolicy": "usage",
        "degradeTimeMinutes": 15,
        "updateTimeThresholdSeconds": 300,
        "resourceDiffThreshold": 0.1,
        "midCPUThresholdPercent": 100,
        "midMemoryThresholdPercent": 100,
        "midUnallocatedPercent": 0,
        "midStaticCPUReservedPercent": 0,
        "midStaticMemoryReservedPercent": 0,
    }


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("colocation-config", '{"nodeConfigs":[{"name":"a","batchCPUThresholdPercent":50}]}'),
        (
            "resource-threshold-config",
            '{"clusterStrategy":{"cpuEvictBESatisfactionUpperPercent":4}}',
        ),
        ("resource-qos-config", '{"nodeStrategies":[{"beClass":{"memoryQOS":{"wmarkRatio":5}}}]}'),
        ("cpu-burst-config", '{"clusterStrategy":{"cfsQuotaBurstPeriodSeconds":-1}}'),
        ("system-config", '{"clusterStrategy":{"minFreeKbytesFactor":100}}'),
        ("host-application-config", '{"applications":[{"cgroupPath":{"relativePath":"a"}}]}'),
        ("cpu-normalization-config", '{"ratioModel":{"X":{"hyperThreadTurboEnabledRatio":1.5}}}'),
        ("resource-amplification-config", '{"resourceAmplificationRatio":{"cpu":1.5}}'),
    ],
)
def test_every_key_keeps_its_wire_names(key, text):
    assert untrusted.parsed(text, key, untrusted.DOCUMENT) == configuration.read(key, text).wire()


def test_every_key_has_a_model():
    assert len(configuration.MODELS) == 9


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("colocation-config", '{"enable":"yes"}', "colocation-config: enable: Input should be"),
        ("colocation-config", '{"resourceDiffThreshold":"a"}', "resourceDiffThreshold: must be a"),
        ("cpu-burst-config", '{"clusterStrategy":{"policy":"x"}}', "clusterStrategy.policy"),
        ("system-config", "[]", "system-config: object"),
    ],
)
def test_bad_values_are_named(key, text, message):
    with pytest.raises(base.ReadError, match=message):
        configuration.read(key, text)
