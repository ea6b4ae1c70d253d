"""Devices reach the cluster state with their node; a bad edit and the status change nothing."""

import json

import pytest

from api.koordinator import devices
from domain.devices import inventory
from extender.informers import node_devices, node_objects
from extender.state import cluster_state, deltas, ledger
from kube.client import wire
from kube.informers import store
from tests.extender.device_cluster import device, gpu


class Feeding:
    """A store of Devices, fed as a watch would."""

    def __init__(self):
        self.cluster = cluster_state.ClusterState((), ("cpu",))
        self.told = []
        self.cluster.followers.append(self.told.append)
        self.reader = node_devices.Reader()
        self.reader.known = self.store = store.Store()
        node_objects.connect(self.store, ledger.Ledger(self.cluster), deltas.DEVICE)
        self.version = 0

    def put(self, raw, **more):
        self.version += 1
        kind = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device"}
        metadata = {**raw["metadata"], "uid": "uid-n1", "resourceVersion": str(self.version)}
        whole = {**kind, **raw, **more, "metadata": metadata}
        line = json.dumps({"type": "MODIFIED", "object": whole}).encode()
        event = wire.Reader(dict, self.reader.read).event(line)
        self.store.put(event.item.meta, event.item.value)
        return event.item.flaw


@pytest.fixture
def feeding():
    return Feeding()


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
