"""Check ClusterNetworkTopologies: their layers must form one chain down to the nodes."""

from collections.abc import Iterator, Sequence
from typing import Final

from api import names
from api.koordinator import topology
from webhook import review

ROOT: Final = "ClusterTopologyLayer"
LEAF: Final = "NodeTopologyLayer"
FIELD: Final = "spec.networkTopologySpec"


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Follow the layers from the nodes upwards."""
    found = topology.read_cluster_network_topology(asked.object)
    faults = tuple(_faults(found.spec.network_topology_spec))
    name = review.section(asked.object, "metadata").get("name")
    warnings = [f"metadata.name: only the object {names.DEFAULT_NETWORK_TOPOLOGY} is looked at"] * (
        name not in (None, names.DEFAULT_NETWORK_TOPOLOGY)
    )
    return review.Findings(faults, tuple(warnings))


def _faults(layers: Sequence[topology.Layer]) -> Iterator[str]:
    parents: dict[str, str] = {}
    for index, layer in enumerate(layers):
        if layer.topology_layer in parents:
            yield f'{FIELD}[{index}].topologyLayer: Duplicate value: "{layer.topology_layer}"'
        parents.setdefault(layer.topology_layer, layer.parent_topology_layer or ROOT)
    if LEAF not in parents:
        yield f"{FIELD}: Required value: one layer has to be {LEAF}"
        return
    for index, layer in enumerate(layers):
        parent = layer.parent_topology_layer or ROOT
        if parent != ROOT and parent not in parents:
            yield (
                f'{FIELD}[{index}].parentTopologyLayer: Not found: "{parent}": name a layer of '
                "this list, or leave it out for the cluster"
            )
    chain, layer_name = set[str](), LEAF
    while layer_name in parents and layer_name not in chain:
        chain.add(layer_name)
        layer_name = parents[layer_name]
    if layer_name in chain:
        yield f"{FIELD}: Invalid value: {layer_name} is above itself"
    elif beside := sorted(parents.keys() - chain):
        yield (
            f"{FIELD}: Invalid value: {', '.join(beside)} not between the nodes and the cluster; "
            "the layers form one chain"
        )
