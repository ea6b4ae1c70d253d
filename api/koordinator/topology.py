"""ClusterNetworkTopology and NodeResourceTopology: how the cluster and its nodes are built."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from api.kubernetes import meta
from api.wire import base


class Layer(base.Model):
    """One layer of the network."""

    topology_layer: base.Text
    """Name of the layer; NodeTopologyLayer is the lowest."""
    parent_topology_layer: base.Text = ""
    """Layer above; the cluster when empty."""
    label_key: tuple[base.Text, ...] = ()
    """Node labels whose value names the domain; the first that is not empty counts."""


class NetworkSpec(base.Model):
    """The layers of the network."""

    network_topology_spec: tuple[Layer, ...]
    """The layers; they form one chain."""


class Domain(base.Model):
    """One domain of a layer."""

    topology_layer: base.Text
    """The layer."""
    topology_name: base.Text
    """The domain."""


class DomainDetail(base.Model):
    """What is below one domain."""

    topology_info: Domain
    """The domain."""
    parent_topology_info: Domain | None = None
    """The domain above."""
    child_topology_layer: base.Text = ""
    """The layer below."""
    child_topology_names: tuple[base.Text, ...] = ()
    """The domains below, unless they are nodes."""
    node_num: base.Int32
    """Nodes below."""


class NetworkStatus(base.Model):
    """The network as found."""

    detail_status: tuple[DomainDetail, ...] = ()
    """The domains."""
    conditions: Annotated[tuple[meta.Condition, ...], Field(max_length=64)] = ()
    """Accepted, NodesCovered, NamesUnique."""


class ClusterNetworkTopology(meta.Object):
    """How nodes are connected; the object named default counts."""

    spec: NetworkSpec
    """The layers."""
    status: NetworkStatus = NetworkStatus()
    """The network as found."""


class Attribute(base.Model):
    """A named value."""

    name: base.Text
    """The name."""
    value: base.Text
    """The value."""


class Cost(base.Model):
    """How far another zone is."""

    name: base.Text
    """The other zone."""
    value: base.Int64
    """The distance."""


class ZoneResource(base.Model):
    """What a zone has of one resource."""

    name: base.Text
    """The resource."""
    capacity: base.Quantity
    """What there is."""
    allocatable: base.Quantity
    """What pods may use."""
    available: base.Quantity
    """What is left."""


class Zone(base.Model):
    """One NUMA node."""

    name: base.Text
    """node- and the number of the NUMA node."""
    type: base.Text
    """Node."""
    parent: base.Text = ""
    """The zone that contains it."""
    costs: tuple[Cost, ...] = ()
    """How far other zones are."""
    attributes: tuple[Attribute, ...] = ()
    """More about it."""
    resources: tuple[ZoneResource, ...] = ()
    """What it has."""

    @property
    def number(self) -> int | None:
        """Return the number of the NUMA node, none if the name does not tell."""
        digits = self.name.removeprefix("node-")
        return int(digits) if digits.isascii() and digits.isdigit() else None


class FirstNodeResourceTopology(meta.Object):
    """How a node is built, first version."""

    topology_policies: tuple[base.Text, ...]
    """How the kubelet aligns resources."""
    zones: tuple[Zone, ...]
    """The NUMA nodes."""


class NodeResourceTopology(meta.Object):
    """How a node is built; carries the node's name."""

    topology_policies: tuple[base.Text, ...] = ()
    """How the kubelet aligns resources."""
    zones: tuple[Zone, ...]
    """The NUMA nodes."""
    attributes: tuple[Attribute, ...] = Field(default=())
    """More about the node."""


def read_cluster_network_topology(raw: Mapping[str, Any]) -> ClusterNetworkTopology:
    """Read a ClusterNetworkTopology."""
    return base.read(ClusterNetworkTopology, raw)


def read_node_resource_topology(raw: Mapping[str, Any]) -> NodeResourceTopology:
    """Read a NodeResourceTopology of either version."""
    return base.read(NodeResourceTopology, raw)
