"""The configuration map: what holds on a node, and that bad payloads change nothing."""

import json

import pytest

from api import names
from api.koordinator.settings import configuration
from manager.cluster_settings import effective
from manager.cluster_settings import plan as cluster_settings
from tests.reference import cases, differences


def read(previous=None, **data):
    written = {
        key.replace("_", "-"): value if isinstance(value, str) else json.dumps(value)
        for key, value in data.items()
    }
    return cluster_settings.read(previous, written)


def strategies(case: cases.Case) -> list[dict]:
    metadata = case.given["node"]["metadata"]
    settings, steps = None, []
    for data in case.given["configMapDataSequence"]:
        settings = cluster_settings.read(settings, data).settings
        steps.append(
            {
                "available": settings.available,
                "errorStatus": settings.doubtful,
                "strategy": settings.merged(metadata["labels"], metadata["annotations"]),
            }
        )
    return steps


@pytest.mark.vectors
def test_strategies_of_the_reference() -> None:
    file = "colocation_config"
    cases.check(file, strategies, lambda case: case.expected["steps"], differences.of(file))


GOLD = {"pool": "gold"}


def test_first_matching_entry_inherits_from_the_cluster() -> None:
    config = {
        "enable": True,
        "cpuReclaimThresholdPercent": 70,
        "nodeConfigs": [
            {"nodeSelector": {"matchLabels": GOLD}, "memoryReclaimThresholdPercent": 80},
            {"nodeSelector": {}, "memoryReclaimThresholdPercent": 10},
        ],
    }
    settings = read(colocation_config=config).settings
    gold, other = settings.merged(GOLD, {}), settings.merged({}, {})
    assert (gold["cpuReclaimThresholdPercent"], gold["memoryReclaimThresholdPercent"]) == (70, 80)
    assert other["memoryReclaimThresholdPercent"] == 10
    assert settings.colocation_enabled


def test_annotation_and_labels_of_the_node_come_last() -> None:
    settings = read(colocation_config={"enable": True}).settings
    labels = {names.LABEL_CPU_RECLAIM_RATIO: "0.5", names.LABEL_MEMORY_RECLAIM_RATIO: "inf"}
    annotations = {names.ANNOTATION_COLOCATION_STRATEGY: '{"degradeTimeMinutes": 3}'}
    merged = settings.merged(labels, annotations)
    assert merged["cpuReclaimThresholdPercent"] == 50
    assert merged["memoryReclaimThresholdPercent"] == 65
    assert merged["degradeTimeMinutes"] == 3


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        pytest.param("{", "not JSON", id="cut-off"),
        pytest.param("[]", "colocation-config", id="no-object"),
        pytest.param('{"degradeTimeMinutes": "15"}', "degradeTimeMinutes", id="wrong-type"),
        pytest.param('{"resourceDiffThreshold": 0}', "more than 0", id="out-of-range"),
        pytest.param('{"overcommitPercent": -1}', "overcommitPercent", id="negative-overcommit"),
        pytest.param('{"midCPUThresholdPercent": 101}', "0..100", id="too-large-a-share"),
        pytest.param(
            '{"metricMemoryCollectPolicy": ""}', "metricMemoryCollectPolicy", id="empty-policy"
        ),
    ],
)
def test_bad_colocation_settings_keep_the_last_good_ones(written: str, hint: str) -> None:
    good = read(colocation_config={"enable": True}).settings
    settings, problems = read(good, colocation_config=written)
    assert settings.colocation_enabled
    assert settings.available
    assert settings.doubtful
    (problem,) = problems
    assert problem.key == configuration.COLOCATION
    assert problem.effect is cluster_settings.Effect.KEPT
    assert problem.path.startswith(configuration.COLOCATION)
    assert hint in problem.sentence


def test_nothing_is_available_before_settings_were_readable_once() -> None:
    settings = read(colocation_config="{").settings
    assert not settings.available
    assert read(settings, colocation_config={"enable": True}).settings.available


