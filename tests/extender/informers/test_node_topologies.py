"""NodeResourceTopologies reach the cluster state with their node; a bad edit changes nothing."""

import pytest

from domain.numa import node_topology
from extender.informers.nodes import node_topologies
from extender.state import deltas
from tests.extender.clusters import node_feeding, numa_cluster

CPU_TOPOLOGY = "node.koordinator.sh/cpu-topology"
SYSTEM = "node.koordinator.sh/system-qos-resource"
MANAGER = "kubelet.koordinator.sh/cpu-manager-policy"


WRITTEN = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology"}


@pytest.fixture
def feeding():
    return node_feeding.Feeding(node_topologies.Reader(), deltas.NODE_TOPOLOGY, WRITTEN)


def noted(**texts):
    raw = numa_cluster.topology(notes={SYSTEM: {"cpuset": "0-1"}})
    return {**raw, "metadata": {"annotations": {**raw["metadata"]["annotations"], **texts}}}


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(noted(**{CPU_TOPOLOGY: "{"}), id="cpus are no JSON"),
        pytest.param(noted(**{CPU_TOPOLOGY: '{"detail":[]}'}), id="no cpus"),
        pytest.param(noted(**{SYSTEM: '{"cpuset":'}), id="reserved cpus are no JSON"),
        pytest.param(noted(**{SYSTEM: '{"cpuset":"0-x"}'}), id="reserved cpus are no list"),
        pytest.param(noted(**{MANAGER: '{"policy":7}'}), id="policy of the kubelet"),
        pytest.param({**noted(), "zones": 3}, id="zones"),
        pytest.param({"metadata": {"annotations": [1]}}, id="annotations"),
    ],
)
def test_an_edit_that_cannot_be_read_leaves_the_last_one_in_force(feeding, caplog, bad):
    feeding.put(noted())
    (first,) = feeding.told
    assert first.after == node_topology.read(noted())
    assert not feeding.put(bad)
    assert len(feeding.told) == 1
    assert "node=n1" in caplog.text
    feeding.put(noted(**{SYSTEM: '{"cpuset":"0-3"}'}))
    assert feeding.told[-1].after.reserved == 0b1111


@pytest.mark.parametrize(
    "name",
    [SYSTEM, MANAGER, "node.koordinator.sh/reservation", "node.koordinator.sh/pod-cpu-allocs"],
)
def test_null_says_that_there_is_nothing(feeding, caplog, name):
    """Agents write it where nothing is set apart; it is no reason to keep the last object."""
    feeding.put(noted())
    feeding.put(noted(**{SYSTEM: "{}", name: "null"}))
    assert feeding.told[-1].after.reserved == 0
    assert not caplog.text


def test_an_annotation_of_the_first_object_that_cannot_be_read_counts_as_absent(feeding, caplog):
    feeding.put(noted(**{SYSTEM: "nonsense"}))
    assert feeding.told[-1].after.reserved == 0
    assert feeding.told[-1].after.cpus.valid
    assert SYSTEM in caplog.text


def test_a_first_object_of_another_shape_is_a_flaw(feeding):
    assert feeding.put({**noted(), "zones": 3})
    assert feeding.told == []
