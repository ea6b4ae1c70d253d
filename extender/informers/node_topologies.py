"""NodeResourceTopologies, watched for plug-ins as objects of their nodes."""

from typing import Any

from api import resources
from domain.numa import node_topology
from kube.informers import informer_set, reflector, store

Topologies = store.Store[node_topology.NodeTopology]


def add(members: informer_set.InformerSet) -> Topologies:
    """Watch NodeResourceTopologies; where their CRD is not installed there are none."""
    return members.add(reflector.Projection(resources.NODE_RESOURCE_TOPOLOGIES, dict, _read))


def _read(raw: dict[str, Any]) -> node_topology.NodeTopology:
    return node_topology.read(raw)
