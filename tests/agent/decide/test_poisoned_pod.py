"""One poisoned pod among 250 changes nothing for the others, whatever strategy reads it."""

import functools
import json

import msgspec
import pytest

from agent.decide import catalogue, planner, windows
from agent.model import slo_settings, state, strategy_settings
from agent.model.cpus import cpu_bindings
from agent.store import time_series
from api import names
from api.kubernetes import core
from domain.cluster_settings import node_slo
from tests.agent import conftest

MACHINE = tuple(state.Processor(cpu, cpu // 2, cpu // 8, cpu // 8) for cpu in range(16))
MEMORY_AND_CPU = {"cpu": "16", "memory": "64Gi"}
KEYS = [
    value
    for name, value in vars(names).items()
    if name.startswith("ANNOTATION_") and isinstance(value, str)
]
TEXTS = {
    "deep": '{"x":' + "[" * 3000 + "]" * 3000 + "}",
    "deep in known fields": '{"policy":' + "[" * 3000 + "]" * 3000 + ',"cpuset":"0-9"}',
    "unfinished": '{"cpuset":',
    "a list": "[[]]",
    "huge numbers": json.dumps(
        dict.fromkeys(["cpuBurstPercent", "cfsQuotaBurstPercent", "minLimitPercent", "app"], 0)
    ).replace(" 0", "9" * 4000),
    "largest numbers": json.dumps(
        {"policy": "auto", "cpuBurstPercent": 2**63 - 1, "cfsQuotaBurstPercent": 2**63 - 1}
        | {"minLimitPercent": 2**63 - 1, "lowLimitPercent": 2**63 - 1, "throttlingPercent": 2**62}
    ),
    "negative numbers": json.dumps(
        {"policy": "auto", "cpuBurstPercent": -(2**63), "cfsQuotaBurstPercent": -5}
        | {"cfsQuotaBurstPeriodSeconds": -(2**63), "minLimitPercent": -100, "groupIdentity": -9}
    ),
    "cpus of others": '{"cpuset":"0-15","numaNodeResources":[{"node":0,"resources":{"cpu":"9"}}]}',
    "256 KiB": '{"x":"' + "y" * (256 << 10) + '"}',
    "controls": '{"policy":"\x1b[31m"}',
}
GATES = frozenset(
    {"BECPUSuppress", "CPUSetAllocator", "CoreSched", "GroupIdentity", "BatchResource", "CPUBurst"}
    | {"CPUNormalization", "CgroupReconcile", "BlkIOReconcile", "RdtResctrl", "Resctrl"}
    | {"OOMScoreAdj", "TCNetworkQoS", "BECPUEvict", "BEMemoryEvict", "CPUEvict", "MemoryEvict"}
)
SPEC = {
    "resourceUsedThresholdWithBE": {"enable": True, "cpuEvictThresholdPercent": 90},
    "cpuBurstStrategy": {"policy": "auto"},
    "resourceQOSStrategy": {
        name: {"cpuQOS": {"enable": True}, "memoryQOS": {"enable": True}}
        | {"resctrlQOS": {"enable": True, "catRangeStartPercent": 0, "catRangeEndPercent": 50}}
        for name in ("lsrClass", "lsClass", "beClass")
    },
}
BATCH = {"kubernetes.io/batch-cpu": "1000", "kubernetes.io/batch-memory": "1Gi"}
KINDS = [
    {"quality": "LS", "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}},
    {"quality": "BE", "kubernetes_qos": "BestEffort", "requests": BATCH, "limits": BATCH},
    {"quality": "", "requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
    {"quality": "SYSTEM"},
]


def neighbours():
    placed = conftest.Placed(usage=state.Usage(0.1, 1 << 20), container={"quota_us": 200_000})
    bound = json.dumps({"cpuset": "2-3"})
    first = placed(
        "bound",
        quality="LSE",
        kubernetes_qos="Guaranteed",
        requests={"cpu": "2"},
        limits={"cpu": "2"},
        annotations={names.ANNOTATION_RESOURCE_STATUS: bound},
    )
    rest = [placed(f"p{number:03}", **KINDS[number % len(KINDS)]) for number in range(248)]
    return [first, *rest]


HEALTHY = neighbours()


def bystander(annotations, kind, **more):
    return conftest.Placed(usage=state.Usage(0.1, 1 << 20))(
        "zz-tenant", annotations=annotations, **{**KINDS[kind], **more}
    )


def decided(pods, steps=2):
    """Let all strategies decide, and return what they want of each group of the other pods."""
    node = msgspec.convert(
        {
            "metadata": {"name": "n", "annotations": {names.ANNOTATION_CPU_NORMALIZATION: "1.2"}},
            "status": {side: dict(MEMORY_AND_CPU) for side in ("capacity", "allocatable")},
        },
        core.Node,
    )
    complete = node_slo.of_spec(SPEC)
    seen = windows.Windows(1.0)
    made = planner.Planner(
        catalogue.catalogue(seen, strategy_settings.Pressure()),
        GATES,
        {},
        planner.Mode.ENFORCE,
        repeat_seconds=0.0,
    )
    granted = cpu_bindings.granted([one.pod for one in pods], cpu_bindings.Site(node, MACHINE))
    there = tuple(
        msgspec.structs.replace(one, cpus=granted.cpus.get(one.pod.metadata.uid, frozenset()))
        for one in pods
    )
    picture = state.NodeState(
        at=0,
        node=node,
        thresholds=slo_settings.thresholds(complete),
        usage=state.Usage(4.0, 8 << 30),
        pods=there,
        processors=MACHINE,
        best_effort=state.BestEffort(
            (state.Group("be", 0, frozenset(range(16))),), frozenset(range(16)), -1
        ),
        kernel=state.Kernel(core_scheduling=True),
        caches=state.Caches((0, 1), 0xFFF, "GenuineIntel"),
        refused_cpus=granted.refused,
        settled=True,
    )
    samples = time_series.Histories()
    for second in range(steps):
        samples.add(("node", "cpu"), float(second), 4.0, 300.0)
        look = catalogue.Look(picture, slo_settings.read(complete), samples, float(second))
        round_ = made.step(look)
    others = {pod.group for pod in HEALTHY} | {f"{pod.group}/app" for pod in HEALTHY} | {"be"}
    wanted = {one.key: one.value for one in round_.wanted if one.group in others}
    return wanted, round_, granted


@functools.cache
def beside_a_harmless_pod(kind):
    return decided([*HEALTHY, bystander({}, kind)])[0]


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=[str(kind["quality"]) for kind in KINDS])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_one_poisoned_pod_changes_nothing_for_249_others(text, kind):
    expected = beside_a_harmless_pod(kind)
    found, round_, granted = decided([*HEALTHY, bystander(dict.fromkeys(KEYS, text), kind)])
    assert found == expected
    assert expected
    assert not round_.failed
    assert set(granted.cpus) == {"uid-bound"}


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=[str(kind["quality"]) for kind in KINDS])
def test_one_pod_with_amounts_that_are_none_is_left_out_alone(kind):
    """The API server stores no such pod; a kubelet that ran one would not stop the agent."""
    odd = {"cpu": "many", "memory": "x", "kubernetes.io/batch-cpu": "y"}
    poisoned = bystander({}, kind, requests=odd, limits=odd)
    made = planner.Planner(
        catalogue.catalogue(windows.Windows(1.0), strategy_settings.Pressure()),
        GATES,
        {},
        planner.Mode.ENFORCE,
    )
    complete = node_slo.of_spec(SPEC)
    picture = state.NodeState(
        at=0,
        thresholds=slo_settings.thresholds(complete),
        pods=(*HEALTHY, poisoned),
        processors=MACHINE,
    )
    found = made.step(
        catalogue.Look(picture, slo_settings.read(complete), time_series.Histories(), 0.0)
    )
    assert not found.failed
    assert {key for pods in found.skipped.values() for key in pods} <= {"default/zz-tenant"}
    others = {one.group.partition("/")[0] for one in found.wanted}
    assert {pod.group for pod in HEALTHY if pod.qos.value in ("LS", "BE")} <= others
