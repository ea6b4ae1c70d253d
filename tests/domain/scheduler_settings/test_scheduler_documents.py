"""koord-scheduler-config: what is taken, what is refused and by which name, whatever is written."""

import copy
import json
import random

import pytest

from api.plugin_args import models, node
from domain.scheduler_settings import documents, load_aware, plugin_sets
from domain.scheduler_settings.plugin_sets import Enabled, PluginSet
from tests import hostile, processor_time
from tests.domain.scheduler_settings.written_documents import config, document, read, second

EVERYTHING = document(
    config(
        "LoadAwareScheduling",
        filterExpiredNodeMetrics=False,
        nodeMetricExpirationSeconds=300,
        enableScheduleWhenNodeMetricsExpired=True,
        resourceWeights={"cpu": 1, "memory": 1},
        dominantResourceWeight=1,
        usageThresholds={"cpu": 65, "memory": 95},
        prodUsageThresholds={"cpu": 55},
        prodUsageIncludeSys=True,
        scoreAccordingProdUsage=True,
        estimator="defaultEstimator",
        estimatedScalingFactors={"cpu": 85, "memory": 70},
        estimatedSecondsAfterPodScheduled=180,
        estimatedSecondsAfterInitialized=60,
        allowCustomizeEstimation=True,
        aggregated={
            "usageThresholds": {"cpu": 65},
            "usageAggregationType": "p95",
            "usageAggregatedDuration": "5m",
            "scoreAggregationType": "p90",
            "scoreAggregatedDuration": "30m0s",
        },
        supportedResources=["ephemeral-storage"],
    ),
    config(
        "NodeNUMAResource",
        defaultCPUBindPolicy="SpreadByPCPUs",
        scoringStrategy={"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 2}]},
        numaScoringStrategy={"type": "LeastAllocated"},
    ),
    config(
        "DeviceShare",
        scoringStrategy={
            "type": "MostAllocated",
            "resources": [{"name": "koordinator.sh/gpu-memory-ratio", "weight": 1}],
        },
        disableDeviceNUMATopologyAlignment=True,
        gpuSharedResourceTemplatesConfig={
            "configMapNamespace": "koordinator-system",
            "configMapName": "gpu-shared-resource-templates",
            "matchedResources": ["huawei.com/npu-core"],
        },
        gpuShareUnsupportedModels=[{"vendor": "huawei", "model": "Ascend-310P3-300I-DUO"}],
        devicePluginAdaption=True,
    ),
    config(
        "Reservation",
        enablePreemption=True,
        minCandidateNodesPercentage=20,
        minCandidateNodesAbsolute=50,
        controllerWorkers=2,
        gcDurationSeconds=3600,
        gcIntervalSeconds=30,
        disableGarbageCollection=True,
        resyncIntervalSeconds=30,
        preAllocationConfig={
            "enableClusterMode": True,
            "clusterLabelKey": "example.com/may-go",
            "clusterPriorityAnnotationKey": "example.com/order",
            "preferNoPreAllocatedPods": True,
        },
        ignoredResources=["example.com/gpu"],
        ignoredResourceGroups=["example.com"],
        reservationSelectorIndex={"enabled": True, "keyPrefixes": ["a/"], "keys": ["b"]},
    ),
    config(
        "ElasticQuota",
        delayEvictTime="2m",
        revokePodInterval="1s",
        defaultQuotaGroupMax={"cpu": "100", "memory": "1Ti"},
        systemQuotaGroupMax={"cpu": 100},
        quotaGroupNamespace="kube-system",
        monitorAllQuotas=True,
        enableCheckParentQuota=True,
        enableRuntimeQuota=False,
        enableMinQuotaScale=False,
        disableDefaultQuotaPreemption=False,
        enableQueueHint=True,
        quotaSnapshotUpdateInterval="60s",
        borrowHalfLife="24h",
        featureGates={"MultiQuotaTree": True, "DisableDefaultQuota": False},
    ),
    config(
        "Coscheduling",
        defaultTimeout="600s",
        controllerWorkers=1,
        enablePreemption=True,
        awareNetworkTopology=True,
        defaultMatchPolicy="waiting-and-running",
    ),
    config(
        "NodeResourcesFitPlus",
        resources={"nvidia.com/gpu": {"type": "MostAllocated", "weight": 2}},
    ),
    config("ScarceResourceAvoidance", resources=["nvidia.com/gpu"]),
)


def test_every_argument_of_the_plugins_is_read():
    reading = read(EVERYTHING)
    assert reading.faults == ()
    assert reading.settings is not None
    assert set(reading.settings.arguments) == set(models.MODELS)
    told = [
        warning.partition(".args.")[2].partition(": has no effect") for warning in reading.warnings
    ]
    assert {field for field, found, _ in told if found} == IDLE
    assert len(told) == len(IDLE)
    for entry in EVERYTHING["profiles"][0]["pluginConfig"]:
        said = {key: value for key, value in entry["args"].items() if key not in DROPPED}
        taken = reading.settings.arguments[entry["name"]]
        every = {field.alias for field in type(taken).model_fields.values()}
        assert every - set(said) <= WITHOUT_EFFECT, entry["name"]
        # What was understood means the same when it is read once more.
        again = read(document(config(entry["name"], **taken.wire())))
        assert again.settings.arguments[entry["name"]] == taken


DROPPED = {"apiVersion", "kind"}
IDLE = {
    "minCandidateNodesPercentage",
    "minCandidateNodesAbsolute",
    "controllerWorkers",
    "gcIntervalSeconds",
    "resyncIntervalSeconds",
    "preAllocationConfig.preferNoPreAllocatedPods",
    "reservationSelectorIndex",
    "enableQueueHint",
    "quotaSnapshotUpdateInterval",
}
"""What the document says and nothing reads."""
WITHOUT_EFFECT = {"allocator", "skipCheckScheduleCycle", "hookPlugins"}


def test_load_aware_arguments_reach_the_arithmetic():
    found = load_aware.arguments(read(EVERYTHING).settings.arguments["LoadAwareScheduling"])
    assert found.profile.prod.percent == {"cpu": 55}
    assert (found.profile.aggregated.kind, found.profile.aggregated.duration) == ("p95", 300.0)
    assert (found.score_kind, found.score_duration) == ("p90", 1800.0)
    assert (found.seconds_after_scheduled, found.seconds_after_initialized) == (180, 60)
    assert found.universe() == ("cpu", "ephemeral-storage", "memory")
    assert not found.filter_expired


@pytest.mark.parametrize(
    ("name", "defaults"),
    [
        pytest.param(
            "LoadAwareScheduling",
            {
                "nodeMetricExpirationSeconds": 180,
                "usageThresholds": {"cpu": 65, "memory": 95},
                "resourceWeights": {"cpu": 1, "memory": 1},
                "estimatedScalingFactors": {"cpu": 85, "memory": 70},
            },
            id="LoadAwareScheduling",
        ),
        pytest.param(
            "NodeNUMAResource",
            {
                "defaultCPUBindPolicy": "FullPCPUs",
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                },
            },
            id="NodeNUMAResource",
        ),
        pytest.param(
            "DeviceShare",
            {
                "disableDeviceNUMATopologyAlignment": False,
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [
                        {"name": f"koordinator.sh/{name}", "weight": 1}
                        for name in ("gpu-memory-ratio", "gpu-memory", "rdma", "fpga")
                    ],
                },
            },
            id="DeviceShare",
        ),
        pytest.param(
            "Reservation",
            {
                "minCandidateNodesPercentage": 10,
                "minCandidateNodesAbsolute": 100,
                "gcDurationSeconds": 86400,
                "gcIntervalSeconds": 60,
            },
            id="Reservation",
        ),
        pytest.param(
            "ElasticQuota",
            {
                "delayEvictTime": "2m0s",
                "defaultQuotaGroupMax": {
                    "cpu": "1844674407370955161",
                    "memory": "1844674407370955161",
                },
                "quotaGroupNamespace": "koordinator-system",
                "enableRuntimeQuota": True,
                "disableDefaultQuotaPreemption": True,
            },
            id="ElasticQuota",
        ),
        pytest.param(
            "Coscheduling",
            {"defaultTimeout": "10m0s", "defaultMatchPolicy": "once-satisfied"},
            id="Coscheduling",
        ),
    ],
)
def test_defaults_are_those_that_people_know(name, defaults):
    found = models.effective(read(document({"name": name})).settings.arguments[name])
    assert {key: found[key] for key in defaults} == defaults


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="no data"),
        pytest.param({documents.KEY: ""}, id="empty"),
        pytest.param({documents.KEY: "# nothing yet\n"}, id="comment"),
        pytest.param({documents.KEY: "profiles:\n"}, id="no profiles"),
        pytest.param({documents.KEY: "profiles: [null]"}, id="an empty profile"),
        pytest.param({documents.KEY: "profiles: [{plugins: , pluginConfig: }]"}, id="no lists"),
    ],
)
def test_nothing_written_says_nothing(data):
    assert documents.read(data) == documents.Reading(documents.NOTHING)


