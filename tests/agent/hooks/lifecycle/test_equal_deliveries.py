"""What is delivered before a container starts is what reconciliation sets later."""

import json

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from agent.decide import catalogue, hook_rules, windows
from agent.hooks.devices import rdma_devices
from agent.hooks.lifecycle import adjustment, reconciliation, stages, subject
from agent.model import edits, state, strategy_settings
from agent.store import time_series
from api.koordinator.metadata import qos
from api.kubernetes import core
from tests import draws
from tests.agent import conftest

R = edits.Role
BATCH = {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "1Gi"}
GATES = (
    *("CPUSetAllocator", "CoreSched", "GroupIdentity", "BatchResource", "CPUBurst"),
    *("CPUNormalization", "BlkIOReconcile", "RdtResctrl", "Resctrl", "OOMScoreAdj"),
)
WRITTEN = {
    "koordinator.sh/oom-score-adj": ("500", "-999", "x", "9" * 5000),
    "koordinator.sh/cpuQOS": ('{"enable":true,"groupIdentity":1}', '{"groupIdentity":9}', "["),
    "koordinator.sh/cpuBurst": ('{"policy":"auto","cpuBurstPercent":500}', "{", '{"policy":1}'),
    "node.koordinator.sh/resctrl": (
        '{"llc":{"schemata":{"range":[0,50]}}}',
        '{"llc":{"schemata":{"range":[50,0]}}}',
        "[" * 500,
    ),
    "koordinator.sh/blkioQOS": (
        '{"blocks":[{"name":"/dev/sda","type":"device","ioCfg":{"readIOPS":10}}]}',
        "null",
    ),
    "scheduling.koordinator.sh/resource-status": ('{"cpuset":"2-3"}', '{"cpuset":"x"}', "{"),
}
PODS = st.fixed_dictionaries(
    {
        "quality": st.sampled_from(["", "LSE", "LSR", "LS", "BE", "SYSTEM"]),
        "kubernetes_qos": st.sampled_from(["Guaranteed", "Burstable", "BestEffort"]),
        "limits": st.sampled_from([{}, {"cpu": "500m"}, {"cpu": "2", **BATCH}, BATCH]),
        "annotations": st.fixed_dictionaries(
            {}, optional={key: st.sampled_from(texts) for key, texts in WRITTEN.items()}
        ),
        "labels": st.sampled_from([{}, {"koordinator.sh/core-sched-policy": "exclusive"}]),
        "cpus": st.sampled_from([frozenset(), frozenset({2, 3})]),
    }
)
SETTINGS = st.builds(
    strategy_settings.Strategies,
    burst=st.builds(
        strategy_settings.NodeBurst,
        st.builds(strategy_settings.Burst, st.sampled_from(["none", "auto", "cpuBurstOnly"])),
    ),
    classes=st.builds(
        strategy_settings.Classes,
        cpu=st.just(
            {
                qos.QoS.LS: strategy_settings.Cpu(True, identity=2, expeller=True),
                qos.QoS.BE: strategy_settings.Cpu(True, identity=-1),
            }
        ),
        cache=st.sampled_from([{}, {qos.QoS.BE: strategy_settings.Cache(True, 0, 30)}]),
        cpu_policy=st.sampled_from(["", "coreSched"]),
    ),
    overrides=st.builds(strategy_settings.Overrides, bounded=st.booleans()),
)


def pods(described):
    placed = conftest.Placed()
    return tuple(
        placed(f"p{number}", sandbox=f"p{number}/pause", requests=one.get("limits", {}), **one)
        for number, one in enumerate(described)
    )


def look(described, settings, *, native=True, ratio="2"):
    meta = core.ObjectMeta(annotations={"node.koordinator.sh/cpu-normalization-ratio": ratio})
    node = core.Node(metadata=meta, status=core.NodeStatus(capacity={"memory": "16Gi"}))
    picture = state.NodeState(
        at=0,
        node=node,
        pods=pods(described),
        processors=tuple(state.Processor(n, n, 0, 0) for n in range(8)),
        reserved=state.Reserved(cpus=frozenset({0})),
        kernel=state.Kernel(frozenset({R.CPU_IDENTITY} if native else ()), core_scheduling=True),
        caches=state.Caches((0, 1), 0xFFF, "GenuineIntel"),
        disks={"device:/dev/sda": "8:0"},
    )
    return catalogue.Look(picture, settings, time_series.Histories(), 100.0, enabled=GATES)


def reconciled(now):
    """The first of what the strategies want of each property of the cgroups of pods."""
    seen = windows.Windows(1.0)
    listed = catalogue.catalogue(seen, strategy_settings.Pressure())
    wanted = []
    for strategy in listed:
        if strategy.name in hook_rules.RULES:
            wanted += strategy.decide(now).wanted
    inside = {of.group for pod in now.picture.pods for of in subject.of_pod(pod)}
    return {key: one.value for key, one in edits.by_key(wanted).items() if one.group in inside}


def delivered(now, stage_of):
    rules = hook_rules.freeze(now, hook_rules.RULES)
    found = {}
    for pod in now.picture.pods:
        for of in subject.of_pod(pod):
            stage = stage_of.get(of.level)
            if stage is not None:
                asked = msgspec.structs.replace(of, stage=stage)
                adjusted, problems = adjustment.adjust(asked, rules)
                assert all(one.unexpected is None for one in problems)
                one_by_one = reconciliation.edits_of(asked, adjusted)
                found |= {one.key: one.value for one in one_by_one if one.group == of.group}
    return found


