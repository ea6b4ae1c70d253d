"""On which cpus online containers run."""

import dataclasses
import json

import msgspec
import pytest

from agent import edits, state
from agent.hooks import cpuset
from api import qos

KEY = "scheduling.koordinator.sh/resource-status"
CPUSET, QUOTA = edits.Role.CPUSET, edits.Role.CPU_QUOTA
POOLS = cpuset.Pools({0: frozenset({0, 1}), 1: frozenset({4, 5})})
NOTHING = cpuset.Placement()
BE, LS, LSR, NONE, SYSTEM = qos.QoS.BE, qos.QoS.LS, qos.QoS.LSR, qos.QoS.NONE, qos.QoS.SYSTEM


@pytest.mark.parametrize(
    ("named", "kubernetes_qos", "placed", "known", "expected"),
    [
        (LSR, "Guaranteed", cpuset.Placement("2-3"), POOLS, "2-3"),
        (LSR, "Guaranteed", cpuset.Placement("2-3"), None, "2-3"),
        (LS, "Burstable", NOTHING, None, None),
        (LS, "Burstable", cpuset.Placement(nodes=(1,)), POOLS, "4-5"),
        (BE, "BestEffort", cpuset.Placement(nodes=(1,)), POOLS, ""),
        (SYSTEM, "Burstable", NOTHING, dataclasses.replace(POOLS, system=frozenset({7})), "7"),
        (SYSTEM, "Burstable", NOTHING, POOLS, "0-1,4-5"),
        (LS, "Burstable", NOTHING, dataclasses.replace(POOLS, static_cpu_manager=True), "0-1,4-5"),
        (NONE, "Burstable", NOTHING, dataclasses.replace(POOLS, static_cpu_manager=True), None),
        (NONE, "BestEffort", NOTHING, POOLS, ""),
        (NONE, "Burstable", NOTHING, POOLS, "0-1,4-5"),
    ],
    ids=[
        "bound",
        "bound before anything is known",
        "nothing known",
        "on a NUMA node",
        "batch on a NUMA node",
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
        pods=(bound, placed("ls"), placed("kata-less", annotations={KEY: "{"})),
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
        "host/nginx": "1,4-7",
    }
    quotas = {edit.group: edit.value for edit in found.wanted if edit.role is QUOTA}
    assert quotas == {"bound": "-1", "bound/app": "-1"}
    assert "1 pods have cpus of their own, 5 cpus are shared" in found.reason
    assert "kata-less" in found.reason


def test_pods_in_machines_of_their_own_and_batch_pods_are_left_alone(now, placed):
    kata = placed("kata", annotations={KEY: '{"cpuset":"2-3"}'})
    spec = msgspec.structs.replace(kata.pod.spec, runtime_class_name="kata")
    kata = dataclasses.replace(kata, pod=msgspec.structs.replace(kata.pod, spec=spec))
    batch = placed("batch", quality="BE", annotations={KEY: '{"cpuset":"2-3"}'})
    found = cpuset.reconcile(dataclasses.replace(now, pods=(kata, batch), host_applications=()))
    assert {(edit.role, edit.group) for edit in found.wanted} == {(CPUSET, "batch/app")}


def test_quotas_stay_where_asked(now):
    assert not [e for e in cpuset.reconcile(now, keep_quota=True).wanted if e.role is QUOTA]


def test_nobody_is_told_what_everybody_has(now, placed):
    free = dataclasses.replace(now, pods=(placed("ls"),), reserved=state.Reserved())
    assert cpuset.reconcile(free).wanted == ()


def test_nothing_is_decided_before_the_machine_is_known(now):
    found = cpuset.reconcile(dataclasses.replace(now, processors=()))
    assert not found.decided


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
    assert cpuset.placement(written).nodes == (1, 2)
    assert cpuset.placement(None) == NOTHING


@pytest.mark.parametrize("written", ["{", '{"cpuset":"x"}', '{"numaNodeResources":[{"node":"x"}]}'])
def test_an_unreadable_placement_is_an_error(written):
    with pytest.raises(cpuset.StatusError, match=KEY):
        cpuset.placement(written)
