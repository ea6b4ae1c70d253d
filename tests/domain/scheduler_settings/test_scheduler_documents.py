"""koord-scheduler-config: what is taken, what is refused and by which name, whatever is written."""

import copy
import json
import random

import pytest
import yaml

from api.plugin_args import models, node
from domain.scheduler_settings import documents, load_aware, plugin_sets
from domain.scheduler_settings.plugin_sets import Enabled, PluginSet
from tests import hostile, processor_time

CONFIG = "kubescheduler.config.k8s.io/v1"


def document(*configs, plugins=None, **fields):
    profile = {"schedulerName": "koord-scheduler", "pluginConfig": list(configs)}
    if plugins is not None:
        profile["plugins"] = plugins
    whole = {"apiVersion": CONFIG, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    return whole | fields


def config(name, **args):
    return {"name": name, "args": {"apiVersion": CONFIG, "kind": f"{name}Args"} | args}


def read(whole, **chosen):
    text = whole if isinstance(whole, str) else yaml.safe_dump(whole)
    return documents.read({documents.KEY: text}, **chosen)


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
    assert (reading.faults, reading.warnings) == ((), ())
    assert reading.settings is not None
    assert set(reading.settings.arguments) == set(models.MODELS)
    for entry in EVERYTHING["profiles"][0]["pluginConfig"]:
        said = {key: value for key, value in entry["args"].items() if key not in DROPPED}
        taken = reading.settings.arguments[entry["name"]]
        every = {field.alias for field in type(taken).model_fields.values()}
        assert every - set(said) <= WITHOUT_EFFECT, entry["name"]
        # What was understood means the same when it is read once more.
        again = read(document(config(entry["name"], **taken.wire())))
        assert again.settings.arguments[entry["name"]] == taken


DROPPED = {"apiVersion", "kind"}
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


FAULTY = [
    pytest.param(
        config("LoadAwareScheduling", usageThreshold={}),
        "usageThreshold: does not exist; did you mean usageThresholds?",
        id="misspelt field",
    ),
    pytest.param(
        config("LoadAwareScheduling", usageThresholds={"cpu": 101}),
        "usageThresholds.cpu: is 101, must be at most 100; correct it or leave it out",
        id="over 100",
    ),
    pytest.param(
        config("LoadAwareScheduling", nodeMetricExpirationSeconds=0),
        "nodeMetricExpirationSeconds: is 0, must be more than 0",
        id="no expiration",
    ),
    pytest.param(
        config("LoadAwareScheduling", nodeMetricExpirationSeconds="300"),
        'nodeMetricExpirationSeconds: is "300": Input should be a valid integer',
        id="text for a number",
    ),
    pytest.param(
        config("LoadAwareScheduling", filterExpiredNodeMetrics=1),
        "filterExpiredNodeMetrics: is 1",
        id="number for a boolean",
    ),
    pytest.param(
        config("LoadAwareScheduling", resourceWeights={"x": 1}),
        "args: is",
        id="weight without a factor",
    ),
    pytest.param(
        config("LoadAwareScheduling", aggregated={"usageAggregationType": "p42"}),
        'aggregated.usageAggregationType: is "p42", must be one of',
        id="aggregation",
    ),
    pytest.param(
        config("LoadAwareScheduling", aggregated={"usageAggregatedDuration": "-1s"}),
        'aggregated.usageAggregatedDuration: is "-1s", must be at least 0',
        id="duration",
    ),
    pytest.param(
        config("LoadAwareScheduling", kind="OtherArgs"),
        'kind: is "OtherArgs", must be LoadAwareSchedulingArgs',
        id="kind",
    ),
    pytest.param(
        config("LoadAwareScheduling", apiVersion="v1"),
        f'apiVersion: is "v1", must be {CONFIG}',
        id="version",
    ),
    pytest.param(
        {"name": "LoadAwareScheduling", "args": []}, "args: is []; write an object", id="no object"
    ),
    pytest.param(
        config("NodeNUMAResource", scoringStrategy={"type": "BalancedAllocation"}),
        'scoringStrategy.type: is "BalancedAllocation", must be one of',
        id="strategy",
    ),
    pytest.param(
        config("NodeNUMAResource", scoringStrategy={"resources": [{"name": "cpu"}]}),
        "scoringStrategy.resources[0].weight: is missing",
        id="no weight",
    ),
    pytest.param(
        config("NodeNUMAResource", scoringStrategy={"resources": [{"name": "cpu", "weight": 0}]}),
        "scoringStrategy.resources[0].weight: is 0, must be at least 1",
        id="weight of zero",
    ),
    pytest.param(
        config("DeviceShare", gpuShareUnsupportedModels=[{"vendors": "x"}]),
        "gpuShareUnsupportedModels[0].vendors: does not exist",
        id="field of an entry",
    ),
    pytest.param(
        config("Reservation", ignoredResources=["cpu"]),
        "cpu is no extended resource; name one such as example.com/gpu",
        id="native resource",
    ),
    pytest.param(
        config("Reservation", ignoredResourceGroups=["a/b"]),
        "a/b is no domain of extended resources",
        id="group",
    ),
    pytest.param(
        config("Reservation", minCandidateNodesPercentage=101),
        "minCandidateNodesPercentage: is 101, must be at most 100",
        id="percentage",
    ),
    pytest.param(
        config("ElasticQuota", delayEvictTime="-1s"),
        'delayEvictTime: is "-1s", must be at least 0',
        id="negative duration",
    ),
    pytest.param(
        config("ElasticQuota", systemQuotaGroupMax={"cpu": -1}),
        "cpu is -1; amounts are not negative",
        id="negative amount",
    ),
    pytest.param(
        config("ElasticQuota", quotaGroupNamespace="No/Name"),
        "is no name of a namespace",
        id="namespace",
    ),
    pytest.param(
        config("Coscheduling", controllerWorkers=0),
        "controllerWorkers: is 0, must be at least 1",
        id="workers",
    ),
    pytest.param(
        config("Coscheduling", defaultMatchPolicy="always"),
        'defaultMatchPolicy: is "always", must be one of',
        id="match policy",
    ),
    pytest.param(
        config("LoadAware"),
        'pluginConfig[0].name: is "LoadAware"; did you mean LoadAwareScheduling?',
        id="short name",
    ),
    pytest.param(config("Coschedulling"), "did you mean Coscheduling?", id="misspelt plug-in"),
    pytest.param({"args": {}}, "pluginConfig[0].name: is missing; name the plug-in", id="no name"),
    pytest.param(
        "LoadAwareScheduling",
        'pluginConfig[0]: is "LoadAwareScheduling"; write an object',
        id="no entry",
    ),
]


@pytest.mark.parametrize(("entry", "said"), FAULTY)
def test_a_fault_names_field_value_and_remedy(entry, said):
    reading = read(document(entry))
    assert reading.settings is None
    (fault,) = reading.faults
    assert said in str(fault)
    assert str(fault).startswith("koord-scheduler-config.profiles[0].pluginConfig[0]")


def second(**fields):
    return {"schedulerName": "koord-scheduler"} | fields


@pytest.mark.parametrize(
    ("whole", "said"),
    [
        pytest.param("a: [", "is not YAML: line 2: ", id="no YAML"),
        pytest.param("[1]", "is [1]; write a KubeSchedulerConfiguration", id="no object"),
        pytest.param({"kind": "Pod"}, 'kind: is "Pod", must be KubeSchedulerConf', id="kind"),
        pytest.param({"apiVersion": "x/v1"}, f'apiVersion: is "x/v1", must be {CONFIG}', id="v"),
        pytest.param({"profile": []}, "profile: does not exist; did you mean profiles?", id="top"),
        pytest.param({"profiles": {}}, "profiles: is {}; write a list", id="no profiles"),
        pytest.param({"profiles": [3]}, "profiles[0]: is 3; write an object", id="no profile"),
        pytest.param(
            {"profiles": [second(), second()]},
            "profiles[1]: is for koord-scheduler like koord-scheduler-config.profiles[0]",
            id="two profiles of one name",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]},
            "profiles: none is for koord-scheduler, and there are several; name one so",
            id="no profile of ours",
        ),
        pytest.param(
            document(config("Reservation"), config("Reservation")),
            "pluginConfig[1]: is for Reservation like",
            id="a plug-in twice",
        ),
        pytest.param(
            document(plugins={"filtr": {}}), "plugins.filtr: does not exist; did you", id="point"
        ),
        pytest.param(
            document(plugins={"filter": {"enable": []}}), "did you mean enabled?", id="set"
        ),
        pytest.param(
            document(plugins={"score": {"enabled": [{"name": "Reservation", "weight": -1}]}}),
            "plugins.score.enabled[0].weight: is -1, must be in 0..1000000",
            id="weight",
        ),
        pytest.param(
            document(
                plugins={"filter": {"enabled": [{"name": "Reservation"}, {"name": "Reservation"}]}}
            ),
            "plugins.filter.enabled[1]: enables Reservation a second time",
            id="enabled twice",
        ),
    ],
)
def test_a_document_that_cannot_be_used_is_refused_as_a_whole(whole, said):
    reading = read(whole)
    assert reading.settings is None
    assert said in "; ".join(map(str, reading.faults))


