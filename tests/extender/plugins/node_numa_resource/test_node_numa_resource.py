"""Pods get CPUs of their own, aligned with NUMA nodes, and recorded on the pod."""

import dataclasses
import json

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from extender.framework import protocols, views
from extender.state import claims, deltas
from tests import processor_time
from tests.extender.clusters import numa_cluster
from tests.extender.clusters.numa_cluster import SPEC, STATUS, topology


@pytest.fixture
def cluster():
    found = numa_cluster.NumaCluster()
    found.node("n1", topology())
    return found


def _cpus(found):
    return json.loads(found[STATUS])["cpuset"]


def test_a_pod_of_class_lsr_gets_whole_cores(cluster):
    assert cluster.place("a", "4") == {
        STATUS: '{"cpuset":"0-1,8-9"}',
        SPEC: '{"preferredCPUBindPolicy":"FullPCPUs"}',
    }
    assert cluster.place("b", "4")[STATUS] == '{"cpuset":"4-5,12-13"}'


@pytest.mark.parametrize(
    ("more", "written"),
    [
        pytest.param({"qos": "LS"}, False, id="pods-of-class-ls-share"),
        pytest.param({"qos": ""}, False, id="pods-without-a-class-share"),
        pytest.param({"qos": "LSR", "priority": 5500}, False, id="batch-priority-shares"),
        pytest.param({"qos": "LSE"}, True, id="lse"),
        pytest.param(
            {"spec": {"preferredCPUBindPolicy": "ConstrainedBurst"}}, False, id="constrained-burst"
        ),
    ],
)
def test_who_gets_cpus_of_its_own(cluster, more, written):
    assert bool(cluster.place("a", "2", **more)) is written


@pytest.mark.parametrize(
    ("cpu", "more", "refusal"),
    [
        pytest.param("1500m", {}, "the requested CPUs must be integer", id="half-a-cpu"),
        pytest.param("17", {}, "not enough cpus available to satisfy request", id="too-many"),
        pytest.param(
            "3",
            {"spec": {"requiredCPUBindPolicy": "FullPCPUs"}},
            "node(s) requested cpus not multiple cpus per core",
            id="half-a-core",
        ),
        pytest.param(
            "9",
            {"spec": {"requiredCPUBindPolicy": "SpreadByPCPUs"}},
            "not enough cpus available to satisfy request",
            id="more-than-cores",
        ),
        pytest.param(
            "2",
            {"annotations": {SPEC: "{"}},
            "resource-spec or numa-topology-spec of the pod cannot be read; correct the annotation",
            id="unreadable",
        ),
    ],
)
def test_refusals(cluster, cpu, more, refusal):
    assert cluster.judge(cluster.pod("a", cpu, **more)) == refusal


def test_a_node_without_a_topology_binds_nobody(cluster):
    cluster.tell("n1", None)
    assert cluster.judge(cluster.pod("a", "2")) == "node(s) invalid CPU Topology"
    assert cluster.judge(cluster.pod("a", "2", qos="LS")) == ""
    assert "reports no CPU topology" in cluster.explain(cluster.pod("a", "2"))


def test_the_policy_of_a_node_binds_every_pod(cluster):
    label = {"node.koordinator.sh/cpu-bind-policy": "SpreadByPCPUs"}
    cluster.node("n1", labels=label)
    found = cluster.place("a", "4", qos="")
    assert _cpus(found) == "0-3"
    assert json.loads(found[SPEC]) == {"requiredCPUBindPolicy": "SpreadByPCPUs"}
    assert cluster.judge(cluster.pod("b", "500m", qos="")) == "the requested CPUs must be integer"
    full = {"requiredCPUBindPolicy": "FullPCPUs"}
    assert "conflicts with pod's required" in cluster.judge(cluster.pod("c", "2", spec=full))


def test_kubelet_pods_and_reserved_cpus_are_not_given(cluster):
    notes = {
        "kubelet.koordinator.sh/cpu-manager-policy": {
            "policy": "static",
            "options": {"full-pcpus-only": "true"},
            "reservedCPUs": "0,8",
        },
        "node.koordinator.sh/pod-cpu-allocs": [
            {"uid": "a", "cpuset": "1,9", "managedByKubelet": True}
        ],
    }
    cluster.tell("n1", topology(notes=notes))
    assert _cpus(cluster.place("a", "12")) == "2-7,10-15"
    sentence = cluster.explain(cluster.pod("b", "2"))
    assert "of 16, 0 are free" in sentence
    assert "12 held by pods, 4 reserved" in sentence


