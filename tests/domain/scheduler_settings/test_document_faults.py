"""What is wrong in a scheduler configuration, or probably not meant, is named with its remedy."""

import pytest

from tests.domain.scheduler_settings.written_documents import CONFIG, config, document, read, second

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
        "args: resourceWeights.x: add x to estimatedScalingFactors as well",
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
            "args.skipCheckScheduleCycle: has no effect, there is no schedule cycle; leave it out",
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
