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
    conditions: Any = None
    """``status.conditions`` as they stand."""
    generation: int | None = None
    """Of what was read."""


def projected(raw: Mapping[str, Any]) -> NetworkObject:
    """Project a ClusterNetworkTopology; broken layers leave the status as it is."""
    metadata = raw["metadata"]
    status = raw.get("status")
    said: Mapping[str, Any] = status if isinstance(status, Mapping) else {}
    found = NetworkObject(
        str(metadata["name"]),
        str(metadata.get("uid", "")),
        None,
        written=said.get("detailStatus"),
        conditions=said.get("conditions"),
        generation=metadata.get("generation"),
    )
    try:
        spec: dict[str, Any] = {key: raw[key] for key in ("metadata", "spec") if key in raw}
        layers = chains.read(topology.read_cluster_network_topology(spec).spec)
    except store.UNREADABLE as error:
        return msgspec.structs.replace(found, fault=str(error)[:500])
    return msgspec.structs.replace(found, layers=layers)