@hypothesis.settings(max_examples=draws.at_least(40))
@hypothesis.given(st.lists(PODS, min_size=1, max_size=4), SETTINGS, st.booleans())
def test_every_way_gives_the_same_values(described, settings, native):
    now = look(described, settings, native=native)
    later = reconciled(now)
    reconcile = dict.fromkeys(subject.Level, subject.Stage.RECONCILE)
    assert delivered(now, reconcile) == later
    first = {
        subject.Level.POD: subject.Stage.RUN_POD_SANDBOX,
        subject.Level.CONTAINER: subject.Stage.CREATE_CONTAINER,
    }
    pauses = {pod.sandbox for pod in now.picture.pods}
    assert delivered(now, first) == {k: v for k, v in later.items() if k[1] not in pauses}


def test_an_update_keeps_what_hooks_set():
    described = [{"quality": "BE", "limits": BATCH, "kubernetes_qos": "BestEffort"}]
    now = look(described, strategy_settings.Strategies())
    found = delivered(now, {subject.Level.CONTAINER: subject.Stage.UPDATE_CONTAINER})
    assert found == {
        (R.CPU_SHARES, "p0/app"): "1536",
        (R.CPU_QUOTA, "p0/app"): "75000",
        (R.MEMORY_LIMIT, "p0/app"): str(1 << 30),
    }


@pytest.mark.parametrize(("requested", "expected"), [(100_000, "50000"), (-1, None), (None, None)])
def test_without_a_spec_the_requested_quota_is_scaled(placed, requested, expected):
    now = look([], strategy_settings.Strategies())
    pod = placed("p", quality="LS")
    stage, level = subject.Stage.UPDATE_CONTAINER, subject.Level.CONTAINER
    of = subject.Subject(stage, level, pod, pod.containers[0], False, requested)
    found, _ = adjustment.adjust(of, hook_rules.freeze(now, {"cpu-normalization"}))
    assert {one.text for one in found.values.values()} == ({expected} if expected else set())


def test_only_enforced_strategies_have_rules():
    now = look([], strategy_settings.Strategies())
    rules = hook_rules.freeze(now, {"cpuset"})
    assert {one.name for hooks in rules.stages.values() for one in hooks} == {"CPUSetAllocator"}


def test_a_pod_that_makes_a_resctrl_group_names_it_before_its_containers_start():
    wish = {"node.koordinator.sh/resctrl": WRITTEN["node.koordinator.sh/resctrl"][0]}
    now = look([{"annotations": wish}], strategy_settings.Strategies())
    rules = hook_rules.freeze(now, {"cache"})
    (pod,) = now.picture.pods
    of = subject.Subject(subject.Stage.RUN_POD_SANDBOX, subject.Level.POD, pod)
    found, _ = adjustment.adjust(of, rules)
    assert [(one.role, one.group) for one in found.beside] == [
        (R.RESCTRL_GROUP, "koordlet-uid-p0"),
        (R.RESCTRL_L3, "koordlet-uid-p0"),
    ]


GPU = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"}
RDMA = {"koordinator.sh/rdma": "100"}
KEY = "scheduling.koordinator.sh/device-allocated"
BUS = "0000:d8:00.0"
DEVICES = hook_rules.Devices(
    True,
    rdma_devices.Rule(
        {BUS: "uverbs0"},
        {"/dev/infiniband/uverbs0": (231, 192), "/dev/infiniband/rdma_cm": (10, 58)},
    ),
)


def created(placed, asked, allocated, *, known=True):
    annotations = {KEY: json.dumps(allocated)}
    pod = placed("p", requests=asked, limits=asked, annotations=annotations)
    spec = msgspec.structs.replace(pod.pod.spec, node_name="node-1")
    pod = msgspec.structs.replace(pod, pod=msgspec.structs.replace(pod.pod, spec=spec))
    stage, level = subject.Stage.CREATE_CONTAINER, subject.Level.CONTAINER
    of = subject.Subject(stage, level, pod, pod.containers[0], known)
    return adjustment.adjust(of, hook_rules.freeze(look([], SETTING), (), DEVICES))


SETTING = strategy_settings.Strategies()
GIVEN_GPU = {"gpu": [{"minor": 1, "resources": GPU}]}
GIVEN_RDMA = {"rdma": [{"minor": 0, "id": BUS, "resources": RDMA}]}


def test_devices_that_a_pod_requests_reach_its_containers(placed):
    found, problems = created(placed, GPU | RDMA, GIVEN_GPU | GIVEN_RDMA)
    assert problems == ()
    assert found.environment == {"NVIDIA_VISIBLE_DEVICES": "1"}
    assert [one.path for one in found.devices] == [
        "/dev/infiniband/uverbs0",
        "/dev/infiniband/rdma_cm",
    ]


@pytest.mark.parametrize(
    ("asked", "known", "text"),
    [({}, True, "does not ask for"), (GPU | RDMA, False, "not known yet")],
    ids=["requests-none", "no-spec"],
)
@pytest.mark.parametrize("allocated", [GIVEN_GPU, GIVEN_RDMA], ids=["gpu", "rdma"])
def test_no_pod_gives_itself_devices(placed, asked, known, text, allocated):
    found, (problem,) = created(placed, asked, allocated, known=known)
    assert found == adjustment.NOTHING
    assert text in problem.text
    assert problem.unexpected is None


def test_every_hook_of_a_strategy_reconciles_too():
    born = {hook.name for stage in subject.Stage for hook in stages.STAGES[stage]}
    kept = {hook.name for hook in stages.RECONCILE}
    assert born - kept == {"GPUEnvInject", "RDMADeviceInject"}