def test_a_document_under_another_key_counts_where_it_is_alone():
    text = json.dumps(EVERYTHING)
    alone = documents.read({"scheduler.yaml": text})
    assert alone.settings == read(EVERYTHING).settings
    (fault,) = documents.read({"a": text, "b": text}).faults
    assert "is missing beside other keys" in str(fault)


def test_a_single_profile_counts_whatever_its_name():
    whole = {"profiles": [{"pluginConfig": [config("Reservation")]}]}
    assert set(read(whole).settings.arguments) == {"Reservation"}
    mine = {"schedulerName": "mine", "pluginConfig": [{"name": "Reservation"}]}
    named = {"profiles": [second(), mine]}
    assert set(read(named, profile="mine").settings.arguments) == {"Reservation"}


def test_plugins_of_ours_are_kept_by_extension_point():
    found = read(
        document(
            plugins={
                "filter": {"enabled": [{"name": "Reservation"}, {"name": "NodeName"}]},
                "score": {"enabled": [{"name": "Reservation", "weight": 5000}]},
                "multiPoint": {"disabled": [{"name": "LoadAwareScheduling"}]},
                "queueSort": {"disabled": [{"name": "*"}]},
            }
        )
    )
    assert found.warnings == ()
    assert found.settings.plugins == {
        plugin_sets.FILTER: PluginSet((Enabled("Reservation"),)),
        plugin_sets.SCORE: PluginSet((Enabled("Reservation", 5000),)),
        plugin_sets.MULTI_POINT: PluginSet((), frozenset({"LoadAwareScheduling"})),
    }


