"""The layers of the network reach the cluster state; a bad edit keeps the last ones in force."""

import pytest

from domain.topology import layers
from extender.informers import network_topology
from extender.state import cluster_state, deltas, ledger
from kube.informers import store
from tests.domain.topology import networks

SPEC = [one.model_dump(by_alias=True) for one in networks.LISTED]
FLAT = [{"topologyLayer": layers.LEAF}]


class Feeding:
    """A store of what the API server sends, followed by a state."""

    def __init__(self):
        self.books = ledger.Ledger(cluster_state.ClusterState((), ("cpu",)))
        self.reader = network_topology.Reader()
        self.store = self.reader.known = store.Store()
        self.version = 0
        network_topology.connect(self.store, self.books)

    def put(self, spec, **more):
        self.version += 1
        metadata = {"name": "default", "uid": "u", "resourceVersion": str(self.version)}
        found = self.reader.read({"metadata": metadata, "spec": spec, **more})
        self.store.put(store.Meta("default", "u", self.version), found)

    @property
    def told(self):
        delta = self.books.cluster.told(deltas.CLUSTER_NETWORK_TOPOLOGY, "default")
        return delta.after if delta is not None else None


@pytest.fixture
def feeding():
    return Feeding()


def test_layers_come_change_and_go(feeding):
    assert feeding.told is None
    feeding.put({"networkTopologySpec": SPEC})
    assert feeding.told == networks.LAYERS
    feeding.put({"networkTopologySpec": FLAT})
    assert feeding.told == layers.Layers()
    feeding.store.remove("default", feeding.version + 1)
    assert feeding.told is None


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"networkTopologySpec": SPEC[:2]}, id="a broken chain"),
        pytest.param({"networkTopologySpec": 7}, id="no list"),
        pytest.param({}, id="no layers"),
        pytest.param({"networkTopologySpec": [*SPEC, SPEC[0]]}, id="a layer twice"),
    ],
)
def test_a_bad_edit_keeps_the_last_layers(feeding, caplog, bad):
    with pytest.raises(store.UNREADABLE):
        feeding.put(bad)
    assert feeding.told is None
    feeding.put({"networkTopologySpec": SPEC})
    feeding.put(bad)
    assert feeding.told == networks.LAYERS
    assert "name=default" in caplog.text


def test_the_status_is_not_read(feeding):
    seen = []
    feeding.books.cluster.followers.append(seen.append)
    feeding.put({"networkTopologySpec": SPEC})
    feeding.put({"networkTopologySpec": SPEC}, status={"detailStatus": [{"nodeNum": "many"}]})
    assert len(seen) == 1
