"""The ClusterNetworkTopology named default, watched for plug-ins as the layers of the network."""

import logging
from typing import Any, Final

from api import names, resources
from api.koordinator import topology
from domain.topology import layers
from extender.state import deltas, ledger
from kube.informers import informer_set, reflector, store

logger = logging.getLogger(__name__)

NAME: Final = names.DEFAULT_NETWORK_TOPOLOGY
Networks = store.Store[layers.Layers]


def add(members: informer_set.InformerSet) -> Networks:
    """Watch the one object that counts; where its CRD is not installed there is none."""
    reader = Reader()
    found = members.add(
        reflector.Projection(
            resources.CLUSTER_NETWORK_TOPOLOGIES,
            dict,
            reader.read,
            fields=f"metadata.name={NAME}",
        )
    )
    reader.known = found
    return found


def connect(watched: Networks, books: ledger.Ledger) -> None:
    """Apply every change of the layers; a status that was written is none."""

    def apply(change: store.Change[layers.Layers]) -> None:
        if change.old != change.new:
            kind = deltas.CLUSTER_NETWORK_TOPOLOGY
            books.cluster.apply(deltas.ObjectDelta(kind, change.key, change.old, change.new))

    watched.listen(apply)


class Reader:
    """Reads layers; an edit that leaves no chain of them keeps the last one in force."""

    def __init__(self) -> None:
        self.known: Networks = store.Store()

    def read(self, raw: dict[str, Any]) -> layers.Layers:
        """Return the layers; raises where they form no chain and none were known."""
        try:
            # Only what people write: the status may be large, and another component writes it.
            spec: dict[str, Any] = {key: raw[key] for key in ("metadata", "spec") if key in raw}
            return layers.read(topology.read_cluster_network_topology(spec).spec)
        except store.UNREADABLE as error:
            last = self.known.get(raw["metadata"]["name"])
            if last is None:
                raise
            logger.warning(
                "ClusterNetworkTopology cannot be read and stays as it was name=%s error=%s",
                raw["metadata"]["name"],
                str(error)[:200],
            )
            return last