@pytest.mark.parametrize("ids", [(0, 1), (0, 8)], ids=["consecutive", "apart"])
def test_a_single_numa_node(ids):
    cluster = numa_cluster.NumaCluster()
    cluster.node("n1", topology(ids=ids, policies=["SingleNUMANodePodLevel"]))
    first = json.loads(cluster.place("a", "6", memory="8Gi")[STATUS])
    second = json.loads(cluster.place("b", "6", memory="8Gi")[STATUS])
    assert {one["numaNodeResources"][0]["node"] for one in (first, second)} == set(ids)
    resources = {"cpu": "6", "memory": "8Gi"}
    assert first["numaNodeResources"] == [
        {"node": first["numaNodeResources"][0]["node"], "resources": resources}
    ]
    assert "NUMA topology policy" in cluster.judge(cluster.pod("c", "4"))
    cluster.release("a")
    assert cluster.judge(cluster.pod("c", "4")) == ""


def test_policies_of_pod_and_node_have_to_agree(cluster):
    numa = {"numaTopologyPolicy": "SingleNUMANode"}
    assert "numaNodeResources" in cluster.place("a", "2", qos="LS", numa=numa)[STATUS]
    cluster.node("n1", labels={"node.koordinator.sh/numa-topology-policy": "Restricted"})
    assert cluster.judge(cluster.pod("b", "2", numa=numa)).endswith("policy not match")


def test_a_pod_wants_numa_nodes_without_pods_that_span_several():
    cluster = numa_cluster.NumaCluster()
    cluster.node("n1", topology())
    assert _cpus(cluster.place("wide", "10"))
    alone = {"numaTopologyPolicy": "SingleNUMANode"}
    assert "NUMA topology policy" in cluster.judge(cluster.pod("a", "2", numa=alone))
    shares = alone | {"singleNUMANodeExclusive": "Preferred"}
    assert cluster.judge(cluster.pod("a", "2", numa=shares)) == ""


def test_missing_zones_are_named(cluster):
    cluster.tell("n1", topology() | {"zones": []})
    cluster.node("n1", labels={"node.koordinator.sh/numa-topology-policy": "BestEffort"})
    assert cluster.judge(cluster.pod("a", "2")) == "node(s) missing NUMA resources"


@pytest.mark.parametrize(
    ("ratios", "on_topology", "memory"),
    [
        pytest.param('{"memory":1.5}', False, 48, id="amplified"),
        pytest.param('{"cpu":2}', False, 32, id="another resource"),
        pytest.param('{"memory":1.5}', True, 32, id="the topology is amplified already"),
        pytest.param('{"memory":"x"}', False, 32, id="unreadable"),
    ],
)
def test_every_resource_of_a_zone_is_amplified_by_its_own_ratio(ratios, on_topology, memory):
    key = "node.koordinator.sh/resource-amplification-ratio"
    cluster = numa_cluster.NumaCluster()
    notes = {key: json.loads(ratios)} if on_topology else None
    cluster.node("n1", topology(memory="32Gi", notes=notes), annotations={key: ratios})
    nodes = cluster.state.view().sparse(numa_cluster.NAME, 0).nodes
    assert [zone["memory"] >> 30 for zone in nodes.zones.values()] == [memory, memory]


def test_amplified_nodes_count_held_cpus_at_what_they_cost():
    cluster = numa_cluster.NumaCluster()
    ratio = {"node.koordinator.sh/resource-amplification-ratio": '{"cpu":1.5}'}
    cluster.node("n1", topology(), cpu="24", annotations=ratio)
    assert cluster.place("a", "8")
    assert cluster.judge(cluster.pod("b", "8")) == ""
    assert cluster.judge(cluster.pod("b", "12", qos="LS")) == ""
    assert cluster.judge(cluster.pod("b", "13", qos="LS")) == "Insufficient amplified cpu"
    cluster.node("n1", annotations={next(iter(ratio)): "[]"})
    assert cluster.judge(cluster.pod("b", "1")) == "node(s) invalid CPU amplification ratio"


