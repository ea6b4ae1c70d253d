"""Objects of one node, fed to the cluster state as a watch would."""

import json

from extender.informers.nodes import node_objects
from extender.state import cluster_state, ledger
from kube.client import wire
from kube.informers import store


class Feeding:
    """A store of objects of a kind, and the state that follows it."""

    def __init__(self, reader, kind, written):
        """Take the reader of the kind, its name among deltas, and its apiVersion and kind."""
        self.cluster = cluster_state.ClusterState((), ("cpu",))
        self.told = []
        self.cluster.followers.append(self.told.append)
        self.reader, self._written = reader, written
        self.reader.known = self.store = store.Store()
        node_objects.connect(self.store, ledger.Ledger(self.cluster), kind)
        self.version = 0

    def put(self, raw, **more):
        """Take in an object of node n1; returns why it cannot be read, if so."""
        self.version += 1
        named = {"name": "n1", "uid": "uid-n1", "resourceVersion": str(self.version)}
        whole = {
            **self._written,
            **raw,
            **more,
            "metadata": {**raw.get("metadata", {}), **named},
        }
        line = json.dumps({"type": "MODIFIED", "object": whole}).encode()
        event = wire.Reader(dict, self.reader.read).event(line)
        self.store.put(event.item.meta, event.item.value)
        return event.item.flaw
