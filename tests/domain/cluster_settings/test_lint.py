"""What is legal in the cluster settings and still probably not meant is said."""

import json

import pytest

from api.koordinator.settings import configuration
from domain.cluster_settings import lint

GOLD = {"matchLabels": {"pool": "gold"}}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        pytest.param("colocation-confg", {}, "did you mean colocation-config?", id="key"),
        pytest.param("README", {}, "README: is no key of the cluster settings", id="note"),
        pytest.param(
            "colocation-config",
            {"cpuReclaimThreshold": 5},
            "colocation-config.cpuReclaimThreshold: is no field here and is ignored; did you mean "
            "cpuReclaimThresholdPercent?",
            id="field",
        ),
        pytest.param(
            "resource-qos-config",
            {"nodeStrategies": [{"nodeSelector": GOLD, "beClass": {"cpuQos": {}, "x": 1}}]},
            "resource-qos-config.nodeStrategies[0].beClass.x: is no field",
            id="deep-field",
        ),
        pytest.param(
            "resource-qos-config",
            {"clusterStrategy": {"beClass": {"memoryQOS": {"wmarkRatio": 80}}}},
            "clusterStrategy.beClass.memoryQOS: has no effect without enable: true",
            id="switched-off",
        ),
        pytest.param(
            "colocation-config",
            {"nodeConfigs": [{"nodeSelector": GOLD, "enable": True}]},
            "nodeConfigs[0].enable: is true, but lends nothing",
            id="entry-alone",
        ),
        pytest.param(
            "colocation-config",
            {"cpuReclaimThresholdPercent": 120},
            "is 120: more than all of a node",
            id="more-than-all",
        ),
        pytest.param(
            "cpu-normalization-config",
            {"ratioModel": {"xeon": {"baseRatio": 0.5}}},
            "cpu-normalization-config.ratioModel.xeon.baseRatio: is 0.5, must be in 1..5",
            id="ratio",
        ),
        pytest.param(
            "resource-amplification-config",
            {"resourceAmplificationRatio": {"cpu": 0.9}},
            "resourceAmplificationRatio.cpu: is 0.9, must be at least 1",
            id="amplification",
        ),
        pytest.param(
            "host-application-config",
            {"applications": [{"cgroupPath": {"base": "Root"}}]},
            "has no effect, what it said before goes on to hold",
            id="unread",
        ),
    ],
)
def test_a_doubt_is_said(key, value, words) -> None:
    (told,) = lint.review({key: json.dumps(value)}, {})
    assert words in told


@pytest.mark.parametrize("key", configuration.MODELS)
def test_nothing_is_said_without_a_reason(key) -> None:
    assert lint.review({key: "{}"}, {}) == []
    assert lint.review({key: ""}, {}) == []
    assert lint.review({key: "null"}, {}) == []
    # What is not readable at all is refused elsewhere, or was there before.
    assert lint.review({key: "{"}, {key: "{"}) == []


def test_settings_as_people_write_them_raise_no_doubt() -> None:
    colocation = {
        "enable": True,
        "metricAggregatePolicy": {"durations": ["5m"]},
        "extensions": {"anything": {"goes": 1}},
        "nodeConfigs": [{"name": "gold", "nodeSelector": GOLD, "enable": True}],
    }
    applications = {"applications": [{"name": "a", "cgroupPath": {"base": "CgroupRoot"}}]}
    quality = {
        "clusterStrategy": {"beClass": {"memoryQOS": {"enable": True, "wmarkRatio": 80}}},
        "nodeStrategies": [{"nodeSelector": GOLD, "beClass": {"memoryQOS": {"wmarkRatio": 70}}}],
    }
    ratios = {"enable": True, "ratioModel": {"xeon": {"baseRatio": 1.5}}, "defaultRatio": 1}
    system = {"clusterStrategy": {"schedFeatures": {"ID": True}}}
    data = {
        "colocation-config": colocation,
        "host-application-config": applications,
        "system-config": system,
        "resource-qos-config": quality,
        "cpu-normalization-config": ratios,
    }
    assert lint.review({k: json.dumps(v) for k, v in data.items()}, {}) == []