def test_scores_prefer_what_is_free(cluster):
    cluster.node("n2", topology())
    pod = cluster.pod("a", "4")
    assert cluster.score(pod, "n1") == (75 + 98) // 2
    cluster.place("b", "8", "n1")
    assert cluster.score(pod, "n1") < cluster.score(pod, "n2")
    packed = numa_cluster.NumaCluster(
        numa_cluster.plugin(scoringStrategy={"type": "MostAllocated"})
    )
    packed.node("n1", topology())
    assert packed.score(packed.pod("a", "16")) == (100 + 1) // 2


def test_the_least_important_pods_leave(cluster):
    cluster.place("low", "8", priority=9001)
    cluster.place("high", "8", priority=9002)
    pod = cluster.pod("a", "8", priority=9003)
    assert cluster.judge(pod) == "not enough cpus available to satisfy request"
    assert cluster.victims(pod) == ("uid-low",)
    assert cluster.victims(cluster.pod("a", "8", priority=9001)).startswith("no pod of lower")
    assert cluster.victims(cluster.pod("a", "16", priority=9002)).startswith("not enough cpus")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        pytest.param('{"cpuset":"0-1"}', True, id="cpuset"),
        pytest.param("{}", False, id="nothing"),
        pytest.param('{"cpuset":"0-3"}', False, id="more-cpus-than-requested"),
        pytest.param('{"cpuset":"0-9999999"}', False, id="no-cpu-list"),
        pytest.param(
            '{"numaNodeResources":[{"node":1,"resources":{"cpu":"9"}}]}', False, id="more-cpu"
        ),
        pytest.param(
            '{"numaNodeResources":[{"node":1,"resources":{"cpu":"-1"}}]}', False, id="negative"
        ),
        pytest.param('{"numaNodeResources":[{"node":0},{"node":0}]}', False, id="twice"),
        pytest.param("[", False, id="no-json"),
    ],
)
def test_what_is_written_on_a_pod_is_read_within_its_requests(cluster, text, read):
    pod = cluster.pod("a", "2", annotations={STATUS: text}, node="n1")
    assert bool(pod.allocations) is read
    assert bool(pod.unreadable) is (not read and text != "{}")


def test_the_page_shows_who_holds_what(cluster):
    cluster.place("a", "4")
    view = cluster.state.view()
    shown = cluster.plugin.named("n1", view, {}, ())
    assert isinstance(cluster.plugin, protocols.ClusterPage)
    assert cluster.plugin.listed(view, {}, ()) == {"nodes": ["n1"]}
    assert cluster.plugin.named("other", view, {}, ()) is None
    assert shown["availableCPUs"] == "2-7,10-15"
    assert shown["allocatedCPUs"]["8"] == {
        "cpuID": 8,
        "coreID": 0,
        "nodeID": 0,
        "socketID": 0,
        "refCount": 1,
    }
    assert shown["allocatedPods"]["default/a"]["cpuset"] == "0-1,8-9"
    assert msgspec.json.encode(shown)


SHAPES = st.fixed_dictionaries(
    {
        "qos": st.sampled_from(["LSR", "LSE", "LS", ""]),
        "numa": st.sampled_from(
            [None, {"numaTopologyPolicy": "SingleNUMANode"}, {"numaTopologyPolicy": "BestEffort"}]
        ),
        "spec": st.sampled_from(
            [
                None,
                {"requiredCPUBindPolicy": "FullPCPUs"},
                {"requiredCPUBindPolicy": "SpreadByPCPUs"},
                {"preferredCPUExclusivePolicy": "PCPULevel"},
            ]
        ),
    }
)
ENDS = ("bind", "late", "fail", "delete", "restart")
STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(ENDS), SHAPES, st.sampled_from([2, 4])),
    max_size=14,
)


def _nobody_shares(cluster):
    held = 0
    for claim in cluster.state.claims_on("n1"):
        allocation = claim.allocations.get(numa_cluster.NAME)
        if allocation is not None:
            cpus = allocation.holding().cpus
            assert not held & cpus
            held |= cpus
    found = cluster.numa()
    assert found.nodes.usage.held() == held
    assert len(found.nodes.usage.levels) <= 1
    for node, zone in found.nodes.zones.items():
        for name, value in found.nodes.allocated.get(node, {}).items():
            assert value <= zone[name]