@pytest.mark.parametrize(
    ("whole", "said"),
    [
        pytest.param(
            document(config("NodeResourcesFit")),
            "NodeResourcesFit, which kube-scheduler reads from its own configuration",
            id="in-tree",
        ),
        pytest.param(
            document(config("SchedulingHint")), "the extender does not have", id="not offered"
        ),
        pytest.param(
            document(
                config("NodeResourcesFitPlus", resources={"cpu": {"type": "Most", "weight": 1}})
            ),
            "args.resources.cpu.type: scores 0 on every node; write LeastAllocated or",
            id="unknown strategy",
        ),
        pytest.param(
            document(config("NodeResourcesFitPlus", resources={"cpu": {"type": "MostAllocated"}})),
            "args.resources.cpu.weight: is 0, so the resource does not count; raise it",
            id="no weight",
        ),
        pytest.param(document(config("BatchFit")), "BatchFit takes no arguments", id="BatchFit"),
        pytest.param(
            document(config("DeviceShare", allocator="x")),
            "args.allocator: is deprecated and ignored; leave it out",
            id="deprecated",
        ),
        pytest.param(
            document(config("Coscheduling", skipCheckScheduleCycle=True)),
            "args.skipCheckScheduleCycle: is deprecated",
            id="deprecated switch",
        ),
        pytest.param(
            document(config("LoadAwareScheduling", estimator="mine")), "unknown", id="estimator"
        ),
        pytest.param(
            document(config("Reservation", apiVersion="kubescheduler.config.k8s.io/v1beta3")),
            f"deprecated; write {CONFIG}",
            id="deprecated version",
        ),
        pytest.param(document(zzz=1), "zzz: is unknown and ignored", id="unknown field"),
        pytest.param(
            document(plugins={"preBind": {"disabled": [{"name": "Reservation"}]}}),
            "plugins.preBind: disables Reservation without effect",
            id="point without effect",
        ),
        pytest.param(
            document(plugins={"filter": {"disabled": [{"name": "*"}]}}),
            "plugins.reserve: leaves BatchFit enabled, so that binds fail",
            id="BatchFit at half",
        ),
        pytest.param(
            document() | {"profiles": [second(), {"pluginConfig": [config("Reservation")]}]},
            "profiles[1]: is not read; plug-ins take what the profile koord-scheduler says",
            id="another profile",
        ),
    ],
)
def test_what_is_probably_not_meant_is_a_warning(whole, said):
    reading = read(whole)
    assert reading.faults == ()
    assert any(said in warning for warning in reading.warnings), reading.warnings


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
