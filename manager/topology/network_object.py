"""What is kept of a ClusterNetworkTopology: its layers, and what its status says. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from api.koordinator import topology
from domain.topology import layers as chains
from kube.informers import store


class NetworkObject(msgspec.Struct, frozen=True):
    """A ClusterNetworkTopology as far as its status is concerned."""

    name: str
    uid: str
    layers: chains.Layers | None
    """None: they form no chain, or the object cannot be read."""
    fault: str = ""
    """Why there are none."""
    written: Any = None
    """``status.detailStatus`` as it stands."""


def projected(raw: Mapping[str, Any]) -> NetworkObject:
    """Project a ClusterNetworkTopology; broken layers leave the status as it is."""
    metadata = raw["metadata"]
    name, uid = str(metadata["name"]), str(metadata.get("uid", ""))
    status = raw.get("status")
    written = status.get("detailStatus") if isinstance(status, Mapping) else None
    try:
        spec: dict[str, Any] = {key: raw[key] for key in ("metadata", "spec") if key in raw}
        layers = chains.read(topology.read_cluster_network_topology(spec).spec)
    except store.UNREADABLE as error:
        return NetworkObject(name, uid, None, str(error)[:500], written)
    return NetworkObject(name, uid, layers, written=written)
