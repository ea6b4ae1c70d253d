"""Annotations of pods loosen what their class has only as far as an administrator lets them."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import catalogue, eviction
from agent.decide.strategies import cpu_burst, memory_qos
from agent.hooks import oom_score, resctrl
from agent.hooks.cpu import cpu_burst as bursts
from agent.hooks.cpu import group_identity
from agent.hooks.network import terway_qos
from agent.model import slo_settings, state, strategy_settings
from agent.store import time_series
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain.cluster_settings import node_slo
from tests.agent import conftest

GIBI = 1 << 30


def said(**spec):
    return slo_settings.read(node_slo.of_spec(spec))


DEFAULTS = said()
WIDE = {
    "cpuBurstPercent": 2000,
    "cfsQuotaBurstPercent": 500,
    "cfsQuotaBurstPeriodSeconds": 60,
    "minLimitPercent": 50,
    "lowLimitPercent": 80,
    "memoryPriority": 12,
    "wmarkMinAdj": -25,
    "groupIdentity": 2,
    "oomScoreAdj": -500,
    "catRangeStartPercent": 0,
    "catRangeEndPercent": 60,
    "mbaPercent": 100,
}


def pod(key="", written=None, **changes):
    text = written if isinstance(written, str) else json.dumps(written)
    annotations = {key: text} if key else {}
    return conftest.Placed(annotations=annotations)(**changes)


@pytest.mark.parametrize(
    ("written", "node", "limits", "expected"),
    [
        ({"cfsQuotaBurstPercent": 100_000_000}, {}, {}, (1000, 300, -1)),
        ({"cpuBurstPercent": 10_000}, {}, {}, (1000, 300, -1)),
        ({"cpuBurstPercent": 2**63 - 1}, {}, WIDE, (2000, 300, -1)),
        ({"cpuBurstPercent": 100, "cfsQuotaBurstPercent": 120}, {}, {}, (100, 120, -1)),
        ({"cfsQuotaBurstPercent": 900}, {"cfsQuotaBurstPercent": 600}, {}, (1000, 600, -1)),
        ({"cfsQuotaBurstPeriodSeconds": -1}, {"cfsQuotaBurstPeriodSeconds": 30}, WIDE,
         (1000, 300, 60)),
        ({"cfsQuotaBurstPeriodSeconds": 10}, {"cfsQuotaBurstPeriodSeconds": 30}, WIDE,
         (1000, 300, 10)),
        ({"cpuBurstPercent": -5}, {}, {}, (0, 300, -1)),
    ],
    ids=["quota", "burst", "wide", "tighter", "the node has more", "for ever", "shorter",
         "negative"],
)  # fmt: skip
def test_bursts(written, node, limits, expected):
    wanted = said(cpuBurstStrategy={"policy": "auto", **node}, podOverrideLimits=limits)
    found = bursts.of_pod(wanted.burst, pod(names.ANNOTATION_CPU_BURST, written))
    assert found == strategy_settings.Burst("auto", *expected)


def test_a_tenth_of_a_core_never_becomes_a_hundred_cores():
    """Two cores of quota grew to 147 by an annotation alone."""
    placed = pod(
        names.ANNOTATION_CPU_BURST,
        {"policy": "auto", "cfsQuotaBurstPercent": 100_000_000},
        limits={"cpu": "100m"},
        quota_us=10_000,
        container={"quota_us": 10_000, "throttled": 0.9},
    )
    quota = 10_000
    for second in range(60):
        container = msgspec.structs.replace(placed.containers[0], quota_us=quota)
        now = state.NodeState(
            at=0,
            pods=(msgspec.structs.replace(placed, containers=(container,), quota_us=quota),),
            processors=tuple(state.Processor(cpu, cpu, 0, 0) for cpu in range(16)),
        )
        averages = cpu_burst.Averages(0.1)
        decided, _ = cpu_burst.decide(now, DEFAULTS.burst, averages, {}, float(second))
        values = {edit.key: edit.value for edit in decided.wanted}
        quota = int(values.get(("cpu-quota", "a/app"), quota))
    assert quota == 30_000


MEMORY = names.ANNOTATION_MEMORY_QOS


@pytest.mark.parametrize("quality", ["LSE", "LSR", "LS", "BE", ""])
@pytest.mark.parametrize(
    "written",
    [
        {"minLimitPercent": 100_000, "lowLimitPercent": 2**63 - 1, "priority": 12},
        {"policy": "auto", "minLimitPercent": 100_000, "wmarkMinAdj": -25},
        {"policy": "auto", "priority": 99, "wmarkMinAdj": -99},
    ],
)
def test_no_pod_protects_more_memory_than_it_requests(quality, written):
    placed = pod(MEMORY, written, quality=quality, requests={"memory": "16Mi"})
    found = memory_qos.of_pod(placed, {}, DEFAULTS.overrides)
    batch = quality == "BE"
    assert (found.min_percent or 0) <= (0 if batch else 100)
    assert (found.low_percent or 0) <= (0 if batch else 100)
    assert not found.priority
    assert found.wmark_min_adj is None or found.wmark_min_adj >= (50 if batch else -25)


def test_sixteen_mebibytes_never_become_sixteen_gibibytes(node):
    placed = pod(MEMORY, {"minLimitPercent": 100_000}, requests={"memory": "16Mi"})
    groups = {"Guaranteed": "kubepods", "Burstable": "kubepods/burstable", "BestEffort": "be"}
    now = state.NodeState(at=0, node=node, pods=(placed,), qos_groups=groups)
    found = memory_qos.plan(now, {}, DEFAULTS.overrides)
    for group in ("a", "a/app", "kubepods", "kubepods/burstable"):
        assert found[group]["memory-min"] == 16 << 20


@pytest.mark.parametrize("percent", [-1, -(2**63)])
def test_a_negative_share_lowers_the_protection_of_nobody_else(node, percent):
    other = conftest.Placed(requests={"memory": "1Gi"})(
        "b", annotations={MEMORY: '{"minLimitPercent":100}'}
    )
    placed = pod(MEMORY, {"minLimitPercent": percent}, requests={"memory": "1Gi"})
    now = state.NodeState(
        at=0, node=node, pods=(placed, other), qos_groups={"Guaranteed": "kubepods"}
    )
    assert memory_qos.plan(now, {}, DEFAULTS.overrides)["kubepods"]["memory-min"] == GIBI


BATCH = strategy_settings.Memory(0, 0, 80, 75, 20, 50, 0, 0, 0)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"policy": "none"}, (80, 75)),
        ({"policy": "auto"}, (80, 75)),
        ({"throttlingPercent": 0, "wmarkRatio": 0}, (80, 75)),
        ({"throttlingPercent": 200, "wmarkRatio": 99}, (80, 75)),
        ({"throttlingPercent": 40, "wmarkRatio": 50}, (40, 50)),
    ],
    ids=["none", "auto", "off", "later", "earlier"],
)
def test_best_effort_is_reclaimed_no_later_than_its_class(written, expected):
    placed = pod(MEMORY, written, quality="BE", kubernetes_qos="BestEffort")
    found = memory_qos.of_pod(placed, {qos.QoS.BE: BATCH}, DEFAULTS.overrides)
    assert (found.throttling_percent, found.wmark_ratio) == expected


SHARES = st.none() | st.integers(-(2**63), 2**63 - 1)


@given(
    st.sampled_from(["LSR", "LS", "BE", "SYSTEM", ""]),
    st.sampled_from(["", "auto", "none", "default"]),
    st.tuples(*[SHARES] * 6),
    st.booleans(),
)
def test_whatever_is_written_protection_stays_within_the_ceiling(quality, policy, values, wide):
    fields = ("minLimitPercent", "lowLimitPercent", "throttlingPercent")
    fields += ("wmarkRatio", "wmarkMinAdj", "priority")
    written = {name: n for name, n in zip(fields, values, strict=True) if n is not None}
    limits = said(podOverrideLimits=WIDE if wide else {}).overrides
    placed = pod(MEMORY, {**written, "policy": policy}, quality=quality)
    found = memory_qos.of_pod(placed, {qos.QoS.BE: BATCH}, limits) or strategy_settings.Memory()
    most = (50, 80, 12) if wide else (100, 100, 0)
    most = (0, 0, most[2]) if quality == "BE" else most
    assert (found.min_percent or 0) <= most[0]
    assert (found.low_percent or 0) <= most[1]
    assert (found.priority or 0) <= most[2]
    if quality == "BE" and written:
        assert found.throttling_percent is None or 0 < found.throttling_percent <= 80


@pytest.mark.parametrize(
    ("written", "highest", "expected"),
    [
        ({"enable": True, "groupIdentity": 2}, {}, 1),
        ({"enable": True, "groupIdentity": 2}, {"groupIdentity": 2}, 2),
        ({"enable": True, "groupIdentity": -1}, {}, -1),
        ({"enable": False}, {}, 0),
    ],
    ids=["beyond its class", "let", "lower", "off"],
)
def test_identities(written, highest, expected):
    spec = {"lsClass": {"cpuQOS": {"enable": True, "groupIdentity": 1}}}
    wanted = said(resourceQOSStrategy=spec, podOverrideLimits=highest)
    kernel = state.Kernel(frozenset({"cpu-identity"}))
    now = state.NodeState(at=0, kernel=kernel, pods=(pod(names.ANNOTATION_CPU_QOS, written),))
    (entry,) = (
        one
        for one in catalogue.catalogue(None, strategy_settings.Pressure())
        if one.name == "group-identity"
    )
    decided = entry.decide(catalogue.Look(now, wanted, time_series.Histories(), 0.0))
    values = {edit.group: edit.value for edit in decided.wanted if edit.role == "cpu-identity"}
    assert values["a"] == values["a/app"] == str(expected)
    assert group_identity.rule(wanted.classes).highest == group_identity.HIGHEST


@pytest.mark.parametrize(
    ("kubernetes_qos", "more", "own"),
    [
        ("BestEffort", {}, 1000),
        ("Burstable", {"requests": {"memory": "4Gi"}}, 750),
        ("Burstable", {"requests": {"memory": "16Gi"}}, 3),
        ("Burstable", {}, 999),
        ("Guaranteed", {}, -997),
    ],
)
@pytest.mark.parametrize("single", [True, False], ids=["for all", "for one"])
@pytest.mark.parametrize(("asked", "lowest"), [(-1000, None), (-1000, -500), (1000, None)])
def test_no_score_is_below_that_of_the_kubelet(
    node, kubernetes_qos, more, own, single, asked, lowest
):
    key = names.ANNOTATION_OOM_SCORE_ADJ if single else names.ANNOTATION_OOM_SCORE_ADJ_SPEC
    written = str(asked) if single else {"app": asked}
    placed = pod(key, written, kubernetes_qos=kubernetes_qos, **more)
    limits = {} if lowest is None else {"podOverrideLimits": {"oomScoreAdj": lowest}}
    now = state.NodeState(at=0, node=node, pods=(placed,))
    (edit,) = oom_score.reconcile(now, said(**limits).overrides).wanted
    floor = own if lowest is None else min(own, lowest)
    assert int(edit.value) == max(asked, floor)


def test_no_score_is_set_before_the_node_is_known():
    placed = pod(names.ANNOTATION_OOM_SCORE_ADJ, "500")
    assert not oom_score.reconcile(
        state.NodeState(at=0, pods=(placed,)), DEFAULTS.overrides
    ).decided


CACHES = state.Caches((0, 1), 0xFFFFF, "GenuineIntel")
FULL, OF_BATCH = "L3:0=fffff;1=fffff;", "L3:0=3f;1=3f;"


@pytest.mark.parametrize(
    ("quality", "written", "limits", "cache", "speed"),
    [
        ("BE", {"llc": {"schemata": {"range": [0, 100]}}}, {}, OF_BATCH, "MB:0=100;1=100;"),
        ("BE", {"mb": {"schemata": {"percent": 50}}}, {}, OF_BATCH, "MB:0=50;1=50;"),
        ("BE", {}, {}, OF_BATCH, "MB:0=100;1=100;"),
        ("BE", {"llc": {"schemata": {"range": [50, 90]}}}, {}, OF_BATCH, "MB:0=100;1=100;"),
        ("BE", {"llc": {"schemata": {"range": [0, 100]}}}, WIDE, "L3:0=fff;1=fff;",
         "MB:0=100;1=100;"),
        ("BE", {"llc": {"schemataPerCache": [{"cacheID": 0, "range": [0, 100]}]}}, {}, OF_BATCH,
         "MB:0=100;1=100;"),
        ("BE", {"llc": {"schemata": {"range": [0, 10]}}}, {}, "L3:0=3;1=3;", "MB:0=100;1=100;"),
        ("LS", {"llc": {"schemata": {"range": [0, 100]}}}, {}, FULL, "MB:0=100;1=100;"),
        ("BE", {"mb": {"schemata": {"percent": 9000}}}, {}, OF_BATCH, "MB:0=100;1=100;"),
    ],
    ids=["all", "bandwidth alone", "nothing", "beside", "let", "of one cache", "less", "online",
         "too much bandwidth"],
)  # fmt: skip
def test_shares_of_the_cache(quality, written, limits, cache, speed):
    placed = pod(names.ANNOTATION_RESCTRL, written, quality=quality)
    now = state.NodeState(at=0, pods=(placed,), caches=CACHES)
    wanted = said(podOverrideLimits=limits)
    decided = resctrl.decide(now, wanted.classes.cache, most=wanted.overrides)
    values = {e.role.value: e.value for e in decided.wanted if e.group == "koordlet-uid-a"}
    assert (values["resctrl-l3"], values["resctrl-mb"]) == (cache, speed)


def test_terway_is_told_no_more_than_the_class_and_the_node_have():
    written = {"ingressLimit": "999G", "egressLimit": "999G"}
    spec = {"beClass": {"networkQOS": {"enable": True, "egressLimit": 10}}}
    wanted = said(resourceQOSStrategy=spec, systemStrategy={"totalNetworkBandwidth": "8G"})
    for quality, expected in (("BE", 100_000_000), ("LS", 1_000_000_000)):
        placed = pod(names.ANNOTATION_NETWORK_QOS, written, quality=quality)
        listed, _ = terway_qos.pods(state.NodeState(at=0, pods=(placed,)), wanted)
        assert listed["uid-a"]["qosConfig"]["egressBandwidth"] == expected
        assert listed["uid-a"]["qosConfig"]["ingressBandwidth"] == 1_000_000_000


@pytest.mark.parametrize(
    ("namespace", "limits", "expected"),
    [
        ("default", {}, qos.QoS.NONE),
        ("kube-system", {}, qos.QoS.SYSTEM),
        ("koordinator-system", {}, qos.QoS.SYSTEM),
        ("default", {"systemNamespaces": ["default"]}, qos.QoS.SYSTEM),
        ("kube-system", {"systemNamespaces": ["default"]}, qos.QoS.NONE),
    ],
)
def test_the_class_of_the_system_counts_where_it_belongs(
    host, new_pod, namespace, limits, expected
):
    plain = new_pod("p")
    meta = msgspec.structs.replace(
        plain.metadata, namespace=namespace, labels={names.LABEL_QOS: "SYSTEM"}
    )
    host.tree.add_pod("p", "Burstable", ["c-p"])
    host.know(
        pods=(msgspec.structs.replace(plain, metadata=meta),),
        thresholds=state.Thresholds(False),
        enforced=said(podOverrideLimits=limits),
    )
    picture = host.step()
    (found,) = picture.pods
    assert found.qos is expected
    assert found.effective_qos is (expected or qos.QoS.LS)
    assert bool(picture.problems.get(f"class of pod {namespace}/name-p")) == (not expected)


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("kubernetes_qos", ["BestEffort", "Burstable"])
@pytest.mark.parametrize("written", ["[]", "{", "[" * 3000])
def test_best_effort_may_refuse_eviction_only_where_it_is_let(
    host, new_pod, allowed, kubernetes_qos, written
):
    placed = new_pod("p", kubernetes_qos, **{names.ANNOTATION_EVICTION_POLICY: written})
    host.tree.add_pod("p", kubernetes_qos, ["c-p"])
    host.know(
        pods=(placed,),
        thresholds=state.Thresholds(False),
        enforced=said(podOverrideLimits={"refuseEviction": allowed}),
    )
    (found,) = host.step().pods
    batch = kubernetes_qos == "BestEffort"
    assert eviction.allows(found, "BEMemoryEvict") == (batch and not allowed)


def test_what_nobody_says_has_a_default():
    assert DEFAULTS.overrides.burst == strategy_settings.Burst(
        cpu_percent=1000, quota_percent=300, quota_period_seconds=-1
    )
    assert DEFAULTS.overrides.system_namespaces == {"kube-system", names.NAMESPACE}
    assert core.Pod().spec.priority_class_name == ""
