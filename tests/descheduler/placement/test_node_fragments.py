"""What is free of devices and CPUs, and which pods hold the rest."""

import json

import msgspec
import pytest

from api import names
from descheduler.model import fragments
from descheduler.placement import node_fragments
from domain.devices import dynamic_resources
from domain.numa import node_topology
from extender.state import claims, deltas
from tests.extender.clusters import device_cluster, numa_cluster

SHARED = {"koordinator.sh/gpu-core": "30", "koordinator.sh/gpu-memory-ratio": "60"}


@pytest.fixture
def machines():
    found = device_cluster.DeviceCluster()
    found.node("n1")
    found.devices(device_cluster.eight())
    found.node("plain")
    return found


def of(cluster, node="n1"):
    return node_fragments.NodeFragments(cluster.state)[node]


def test_a_device_that_nobody_uses_is_free_as_a_whole(machines):
    found = of(machines)
    assert found.devices["gpu"] == dict.fromkeys(range(8), 100)
    assert found.devices["rdma"] == dict.fromkeys(range(4), 100)
    assert not found.held


def test_the_amount_that_is_scarcest_counts(machines):
    machines.bind(machines.pod("a", SHARED))
    machines.bind(machines.pod("b", {names.NVIDIA_GPU: "2"}))
    found = of(machines)
    assert sorted(found.devices["gpu"].values()) == [0, 0, 40, 100, 100, 100, 100, 100]
    assert [*found.held["uid-a"].devices["gpu"].values()] == [60]
    assert [*found.held["uid-b"].devices["gpu"].values()] == [100, 100]
    assert found.held["uid-a"].cpus == {}


def test_devices_that_offer_nothing_are_no_fragments(machines):
    gpus = [device_cluster.gpu(0, health=False), device_cluster.gpu(1), device_cluster.gpu(2)]
    machines.devices(device_cluster.device("n1", *gpus))
    elsewhere = dynamic_resources.Elsewhere({dynamic_resources.uuid("GPU-2"): "default/claim"})
    change = deltas.ObjectDelta(deltas.DEVICES_ELSEWHERE, "n1", None, elsewhere, node="n1")
    machines.state.apply(change)
    assert of(machines).devices == {"gpu": {1: 100}}


def test_nodes_without_devices_are_left_out(machines):
    found = node_fragments.NodeFragments(machines.state)
    assert list(found) == ["n1"]
    assert len(found) == 1
    with pytest.raises(KeyError):
        found["plain"]
    assert found.get("gone") is None


def test_a_device_that_has_gone_keeps_its_holder(machines):
    machines.bind(machines.pod("a", {names.NVIDIA_GPU: "1"}))
    held = next(iter(of(machines).held["uid-a"].devices["gpu"]))
    left = [device_cluster.gpu(minor) for minor in range(8) if minor != held]
    machines.devices(device_cluster.device("n1", *left))
    found = of(machines)
    assert held not in found.devices["gpu"]
    assert found.held["uid-a"].devices == {"gpu": {held: 100}}


def test_reservations_take_devices_and_are_no_pods(machines):
    machines.bind(machines.pod("a", {names.NVIDIA_GPU: "1"}))
    claim = machines.state.claim("uid-a")
    other = msgspec.structs.replace(
        claim, id=claims.reservation("uid-a"), kind=claims.ClaimKind.RESERVATION
    )
    machines.state.apply(deltas.ClaimDelta("uid-a", claim, None))
    machines.state.apply(deltas.ClaimDelta(other.id, None, other))
    found = of(machines)
    assert sorted(found.devices["gpu"].values())[:2] == [0, 100]
    assert not found.held


def test_cpus_are_counted_by_zone():
    cluster = numa_cluster.NumaCluster()
    raw = numa_cluster.topology(cores=2)
    notes = {names.ANNOTATION_NODE_RESERVATION: json.dumps({"reservedCPUs": "0"})}
    raw["metadata"]["annotations"] |= notes
    described = node_topology.read(raw)
    cluster.state.apply(deltas.ObjectDelta(deltas.NODE_TOPOLOGY, "n1", None, described, "n1"))
    whole = of(cluster)
    assert whole.cpus_of_zone == {0: 3, 1: 4}
    assert whole.cpus == whole.cpus_of_zone
    assert whole.devices == {}
    cluster.node("n1", cpu="8")
    assert cluster.place("a", "2")
    found = of(cluster)
    assert sum(found.cpus.values()) == 5
    zone, count = next(iter(found.held["uid-a"].cpus.items()))
    assert (count, found.cpus[zone]) == (2, found.cpus_of_zone[zone] - 2)


def test_a_node_that_reports_nothing_of_use_is_empty_handed():
    cluster = numa_cluster.NumaCluster()
    nothing = node_topology.NodeTopology()
    cluster.state.apply(deltas.ObjectDelta(deltas.NODE_TOPOLOGY, "n1", None, nothing, "n1"))
    assert of(cluster) == fragments.Fragments()