def test_an_unknown_word_is_reported_and_used() -> None:
    config = {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsquota"}}
    settings, (problem,) = read(resource_threshold_config=config)
    assert problem.effect is cluster_settings.Effect.USED
    assert "cpuSuppressPolicy" in problem.path
    assert "must be one of cpuset, cfsQuota" in problem.note
    assert settings.parts({}).threshold["enable"] is True


def test_a_bad_entry_follows_the_cluster() -> None:
    config = {
        "enable": True,
        "nodeConfigs": [
            {"name": "g", "nodeSelector": {"matchLabels": GOLD}, "degradeTimeMinutes": 0}
        ],
    }
    settings, (problem,) = read(colocation_config=config)
    assert settings.merged(GOLD, {}) == settings.merged({}, {})
    assert problem.path == "colocation-config.nodeConfigs[0].degradeTimeMinutes"
    assert "is 0, must be at least 1" in problem.note
    assert problem.effect is cluster_settings.Effect.IGNORED
    assert not settings.doubtful


def test_an_entry_without_a_usable_selector_is_left_out() -> None:
    broken = {"matchExpressions": [{"key": "pool", "operator": "Bogus"}]}
    config = {
        "nodeStrategies": [
            {"nodeSelector": broken, "cpuSuppressThresholdPercent": 1},
            {"cpuSuppressThresholdPercent": 2},
            {"nodeSelector": {"matchLabels": GOLD}, "cpuSuppressThresholdPercent": 3},
        ]
    }
    settings, problems = read(resource_threshold_config=config)
    assert settings.parts(GOLD).threshold["cpuSuppressThresholdPercent"] == 3
    assert settings.parts({}).threshold["cpuSuppressThresholdPercent"] == 65
    assert [problem.path for problem in problems] == [
        "resource-threshold-config.nodeStrategies[0].nodeSelector",
        "resource-threshold-config.nodeStrategies[1]",
    ]
    assert {problem.effect for problem in problems} == {cluster_settings.Effect.IGNORED}


def test_other_keys_are_read_although_one_is_broken() -> None:
    settings, problems = read(
        cpu_burst_config="", resource_threshold_config={"clusterStrategy": {"enable": True}}
    )
    assert settings.parts({}).threshold["enable"] is True
    assert settings.parts({}).burst["policy"] == "none"
    assert [problem.key for problem in problems] == [configuration.CPU_BURST]
    assert not settings.doubtful


def test_shorthand_spelling_of_block_devices_is_folded() -> None:
    blocks = {"enable": True, "blocks": [{"name": "/dev/sda"}]}
    for written in (
        {"blkIOQOS": blocks},
        {"blkIOQOS": {"enable": True}, "blkioQOS": {"blocks": [{"name": "/dev/sda"}]}},
    ):
        settings = read(resource_qos_config={"clusterStrategy": {"beClass": written}}).settings
        assert settings.parts({}).qos == {"beClass": {"blkioQOS": blocks}}


def test_host_applications_are_replaced_not_merged() -> None:
    config = {
        "applications": [{"name": "a"}, {"name": "b"}],
        "nodeConfigs": [
            {"nodeSelector": {"matchLabels": GOLD}, "applications": [{"name": "c"}]},
            {"nodeSelector": {"matchLabels": {"pool": "bare"}}},
        ],
    }
    settings = read(host_application_config=config).settings
    assert [app["name"] for app in settings.parts({}).host_applications] == ["a", "b"]
    assert [app["name"] for app in settings.parts(GOLD).host_applications] == ["c"]
    assert settings.parts({"pool": "bare"}).host_applications == ()


def test_missing_configuration_map_means_defaults() -> None:
    settings, problems = cluster_settings.read(None, None)
    assert settings == effective.ClusterSettings(effective.DEFAULTS, available=True, doubtful=True)
    assert not problems
    assert not settings.colocation_enabled


def test_null_means_nothing_is_said() -> None:
    assert read(colocation_config="null", system_config="null").settings.sections == dict(
        effective.DEFAULTS
    )


def test_rules_are_the_merged_strategy_and_shared_where_nothing_is_particular() -> None:
    entry = {"nodeSelector": {"matchLabels": GOLD}, "degradeTimeMinutes": 3}
    settings = read(colocation_config={"enable": True, "nodeConfigs": [entry]}).settings
    assert settings.rules(GOLD, {}).degrade_seconds == 180
    assert settings.rules({}, {}) is settings.rules({"other": "label"}, {})
    labels = {names.LABEL_CPU_RECLAIM_RATIO: "0.5"}
    assert settings.rules(labels, {}).cpu.reclaim_percent == 50
    annotations = {names.ANNOTATION_COLOCATION_STRATEGY: '{"enable": false}'}
    assert not settings.rules({}, annotations).enable


@pytest.mark.parametrize(
    "entries",
    [pytest.param(["x"], id="text"), pytest.param([None], id="null")],
)
def test_entries_that_are_no_objects_are_refused(entries) -> None:
    settings, (problem,) = read(resource_threshold_config={"nodeStrategies": entries})
    assert problem.effect is cluster_settings.Effect.KEPT
    assert problem.path == "resource-threshold-config.nodeStrategies[0]"
    assert settings.parts({}).threshold["cpuSuppressThresholdPercent"] == 65


def test_normalization_and_amplification_merge_by_model_and_resource() -> None:
    normalization = {
        "enable": True,
        "defaultRatio": 1.1,
        "ratioModel": {"xeon": {"baseRatio": 1.5, "turboEnabledRatio": 1.65}},
        "nodeConfigs": [
            {
                "nodeSelector": {"matchLabels": GOLD},
                "ratioModel": {"xeon": {"baseRatio": 2}, "epyc": {"baseRatio": 1.2}},
            }
        ],
    }
    amplification = {
        "enable": True,
        "resourceAmplificationRatio": {"cpu": 1.5},
        "nodeConfigs": [
            {
                "nodeSelector": {"matchLabels": GOLD},
                "resourceAmplificationRatio": {"memory": 1.2},
            }
        ],
    }
    settings = read(
        cpu_normalization_config=normalization, resource_amplification_config=amplification
    ).settings
    everywhere, gold = settings.normalization({}), settings.normalization(GOLD)
    assert everywhere is not None
    assert gold is not None
    assert everywhere.enable
    assert everywhere.models["xeon"].turbo_enabled_ratio == 1.65
    assert (gold.default, sorted(gold.models)) == (1.1, ["epyc", "xeon"])
    # The four ratios of one model belong together.
    assert gold.models["xeon"].turbo_enabled_ratio is None
    assert settings.normalization(GOLD) is gold
    amplified = settings.amplification(GOLD)
    assert amplified is not None
    assert amplified.ratios == {"cpu": 1.5, "memory": 1.2}


def test_ratios_that_were_never_readable_are_unknown_until_they_are() -> None:
    settings = read(cpu_normalization_config="", resource_amplification_config="{").settings
    assert settings.normalization({}) is None
    assert settings.amplification({}) is None
    better = read(settings, cpu_normalization_config={"enable": True}).settings
    assert better.normalization({}) is not None
    worse = read(better, cpu_normalization_config="").settings
    assert worse.normalization({}) == better.normalization({})


def test_mid_settings_have_types() -> None:
    config = {"midReclaimMode": "static", "midStaticCPUReservedPercent": 20, "extensions": {"a": 1}}
    rules = read(colocation_config=config).settings.rules({}, {})
    assert rules.mid.static
    assert (rules.mid.static_cpu, rules.mid.static_memory, rules.mid.cpu_cap) == (20, 0, 100)
    assert rules.extensions == {"a": 1}


def test_what_admission_would_refuse_is_used_where_it_can_be_and_told() -> None:
    strategy = {"cfsQuotaBurstPercent": 50, "sharePoolThresholdPercent": 40}
    settings, (problem,) = read(cpu_burst_config={"clusterStrategy": strategy})
    assert settings.parts({}).burst["cfsQuotaBurstPercent"] == 50
    assert problem.path == "cpu-burst-config.clusterStrategy.cfsQuotaBurstPercent"
    assert problem.effect is cluster_settings.Effect.USED
    assert "is 50, must be at least 100" in problem.note


def test_half_a_pair_is_no_news_since_the_other_half_has_a_default() -> None:
    strategy = {"memoryEvictThresholdPercent": 80}
    assert not read(resource_threshold_config={"clusterStrategy": strategy}).problems


def test_a_network_share_in_percent_text_is_passed_on() -> None:
    network = {"ingressLimit": "10%", "egressRequest": 5}
    config = {"clusterStrategy": {"lsClass": {"networkQOS": network}}}
    settings, problems = read(resource_qos_config=config)
    assert settings.parts({}).qos == {"lsClass": {"networkQOS": network}}
    assert not problems
