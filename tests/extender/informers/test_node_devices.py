"""Devices reach the cluster state with their node; a bad edit and the status change nothing."""

import pytest

from api import names
from api.koordinator import devices
from domain.devices import inventory
from extender.informers.nodes import node_devices
from extender.state import deltas
from tests.extender.clusters import node_feeding
from tests.extender.clusters.device_cluster import DeviceCluster, device, gpu

WRITTEN = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device"}


@pytest.fixture
def feeding():
    return node_feeding.Feeding(node_devices.Reader(), deltas.DEVICE, WRITTEN)


def test_devices_are_told_with_their_node(feeding):
    raw = device("n1", gpu(0), gpu(1, health=False))
    feeding.put(raw)
    (told,) = feeding.told
    assert (told.kind, told.key, told.node) == (deltas.DEVICE, "n1", "n1")
    assert told.after == inventory.read(devices.read_device(raw))
    feeding.put(device("n1", gpu(0)))
    assert feeding.told[-1].before == told.after


def test_who_holds_what_is_no_change(feeding):
    feeding.put(device("n1", gpu(0)))
    entry = {"namespace": "default", "name": "p", "minors": [0]}
    feeding.put(device("n1", gpu(0)), status={"allocations": [{"type": "gpu", "entries": [entry]}]})
    feeding.put(device("n1", gpu(0)), status={"allocations": "nonsense"})
    assert len(feeding.told) == 1


def test_an_edit_that_cannot_be_read_leaves_the_last_one_in_force(feeding, caplog):
    feeding.put(device("n1", gpu(0)))
    feeding.put({"metadata": {"name": "n1"}, "spec": {"devices": [{"type": 3, "health": "no"}]}})
    assert len(feeding.told) == 1
    assert "node=n1" in caplog.text
    feeding.put(device("n1", gpu(0, health=False)))
    assert len(feeding.told) == 2


def test_a_first_device_that_cannot_be_read_is_a_flaw(feeding):
    assert feeding.put({"metadata": {"name": "n1"}, "spec": {"devices": [{"type": 3}]}})
    assert feeding.told == [] or feeding.told[-1].after is None


def test_no_amount_of_a_device_is_too_large_for_the_figures_of_a_node():
    """Two of them, each with the largest amount that an API server takes."""
    cluster = DeviceCluster()
    cluster.node()
    one, other = gpu(0), gpu(1)
    for name in one["resources"]:
        one["resources"][name] = other["resources"][name] = "9223372036854775807"
    cluster.devices(device("n1", one, other))
    assert cluster.bind(cluster.pod("a", {names.NVIDIA_GPU: "1"})) == ""
