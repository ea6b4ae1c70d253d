"""Check ClusterNetworkTopologies: their layers must form one chain down to the nodes."""

import itertools
from typing import Final

from api import names
from api.koordinator import topology
from domain.topology import layers
from webhook import review

_MOST_NAMED: Final = 16
"""Faults, and remarks, that one answer names."""


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Follow the layers from the nodes upwards; warn of what has no effect."""
    found = topology.read_cluster_network_topology(asked.object).spec.network_topology_spec
    faults = tuple(map(str, itertools.islice(layers.faults(found), _MOST_NAMED)))
    name = review.section(asked.object, "metadata").get("name")
    warnings = [f"metadata.name: only the object {names.DEFAULT_NETWORK_TOPOLOGY} is looked at"] * (
        name not in (None, names.DEFAULT_NETWORK_TOPOLOGY)
    )
    remarks = map(str, itertools.islice(layers.remarks(found), _MOST_NAMED))
    return review.Findings(faults, (*warnings, *remarks))