MANY = range(2000)
BIG = {
    "entries": document(*({"name": f"Foo{number}"} for number in MANY)),
    "fields": {f"profile{number}": 1 for number in MANY},
    "arguments": document(config("Reservation", **{f"gcInterval{n}": 1 for n in MANY})),
    "values": document(
        config("LoadAwareScheduling", usageThresholds={f"c{n}": 1000 for n in MANY})
    ),
}


@pytest.mark.parametrize("name", BIG)
def test_what_is_large_is_refused_soon(name):
    text = json.dumps(BIG[name])
    with processor_time.below(0.2):
        reading = read(text)
    assert 0 < len(reading.faults) <= 20


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_written_is_read_or_refused(seed):
    rng = random.Random(seed)
    whole = copy.deepcopy(EVERYTHING)
    whole["profiles"][0]["plugins"] = {"filter": {"enabled": [{"name": "Reservation"}]}}
    taken = 0
    for _ in range(60):
        text = json.dumps(hostile.broken(whole, rng))
        reading = documents.read({documents.KEY: text})
        assert (reading.settings is None) == bool(reading.faults)
        assert len(str(reading.faults)) < 40_000
        taken += reading.settings is not None
        for arguments in reading.settings.arguments.values() if reading.settings else ():
            assert isinstance(models.effective(arguments), dict)
            if isinstance(arguments, node.LoadAwareSchedulingArgs):
                load_aware.arguments(arguments).universe()
    assert taken < 60
