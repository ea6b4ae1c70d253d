"""Every plug-in has arguments of its name; what is wrong in them is named with its remedy."""

import hypothesis
import pytest
from hypothesis import strategies as st

from descheduler.configuration.arguments import models
from process.configuration import fields
from tests.descheduler.configuration.arguments.written_arguments import read, reading

REQUIRED = {
    "CustomPriority": {
        "evictionOrder": [
            {"name": "spot", "nodeSelector": {"matchLabels": {"pool": "spot"}}},
            {"name": "fixed", "nodeSelector": {"matchLabels": {"pool": "fixed"}}},
        ]
    },
    "HighNodeUtilization": {"thresholds": {"cpu": 20}},
    "LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}},
    "PodLifeTime": {"maxPodLifeTimeSeconds": 86400},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 100},
    "RemovePodsViolatingNodeAffinity": {
        "nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]
    },
}


@pytest.mark.parametrize("name", models.MODELS)
def test_the_least_that_has_to_be_written_is_enough(name):
    found = read(name, **REQUIRED.get(name, {}))
    assert type(found).__name__ == f"{name}Args"
    assert found.complete() == found


@pytest.mark.parametrize("name", models.MODELS)
def test_a_field_that_does_not_exist_is_a_fault(name):
    _, faults, _ = reading(name, **REQUIRED.get(name, {}), color="red")
    assert faults == ["args.color: does not exist; remove it"]


def test_every_field_has_a_text():
    assert [
        f"{name}.{entry.path}"
        for name, model in models.MODELS.items()
        for entry in fields.describe(model)
        if not entry.description
    ] == []