@hypothesis.given(STEPS)
@hypothesis.settings(max_examples=20, deadline=None)
def test_any_history_keeps_every_cpu_to_one_pod(steps):
    cluster = numa_cluster.NumaCluster()
    cluster.node("n1", topology())
    for number, what, shape, cpu in steps:
        name, before = f"p{number}", cluster.state.fingerprint()
        known = cluster.state.claim(f"uid-{name}")
        if what == "delete" and known is not None:
            cluster.release(name)
        elif what == "restart":
            assert cluster.state.rebuilt().fingerprint() == before
        elif known is None:
            pod = cluster.pod(name, str(cpu), **shape)
            if cluster.judge(pod):
                continue
            found = cluster.reserve(pod)
            assert not isinstance(found, str)
            assert found == cluster.reserve(pod)
            claim = cluster.hold(pod, found)
            if what == "fail":
                cluster.release(name)
                assert cluster.state.fingerprint() == before
            elif what == "late" and found is not None:
                texts = dict(cluster.plugin.encode(found))
                echo = cluster.pod(name, str(cpu), **shape | {"annotations": texts}, node="n1")
                assert echo.allocations[numa_cluster.NAME].holding() == found.holding()
                bound = msgspec.structs.replace(
                    claim, kind=claims.ClaimKind.BOUND, pod=echo, allocations=echo.allocations
                )
                cluster.state.apply(deltas.ClaimDelta(claim.id, claim, bound))
        _nobody_shares(cluster)


def test_a_thousand_nodes_are_judged_in_three_milliseconds():
    cluster = numa_cluster.NumaCluster()
    told = topology()
    for number in range(1000):
        cluster.node(f"n{number}", told)
    rows = views.every(1000)
    info = views.PodInfo.of(cluster.pod("a", "4"))
    view = cluster.state.view()
    with processor_time.below(0.003 * 5):
        for _ in range(5):
            asked = cluster.pipeline.cycle(info, view)
            outcome = cluster.pipeline.filter(asked, view, rows, 0.0)
    assert not outcome.codes.any()


@pytest.mark.parametrize(
    ("requests", "figures", "helps"),
    [
        pytest.param(
            {"cpu": "4"},
            "policy single-numa-node: Unaligned NUMA Hint cause "
            "cpu prefer [11] among [11],memory prefer [11] among [11]",
            "cpu and memory free on the same NUMA nodes of n1",
            id="only both NUMA nodes together have enough",
        ),
        pytest.param(
            {"cpu": "2", "memory": "90Gi"},
            "policy single-numa-node: Unsatisfied NUMA cpu; Unsatisfied NUMA memory",
            "more memory free on one NUMA node of n1",
            id="no NUMA nodes have enough",
        ),
    ],
)
def test_a_refusal_of_the_policy_says_which_hints_could_not_be_merged(requests, figures, helps):
    cluster = numa_cluster.NumaCluster()
    labels = {"node.koordinator.sh/numa-topology-policy": "SingleNUMANode"}
    cluster.node("n1", topology(), labels=labels)
    for name in ("a", "b"):
        cluster.place(name, "6")
    pod = cluster.pod("p", **requests)
    view = cluster.state.view()
    asked = cluster.pipeline.cycle(views.PodInfo.of(pod), view)
    refusal = cluster.pipeline.filter(asked, view, views.every(1), 0.0).refusal(0)
    found = cluster.pipeline.diagnose(asked, view, 0, refusal, 0.0)
    assert (refusal.plugin, found.figures) == ("NUMATopology", figures)
    assert helps in found.helps
    assert "a weaker topology policy of n1, or of the pod, such as BestEffort" in found.helps


@pytest.mark.parametrize(
    ("numa", "told"),
    [
        pytest.param(
            {"numaTopologyPolicy": "SingleNUMANode"},
            {
                "cpuset": "2-3,10-11", "numaNodes": "0 (cpu 4, memory 1Gi)",
                "policy": "SingleNUMANode", "others": "1: 2 CPUs free of 4 asked",
            },
            id="aligned",
        ),
        pytest.param(
            None, {"cpuset": "2-3,10-11", "others": "1: 2 CPUs free of 4 asked"}, id="cpus only"
        ),
    ],
)  # fmt: skip
def test_a_bind_records_what_was_chosen_and_why_other_numa_nodes_were_not(numa, told):
    cluster = numa_cluster.NumaCluster()
    cluster.node("n1", topology())
    cluster.place("one", "4")
    cluster.place("two", "6")
    pod = cluster.pod("p", "4", numa=numa)
    view = cluster.state.view()
    line = dataclasses.replace(cluster.pipeline, reservers=(cluster.plugin,))
    granted = line.reserve(line.cycle(views.PodInfo.of(pod), view), view, 0)
    assert granted[numa_cluster.NAME].told() == told
