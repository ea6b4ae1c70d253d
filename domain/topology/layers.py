"""The layers of a ClusterNetworkTopology, and where they place one node. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from api.koordinator import topology

ROOT: Final = "ClusterTopologyLayer"
"""The built-in layer of the cluster itself; its one domain has an empty name."""
LEAF: Final = "NodeTopologyLayer"
"""The built-in layer of nodes."""
FIELD: Final = "spec.networkTopologySpec"
MOST_LAYERS: Final = 16
"""Layers that a chain may have, those of nodes and of the cluster included."""

Path = tuple[str, ...]
"""Names of the domains around a node from the top down, without the cluster and the node."""


class Fault(NamedTuple):
    """Why a list of layers forms no chain from the nodes to the cluster."""

    field: str
    text: str
    """What is wrong, and how to put it right."""

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


class Layer(msgspec.Struct, frozen=True):
    """One layer between the cluster and its nodes, such as that of racks."""

    name: str
    keys: tuple[str, ...]
    """Node labels whose value names the domain; the first that is not empty counts."""

    def domain(self, labels: Mapping[str, str]) -> str:
        """Return the domain that a node's labels name, empty where none does."""
        return next((labels[key] for key in self.keys if labels.get(key)), "")


class Layers(msgspec.Struct, frozen=True):
    """All layers, linked from the cluster down to the nodes."""

    inner: tuple[Layer, ...] = ()
    """From the top down, without the cluster and the nodes."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all layers by level: 0 is the cluster, the last one the nodes."""
        return (ROOT, *(layer.name for layer in self.inner), LEAF)

    @property
    def depth(self) -> int:
        """Return the level of nodes."""
        return len(self.inner) + 1

    def level(self, name: str) -> int | None:
        """Return the level of a layer, None where there is none of this name."""
        names = self.names
        return names.index(name) if name in names else None

    def path(self, node: str, labels: Mapping[str, str]) -> Path | None:
        """Return the domains around a node; None where a label is missing.

        In the layer directly above the nodes, a node without the label has a domain of its own.
        """
        found = [layer.domain(labels) for layer in self.inner]
        if found and not found[-1]:
            found[-1] = node
        return tuple(found) if all(found) else None


def read(spec: topology.NetworkSpec) -> Layers:
    """Link the layers from the nodes upwards; ValueError with the first fault of a broken chain."""
    listed = spec.network_topology_spec
    fault = next(faults(listed), None)
    if fault is not None:
        raise ValueError(str(fault))
    by_name = {layer.topology_layer: layer for layer in listed}
    inner: list[Layer] = []
    above = by_name[LEAF].parent_topology_layer
    while above and above != ROOT:
        inner.append(Layer(above, by_name[above].label_key))
        above = by_name[above].parent_topology_layer
    return Layers(tuple(reversed(inner)))


def faults(layers: Sequence[topology.Layer]) -> Iterator[Fault]:
    """Yield everything that keeps layers from forming one chain down to the nodes."""
    parents: dict[str, str] = {}
    for index, layer in enumerate(layers):
        name, field = layer.topology_layer, f"{FIELD}[{index}].topologyLayer"
        if not name:
            yield Fault(field, "Required value: name the layer, such as BlockLayer")
        elif name == ROOT:
            yield Fault(field, f'Invalid value: "{name}": it is built in; leave this entry out')
        elif name in parents:
            yield Fault(field, f'Duplicate value: "{name}": give each layer a name of its own')
        parents.setdefault(name, layer.parent_topology_layer or ROOT)
    if len(layers) > MOST_LAYERS - 1:
        yield Fault(FIELD, f"Too many: {len(layers)}: list at most {MOST_LAYERS - 1} layers")
    if LEAF not in parents:
        yield Fault(
            FIELD,
            f'Required value: one layer has to be {LEAF}; add {{"topologyLayer": "{LEAF}", '
            '"parentTopologyLayer": "…"} with the lowest of your layers as its parent',
        )
        return
    for index, layer in enumerate(layers):
        parent = layer.parent_topology_layer or ROOT
        if parent != ROOT and parent not in parents:
            yield Fault(
                f"{FIELD}[{index}].parentTopologyLayer",
                f'Not found: "{parent}": name a layer of this list, or leave it out for the '
                "cluster",
            )
    yield from _outside(parents)


def _outside(parents: Mapping[str, str]) -> Iterator[Fault]:
    """Yield what is wrong with the chain above the nodes."""
    chain, name = set[str](), LEAF
    while name in parents and name not in chain:
        chain.add(name)
        name = parents[name]
    if name in chain:
        yield Fault(
            FIELD,
            f"Invalid value: {name} is above itself; leave parentTopologyLayer out in the topmost "
            "layer",
        )
    elif beside := sorted(parents.keys() - chain - {ROOT}):
        yield Fault(
            FIELD,
            f"Invalid value: {', '.join(beside)} not between the nodes and the cluster; the "
            "layers form one chain: let each be the parentTopologyLayer of one other",
        )


def remarks(layers: Sequence[topology.Layer]) -> Iterator[Fault]:
    """Yield what is allowed and most likely a mistake."""
    lowest = next((one.parent_topology_layer for one in layers if one.topology_layer == LEAF), "")
    known: dict[str, str] = {}
    for index, layer in enumerate(layers):
        name, field = layer.topology_layer, f"{FIELD}[{index}].labelKey"
        if name == LEAF:
            if layer.label_key:
                yield Fault(field, "nodes are named by themselves; the labels are not read")
            continue
        if not any(layer.label_key):
            consequence = (
                "each node is a domain by itself" if name == lowest else "no node is in the tree"
            )
            yield Fault(field, f"{name} names no label of nodes, so {consequence}; name one")
        for key in layer.label_key:
            if key and known.setdefault(key, name) != name:
                yield Fault(field, f"label {key} names the domains of {known[key]} already")
