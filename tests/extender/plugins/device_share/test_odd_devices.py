"""Device objects that no agent writes: what is odd in one counts as absent and harms no pod."""

import json

import pytest

from api import names
from tests import processor_time
from tests.extender.clusters.device_cluster import NAME, DeviceCluster, device, gpu

TWO = {names.NVIDIA_GPU: "2"}


def bound(*found, table=None, asked=None):
    """Return a cluster in which a pod was bound to a node with these devices."""
    notes = {} if table is None else {names.ANNOTATION_GPU_PARTITIONS: json.dumps(table)}
    cluster = DeviceCluster()
    cluster.node()
    cluster.devices(device("n1", *found, annotations=notes))
    assert cluster.bind(cluster.pod("one", asked or TWO)) == ""
    return cluster


def shown(cluster):
    """Return the pod as another extender reads it, from what was written on it."""
    claim = cluster.state.claim("uid-one")
    return cluster.pod("one", TWO, annotations=cluster.plugin.encode(claim.allocations[NAME]))


@pytest.mark.parametrize(
    "minors",
    [
        pytest.param([], id="none"),
        pytest.param([0], id="fewer"),
        pytest.param([0, 0], id="twice"),
        pytest.param([0, 1, 2], id="more"),
    ],
)
def test_a_pod_gets_as_many_gpus_as_it_asks_for_whatever_partitions_name(minors):
    cluster = bound(*map(gpu, range(4)), table={"2": [{"minors": minors}]})
    assert cluster.minors("one") == [0, 1]
    assert shown(cluster).unreadable == ()
    required = cluster.pod("two", TWO, annotations={names.ANNOTATION_GPU_PARTITION_SPEC: "{}"})
    assert "Unsupported number of GPU" in cluster.refusal(required)


def test_partitions_that_no_machine_has_as_many_of_do_not_count():
    with processor_time.below(1.0):
        cluster = bound(*map(gpu, range(4)), table={"2": [{"minors": [2, 3]}] * 1024})
    assert cluster.minors("one") == [2, 3]
    cluster = bound(*map(gpu, range(4)), table={"2": [{"minors": [2, 3]}] * 1025})
    assert cluster.minors("one") == [0, 1]


def test_a_device_is_not_given_whose_number_no_record_can_name():
    cluster = bound(gpu(-1), gpu(0), gpu(4095), gpu(4096))
    assert cluster.minors("one") == [0, 4095]
    assert shown(cluster).unreadable == ()


@pytest.mark.parametrize("numa", [-2, 64, 1 << 30])
def test_the_place_of_a_device_is_unknown_on_a_numa_node_that_no_machine_has(numa):
    cluster = bound(gpu(0, numa=numa), gpu(1, numa=1), gpu(2, numa=1), gpu(3, numa=63))
    asked, view = cluster.cycle(cluster.pod("two", {names.NVIDIA_GPU: "1"}))
    found = cluster.plugin.hints(asked.prepared[NAME], view, view.rows["n1"])
    assert {one.mask for one in found["gpu"]} == {1 << 1, 1 << 63, 1 << 1 | 1 << 63}


def test_combinations_of_numa_nodes_of_thousands_of_devices_are_not_looked_at():
    cluster = bound(*(gpu(minor, numa=minor % 12) for minor in range(4096)))
    asked, view = cluster.cycle(cluster.pod("two", {names.NVIDIA_GPU: "1"}))
    found = cluster.plugin.hints(asked.prepared[NAME], view, view.rows["n1"])
    assert sorted(one.mask for one in found["gpu"]) == [*(1 << n for n in range(12)), 0xFFF]


def test_as_many_devices_as_there_can_be_offer_no_more_than_64_bits_hold():
    huge = [gpu(minor, memory=str(1 << 62)) for minor in range(4096)]
    cluster = bound(*huge)
    assert cluster.minors("one") == [0, 1]
