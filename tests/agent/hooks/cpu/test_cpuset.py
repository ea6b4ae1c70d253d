"""On which cpus online containers run."""

import json

import msgspec
import pytest

from agent.hooks.cpu import cpuset
from agent.model import edits, state
from agent.model.cpus import resource_status, shared_pools
from agent.report import node_resource_topology
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain.cpus import cpulists

KEY = "scheduling.koordinator.sh/resource-status"
CPUSET, QUOTA = edits.Role.CPUSET, edits.Role.CPU_QUOTA
SHARED = (shared_pools.Pool(0, 0, frozenset({0, 1})), shared_pools.Pool(0, 1, frozenset({4, 5})))
BATCH = (shared_pools.Pool(0, 0, frozenset({0, 1})), shared_pools.Pool(0, 1, frozenset({4, 5, 6})))
POOLS = cpuset.Known(shared_pools.Pools(SHARED, BATCH))
MANAGED = msgspec.structs.replace(POOLS, managed=True)
SYSTEMS = msgspec.structs.replace(POOLS, system=frozenset({7}))
NOTHING = resource_status.Placement()
BE, LS, LSR, NONE, SYSTEM = qos.QoS.BE, qos.QoS.LS, qos.QoS.LSR, qos.QoS.NONE, qos.QoS.SYSTEM


@pytest.mark.parametrize(
    ("named", "kubernetes_qos", "placed", "known", "expected"),
    [
        (LSR, "Guaranteed", resource_status.Placement("2-3"), POOLS, "2-3"),
        (LSR, "Guaranteed", resource_status.Placement("2-3"), None, "2-3"),
        (LS, "Burstable", NOTHING, None, None),
        (LS, "Burstable", resource_status.Placement(nodes=(1,)), POOLS, "4-5"),
        (LS, "Burstable", resource_status.Placement(nodes=(0, 1)), POOLS, "0-1,4-5"),
        (SYSTEM, "Burstable", resource_status.Placement(nodes=(1,)), SYSTEMS, "4-5"),
        (BE, "BestEffort", resource_status.Placement(nodes=(1,)), POOLS, ""),
        (BE, "BestEffort", resource_status.Placement(nodes=(1,)), MANAGED, "4-6"),
        (BE, "BestEffort", NOTHING, MANAGED, ""),
        (BE, "Burstable", NOTHING, POOLS, ""),
        (SYSTEM, "Burstable", NOTHING, SYSTEMS, "7"),
        (SYSTEM, "Burstable", NOTHING, POOLS, "0-1,4-5"),
        (
            LS,
            "Burstable",
            NOTHING,
            msgspec.structs.replace(POOLS, static_cpu_manager=True),
            "0-1,4-5",
        ),
        (NONE, "Burstable", NOTHING, msgspec.structs.replace(POOLS, static_cpu_manager=True), None),
        (NONE, "BestEffort", NOTHING, POOLS, ""),
        (NONE, "Burstable", NOTHING, POOLS, "0-1,4-5"),
    ],
    ids=[
        "bound",
        "bound before anything is known",
        "nothing known",
        "on a NUMA node",
        "on two NUMA nodes",
        "system on a NUMA node",
        "batch on a NUMA node",
        "managed batch on a NUMA node",
        "managed batch",
        "batch with a limit",
        "system cpus",
        "no system cpus",
        "shared under a static kubelet",
        "left to a static kubelet",
        "best effort",
        "no class",
    ],
)
def test_a_container_gets_cpus(named, kubernetes_qos, placed, known, expected):
    assert cpuset.of_container(named, kubernetes_qos, placed, known) == expected


