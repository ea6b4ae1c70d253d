"""What the NodeResourceTopology of a node says of its CPUs and NUMA nodes."""

import json
from typing import Any

import pytest

from domain.numa import hint_merge, node_topology
from tests import processor_time

CPUS = [{"id": n, "core": n % 4, "socket": 0, "node": n % 4 // 2 * 8} for n in range(8)]


def _object(notes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    notes = {"node.koordinator.sh/cpu-topology": {"detail": CPUS}} | (notes or {})
    texts = {name: one if isinstance(one, str) else json.dumps(one) for name, one in notes.items()}
    zones = [
        {"name": f"node-{node}", "type": "Node", "resources": _resources(cpu, "8Gi")}
        for node, cpu in ((8, "4"), (0, "4"))
    ]
    return {
        "metadata": {"annotations": texts},
        "topologyPolicies": ["None"],
        "zones": zones,
    } | fields


def _resources(cpu: str, memory: str) -> list[dict[str, str]]:
    amounts = {"cpu": cpu, "memory": memory}
    return [
        {"name": name, "capacity": text, "allocatable": text, "available": text}
        for name, text in amounts.items()
    ]


def test_zones_are_known_by_their_ids() -> None:
    found = node_topology.read(_object())
    assert [node for node, _ in found.zones] == [0, 8]
    assert dict(found.cpus.nodes) == {0: 0b00110011, 8: 0b11001100}
    assert dict(found.zones)[8] == (("cpu", 4000), ("memory", 8 << 30))


@pytest.mark.parametrize(
    ("notes", "reserved"),
    [
        pytest.param({}, 0, id="nothing"),
        pytest.param(
            {"kubelet.koordinator.sh/cpu-manager-policy": {"reservedCPUs": "0-1"}},
            0b11,
            id="kubelet",
        ),
        pytest.param(
            {
                "node.koordinator.sh/pod-cpu-allocs": [
                    {"uid": "a", "cpuset": "2", "managedByKubelet": True},
                    {"uid": "b", "cpuset": "3"},
                ]
            },
            0b100,
            id="pods-of-the-kubelet",
        ),
        pytest.param(
            {"node.koordinator.sh/reservation": {"reservedCPUs": "7"}}, 1 << 7, id="reservation"
        ),
        pytest.param(
            {"node.koordinator.sh/system-qos-resource": {"cpuset": "4"}}, 1 << 4, id="system"
        ),
        pytest.param(
            {"node.koordinator.sh/system-qos-resource": {"cpuset": "4", "cpusetExclusive": False}},
            0,
            id="system-shares",
        ),
        pytest.param({"node.koordinator.sh/pod-cpu-allocs": "null"}, 0, id="null"),
        pytest.param({"node.koordinator.sh/reservation": "[{"}, 0, id="unreadable"),
        pytest.param(
            {"node.koordinator.sh/reservation": {"reservedCPUs": "0-9999"}}, 0, id="no-cpu-list"
        ),
    ],
)
def test_reserved_cpus_come_from_four_places(notes: dict[str, Any], reserved: int) -> None:
    found = node_topology.read(_object(notes))
    assert found.reserved == reserved
    for node, amounts in found.zones:
        inside = (reserved & found.cpus.nodes[node]).bit_count()
        assert dict(amounts)["cpu"] == 4000 - 1000 * inside


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        pytest.param("SingleNUMANodePodLevel", hint_merge.Policy.SINGLE_NUMA_NODE, id="single"),
        pytest.param("SingleNUMANodeContainerLevel", hint_merge.Policy.NONE, id="by-container"),
        pytest.param("Restricted", hint_merge.Policy.RESTRICTED, id="restricted"),
    ],
)
def test_policy_of_the_kubelet(written: str, policy: hint_merge.Policy) -> None:
    assert node_topology.read(_object(topologyPolicies=[written])).policy is policy


def test_whole_cores_of_the_static_cpu_manager() -> None:
    manager = {"policy": "static", "options": {"full-pcpus-only": "true"}}
    found = node_topology.read(_object({"kubelet.koordinator.sh/cpu-manager-policy": manager}))
    assert found.full_pcpus_only
    assert not node_topology.read(_object()).full_pcpus_only


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param({}, id="empty"),
        pytest.param(
            {"metadata": {"annotations": {"node.koordinator.sh/cpu-topology": "{"}}}, id="bad"
        ),
        pytest.param(
            {"zones": [{"name": "node-1"}, 7, None, {"name": "x", "type": "Node"}]}, id="zones"
        ),
        pytest.param({"zones": [{"name": "node-0", "type": "Pool"}]}, id="another-type"),
        pytest.param({"zones": [{"name": "node-64", "type": "Node"}]}, id="id-too-large"),
        pytest.param({"topologyPolicies": [{}, 7]}, id="policies"),
    ],
)
def test_what_cannot_be_read_counts_as_absent(raw: dict[str, Any]) -> None:
    assert node_topology.read(raw) == node_topology.NodeTopology()


def test_no_more_zones_than_can_be_aligned() -> None:
    zones = [
        {"name": f"node-{n}", "type": "Node", "resources": _resources("1", "1")} for n in range(20)
    ]
    assert len(node_topology.read(_object(zones=zones)).zones) == 8


def test_reserved_cpus_that_no_machine_has_cost_nothing() -> None:
    listed = ",".join(str(2**31 - 1 - at) for at in range(9))
    raw = _object({"kubelet.koordinator.sh/cpu-manager-policy": {"reservedCPUs": f"0,{listed}"}})
    with processor_time.below(0.1):
        assert node_topology.read(raw).reserved == 1
