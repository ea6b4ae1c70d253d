"""NodeResourceTopologies, watched for plug-ins as objects of their nodes."""

import logging
from typing import Any

from api import resources
from domain.numa import node_topology
from kube.informers import informer_set, reflector, store

logger = logging.getLogger(__name__)

Topologies = store.Store[node_topology.NodeTopology]


def add(members: informer_set.InformerSet) -> Topologies:
    """Watch NodeResourceTopologies; where their CRD is not installed there are none."""
    reader = Reader()
    found = members.add(reflector.Projection(resources.NODE_RESOURCE_TOPOLOGIES, dict, reader.read))
    reader.known = found
    return found


class Reader:
    """Reads NodeResourceTopologies; an edit that cannot be read leaves the last one in force.

    Without its CPU topology a node has no CPUs to give, and without an annotation that reserves
    CPUs those of the system would be given to pods.
    """

    def __init__(self) -> None:
        self.known: Topologies = store.Store()

    def read(self, raw: dict[str, Any]) -> node_topology.NodeTopology:
        """Return the topology of a node; raises where nothing readable was known of it.

        In the first object of a node, an annotation that cannot be read counts as absent.
        """
        last = self.known.get(raw["metadata"]["name"])
        try:
            void = node_topology.unreadable(raw)
            if last is None or not void:
                return _told(raw, node_topology.read(raw), void)
            error = ", ".join(void)
        except store.UNREADABLE as raised:
            if last is None:
                raise
            error = str(raised)
        logger.warning(
            "NodeResourceTopology cannot be read and stays as it was node=%s error=%s",
            raw["metadata"]["name"],
            error[:200],
        )
        return last


def _told(
    raw: dict[str, Any], found: node_topology.NodeTopology, void: tuple[str, ...]
) -> node_topology.NodeTopology:
    if void:
        logger.warning(
            "annotations of a NodeResourceTopology cannot be read and count as absent "
            "node=%s annotations=%s",
            raw["metadata"]["name"],
            ",".join(void),
        )
    return found