@pytest.fixture
def now(placed):
    bound = placed(
        "bound",
        quality="LSR",
        kubernetes_qos="Guaranteed",
        annotations={KEY: '{"cpuset":"2-3"}'},
        cpus=frozenset({2, 3}),
        sandbox="bound/pause",
    )
    apps = (state.HostApplication("nginx", False, qos="LS", group="host/nginx"),)
    return state.NodeState(
        at=0,
        pods=(bound, placed("ls"), placed("odd", annotations={KEY: "{"})),
        host_applications=apps,
        processors=tuple(state.Processor(cpu, cpu // 2, 0, cpu // 4) for cpu in range(8)),
        reserved=state.Reserved(cpus=frozenset({0})),
    )


def test_bound_pods_have_their_cpus_alone_and_no_quota(now):
    found = cpuset.reconcile(now)
    cpus = {edit.group: edit.value for edit in found.wanted if edit.role is CPUSET}
    assert cpus == {
        "bound/app": "2-3",
        "bound/pause": "2-3",
        "ls/app": "1,4-7",
        # An annotation that nobody can read gives no cpus, and takes nobody out of the others'.
        "odd/app": "1,4-7",
        "host/nginx": "1,4-7",
    }
    quotas = {edit.group: edit.value for edit in found.wanted if edit.role is QUOTA}
    assert quotas == {"bound": "-1", "bound/app": "-1"}
    assert "1 pod has cpus of its own, 5 cpus are shared" in found.reason
    assert "odd" in found.reason


def test_pods_in_machines_of_their_own_and_batch_pods_are_left_alone(now, placed):
    kata = placed("kata", annotations={KEY: '{"cpuset":"2-3"}'})
    spec = msgspec.structs.replace(kata.pod.spec, runtime_class_name="kata")
    kata = msgspec.structs.replace(kata, pod=msgspec.structs.replace(kata.pod, spec=spec))
    batch = placed("batch", quality="BE", annotations={KEY: '{"cpuset":"2-3"}'})
    found = cpuset.reconcile(msgspec.structs.replace(now, pods=(kata, batch), host_applications=()))
    assert found.wanted == ()


def test_quotas_stay_where_asked(now):
    assert not [e for e in cpuset.reconcile(now, keep_quota=True).wanted if e.role is QUOTA]


def test_system_pods_run_on_the_cpus_of_the_system_also_where_they_share_them(now, placed):
    kept = state.Reserved(system_qos=state.SystemQos(frozenset({6, 7}), exclusive=False))
    pods = (placed("sys", quality="SYSTEM"), placed("ls"))
    found = cpuset.reconcile(msgspec.structs.replace(now, pods=pods, reserved=kept))
    assert {edit.group: edit.value for edit in found.wanted} == {"sys/app": "6-7"}


def test_batch_pods_stay_on_their_numa_nodes_where_that_is_asked(now, placed):
    status = json.dumps({"numaNodeResources": [{"node": 1, "resources": {names.BATCH_CPU: "1k"}}]})
    batch = placed("batch", quality="BE", kubernetes_qos="BestEffort", annotations={KEY: status})
    picture = msgspec.structs.replace(now, pods=(*now.pods, batch))
    assert cpuset.reconcile(picture).wanted == cpuset.reconcile(now).wanted
    found = cpuset.reconcile(picture, managed=True).wanted
    assert {edit.group: edit.value for edit in found if edit.group == "batch/app"} == {
        "batch/app": "4-7"
    }


def test_what_is_reported_as_shared_is_what_containers_get(now):
    node = msgspec.convert({"metadata": {"name": "n", "uid": "u"}}, core.Node)
    picture = msgspec.structs.replace(
        now,
        node=node,
        numa=(state.NumaNode(0, 1), state.NumaNode(1, 1)),
        kubelet=state.KubeletCpus(),
        pods_known=True,
    )
    told = node_resource_topology.merged(node_resource_topology.report(picture), None)["metadata"][
        "annotations"
    ]
    listed = json.loads(told[names.ANNOTATION_CPU_SHARED_POOLS])
    told_cpus = frozenset().union(*(cpulists.parse(pool["cpuset"]) for pool in listed))
    written = {e.group: e.value for e in cpuset.reconcile(picture).wanted if e.role is CPUSET}
    assert cpulists.parse(written["ls/app"]) == told_cpus
    assert cpulists.parse(written["host/nginx"]) == told_cpus


def test_nobody_is_told_what_everybody_has(now, placed):
    free = msgspec.structs.replace(now, pods=(placed("ls"),), reserved=state.Reserved())
    assert cpuset.reconcile(free).wanted == ()


def test_nothing_is_decided_before_the_machine_is_known(now):
    found = cpuset.reconcile(msgspec.structs.replace(now, processors=()))
    assert not found.decided


def test_nothing_is_shared_before_the_kubelet_has_told_what_it_handed_out(now):
    found = cpuset.reconcile(msgspec.structs.replace(now, kubelet=None))
    cpus = {edit.group: edit.value for edit in found.wanted if edit.role is CPUSET}
    assert cpus == {"bound/app": "2-3", "bound/pause": "2-3"}
    assert "until the kubelet says" in found.reason


def test_a_placement_names_the_numa_nodes_that_give_cpu():
    written = json.dumps(
        {
            "numaNodeResources": [
                {"node": 0, "resources": {"memory": "1Gi"}},
                {"node": 1, "resources": {"cpu": "2"}},
                {"node": 2, "resources": {"kubernetes.io/batch-cpu": "500"}},
            ]
        }
    )
    assert resource_status.read(written).nodes == (1, 2)
    assert resource_status.read(None) == NOTHING


@pytest.mark.parametrize("written", ["{", '{"cpuset":"x"}', '{"numaNodeResources":[{"node":"x"}]}'])
def test_an_unreadable_placement_is_an_error(written):
    with pytest.raises(resource_status.StatusError, match=KEY):
        resource_status.read(written)