LABEL = {"matchExpressions": [{"key": "pool", "operator": "In", "values": []}]}
FAULTY = [
    ("LowNodeLoad", {"highThresholds": {"cpu": -1}}, "args.highThresholds.cpu: is -1, must be at"),
    (
        "LowNodeLoad",
        {"lowThresholds": {"cpu": 80}, "highThresholds": {"cpu": 70}},
        "args: lowThresholds.cpu: is 80, must be at most highThresholds.cpu, 70",
    ),
    (
        "LowNodeLoad",
        {"prodHighThresholds": {"cpu": 71}, "highThresholds": {"cpu": 70}},
        "args: prodHighThresholds.cpu: is 71, must be at most highThresholds.cpu, 70",
    ),
    (
        "LowNodeLoad",
        {"nodePools": [{"lowThresholds": {"m": 2}, "highThresholds": {"m": 1}}]},
        "args.nodePools[0]: lowThresholds.m: is 2, must be at most highThresholds.m, 1",
    ),
    (
        "LowNodeLoad",
        {"evictableNamespaces": {"include": ["a"], "exclude": ["b"]}},
        "args.evictableNamespaces: include and exclude are both given; keep one of them",
    ),
    ("LowNodeLoad", {"nodeMetricExpirationSeconds": 0}, "is 0, must be at least 1"),
    ("LowNodeLoad", {"nodeSelector": LABEL}, "values: In needs at least one value"),
    (
        "LowNodeLoad",
        {"nodeSelector": {"matchLabels": {"-": "x"}}},
        "args.nodeSelector: matchLabels: - is no label; a key is up to 63 letters",
    ),
    (
        "LowNodeLoad",
        {"nodeSelector": {"matchLabel": {}}},
        "nodeSelector.matchLabel: does not exist",
    ),
    ("LowNodeLoad", {"numberOfNode": 1}, "does not exist; did you mean numberOfNodes?"),
    (
        "LowNodeLoad",
        {"anomalyCondition": {"consecutiveNormalities": -1}},
        "args.anomalyCondition.consecutiveNormalities: is -1, must be at least 0",
    ),
    ("CustomPriority", {}, "args.evictionOrder: is missing; give it a value"),
    (
        "CustomPriority",
        {"evictionOrder": [{"name": "a", "nodeSelector": {}}] * 2},
        "args: evictionOrder: a is there twice; rename one",
    ),
    ("CustomPriority", {"evictionOrder": [{"name": "a", "nodeSelector": {}}]}, "at least 2 items"),
    (
        "CustomPriority",
        REQUIRED["CustomPriority"] | {"mode": "Drain"},
        "args.mode: is \"Drain\", must be one of 'BestEffort' or 'DrainNode'",
    ),
    ("FragmentationAware", {"imbalanceThreshold": -1}, "is -1, must be at least 0"),
    (
        "ScaleDownBinPack",
        {"strategy": "EvictDirectly"},
        "args: maxPodsToEvict: EvictDirectly needs a number above 0; give one",
    ),
    ("MigrationController", {"skipEvictionGates": ["Pvc"]}, 'args.skipEvictionGates[0]: is "Pvc"'),
    ("MigrationController", {"maxMigratingGlobally": -1}, "is -1, must be at least 0"),
    ("MigrationController", {"maxMigratingPerNode": -1}, "is -1, must be at least 0"),
    ("MigrationController", {"maxMigratingPerNamespace": -1}, "is -1, must be at least 0"),
    ("MigrationController", {"maxMigratingPerWorkload": "10"}, 'or a percentage such as "10%"'),
    ("MigrationController", {"maxUnavailablePerWorkload": "x%"}, 'or a percentage such as "10%"'),
    ("MigrationController", {"evictQPS": 0}, "args.evictQPS: is 0, must be more than 0"),
    ("MigrationController", {"evictQPS": "inf"}, 'args.evictQPS: is "inf", must be at most'),
    ("MigrationController", {"evictQPS": "nan"}, 'args.evictQPS: is "nan", must be more than 0'),
    ("MigrationController", {"maxMigratingPerWorkload": -1}, "is -1: must not be negative"),
    (
        "LowNodeLoad",
        {"nodeSelector": {"matchLabels": {"a": "?"}}},
        "args.nodeSelector: matchLabels.a: ? is no value; a value is empty or up to 63",
    ),
    (
        "LowNodeLoad",
        {"nodeSelector": {"matchExpressions": [{"key": "-", "operator": "Exists"}]}},
        "key: - is no label; a key is up to 63",
    ),
    (
        "LowNodeLoad",
        {"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["?"]}]}},
        "values: ? is no value of a label",
    ),
    ("MigrationController", {"evictQPS": "fast"}, 'or a text such as "0.5"'),
    ("MigrationController", {"evictBurst": 0}, "is 0, must be at least 1"),
    ("MigrationController", {"maxConcurrentReconciles": 0}, "is 0, must be at least 1"),
    ("MigrationController", {"defaultJobMode": "Fast"}, 'args.defaultJobMode: is "Fast", must be'),
    (
        "MigrationController",
        {"defaultJobTTL": "-5m"},
        'args.defaultJobTTL: is "-5m", must be at least 0',
    ),
    ("MigrationController", {"evictionPolicy": "Kill"}, 'args.evictionPolicy: is "Kill"'),
    ("MigrationController", {"labelSelector": LABEL}, "values: In needs at least one value"),
    (
        "MigrationController",
        {"namespaces": {"include": ["a"], "exclude": ["b"]}},
        "args.namespaces: include and exclude are both given; keep one of them",
    ),
    ("MigrationController", {"objectLimiters": {"pod": {}}}, "args.objectLimiters.pod"),
    (
        "MigrationController",
        {"objectLimiters": {"namespace": {"maxMigrating": "10%"}}},
        "objectLimiters.namespace.maxMigrating: a namespace has no replicas; write a number",
    ),
    ("MigrationController", {"nodeSelector": "a b"}, "a b is no requirement on a label"),
    (
        "MigrationController",
        {"priorityThreshold": {"value": 1, "name": "a"}},
        "args.priorityThreshold: value and name are both given; keep one of them",
    ),
    (
        "DefaultEvictor",
        {"ignorePvcPods": True, "podProtections": {"extraEnabled": ["PodsWithPVC"]}},
        "args: ignorePvcPods and podProtections are both given; keep podProtections",
    ),
    (
        "DefaultEvictor",
        {"podProtections": {"defaultDisabled": ["DaemonSetPods", "DaemonSetPods"]}},
        "args.podProtections: defaultDisabled: DaemonSetPods is there twice; remove one",
    ),
    ("DefaultEvictor", {"noEvictionPolicy": "Never"}, 'args.noEvictionPolicy: is "Never"'),
    ("HighNodeUtilization", {}, "args.thresholds: is missing; give it a value"),
    ("HighNodeUtilization", {"thresholds": {"cpu": 101}}, "is 101, must be at most 100"),
    (
        "HighNodeUtilization",
        {"thresholds": {"cpu": 1}, "evictableNamespaces": {"include": ["a"]}},
        "args.evictableNamespaces: include is not supported here; name the others in exclude",
    ),
    (
        "LowNodeUtilization",
        {"thresholds": {"cpu": 1}, "targetThresholds": {"memory": 1}},
        "args: thresholds and targetThresholds differ in cpu; give it in both or in none",
    ),
    (
        "LowNodeUtilization",
        {"thresholds": {"cpu": 60}, "targetThresholds": {"cpu": 50}},
        "args: thresholds.cpu: is 60, must be at most targetThresholds.cpu, 50",
    ),
    ("PodLifeTime", {}, "there is no criterion; give maxPodLifeTimeSeconds, states, conditions"),
    ("PodLifeTime", {"conditions": [{}]}, "args.conditions[0]: says nothing; give a type"),
    (
        "PodLifeTime",
        {"states": ["Failed"], "ownerKinds": {"include": ["a"], "exclude": ["b"]}},
        "args.ownerKinds: include and exclude are both given; keep one of them",
    ),
    ("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 0}, "is 0, must be at least 1"),
    (
        "RemovePodsHavingTooManyRestarts",
        {"podRestartThreshold": 1, "states": ["Pending"]},
        "args.states[0]: is \"Pending\", must be one of 'Running' or 'CrashLoopBackOff'",
    ),
    ("RemovePodsViolatingNodeAffinity", {}, "args.nodeAffinityType: is missing"),
    ("RemovePodsViolatingNodeAffinity", {"nodeAffinityType": []}, "at least 1 item"),
    (
        "RemovePodsViolatingNodeTaints",
        {"excludedTaints": ["a"], "includedTaints": ["b"]},
        "args: excludedTaints and includedTaints are both given; keep one of them",
    ),
    (
        "RemovePodsViolatingTopologySpreadConstraint",
        {"constraints": ["Soft"]},
        'args.constraints[0]: is "Soft", must be one of',
    ),
]


@pytest.mark.parametrize(
    ("name", "said", "told"),
    [
        pytest.param(*case, id=f"{number} {case[0]} {'+'.join(case[1])}")
        for number, case in enumerate(FAULTY)
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(name, said, told):
    found, faults, _ = reading(name, **said)
    assert found is None
    assert told in "\n".join(faults)


DOUBTFUL = [
    (
        "LowNodeLoad",
        {"highThresholds": {"cpu": 80}},
        "args.highThresholds.cpu: has no effect without lowThresholds.cpu; give both",
    ),
    (
        "LowNodeLoad",
        {"nodePools": [{"prodLowThresholds": {"cpu": 8}}]},
        "args.nodePools[0].prodLowThresholds.cpu: has no effect without prodHighThresholds.cpu",
    ),
    ("MigrationController", {"arbitrationArgs": {"enabled": False}}, "jobs are always arbitrated"),
    (
        "MigrationController",
        {"evictSystemCriticalPods": True, "priorityThreshold": {"value": 9}},
        "args.priorityThreshold: has no effect with evictSystemCriticalPods",
    ),
    (
        "MigrationController",
        {"objectLimiters": {"namespace": {"duration": "5m"}}},
        "args.objectLimiters.namespace: has no effect without maxMigrating",
    ),
    ("DefaultEvictor", {"minReplicas": 1}, "args.minReplicas: has no effect unless it is at least"),
    ("PodLifeTime", {"states": ["Pendig"]}, "args.states: Pendig is no state that"),
]


@pytest.mark.parametrize(
    ("name", "said", "told"),
    [pytest.param(*one, id=f"{one[0]} {'+'.join(one[1])}") for one in DOUBTFUL],
)
def test_what_has_no_effect_is_warned_of(name, said, told):
    found, faults, warnings = reading(name, **said)
    assert found is not None
    assert faults == []
    assert told in "\n".join(warnings)


def test_several_faults_are_told_together():
    _, faults, _ = reading("MigrationController", evictBurst=0, evictQPS=0, dryrun=True, nodeFit=1)
    assert len(faults) == 4


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@hypothesis.given(data=st.data())
def test_anything_is_read_or_refused(data):
    name = data.draw(st.sampled_from(sorted(models.MODELS)))
    aliases = [one.alias for one in models.MODELS[name].model_fields.values()]
    said = data.draw(st.dictionaries(st.sampled_from(aliases), PLAIN, max_size=4))
    found, faults, _ = reading(name, **said)
    assert (found is None) == bool(faults)
    if found is not None:
        assert found.complete().complete() == found.complete()
