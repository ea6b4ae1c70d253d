"""What is free of devices and CPUs of every node in a state of the scheduler. Pure.

Nodes are looked at when they are asked for: most rounds ask for none.
"""

import collections
from collections.abc import Iterator, Mapping

from descheduler.model import fragments
from domain.devices import dynamic_resources, inventory
from domain.numa import node_topology
from extender.plugins.device_share import allocation as device_allocation
from extender.plugins.node_numa_resource import allocation as numa_allocation
from extender.state import allocations, claims, cluster_state, deltas

_WHOLE = 100
_Described = tuple[inventory.Inventory, node_topology.NodeTopology | None]


class NodeFragments(Mapping[str, fragments.Fragments]):
    """Fragments by node, of nodes with a Device or a CPU topology, as they were when first read."""

    def __init__(self, cluster: cluster_state.ClusterState) -> None:
        kinds = (deltas.DEVICE, deltas.NODE_TOPOLOGY)
        self._cluster = cluster
        self._nodes = sorted({one.key for one in cluster.objects() if one.kind in kinds})
        self._known: dict[str, fragments.Fragments] = {}

    def __getitem__(self, node: str) -> fragments.Fragments:
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = _of(self._cluster, node)
        if found is fragments.NOTHING:
            raise KeyError(node)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._nodes if self.get(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def held(
    cluster: cluster_state.ClusterState, node: str, granted: allocations.Allocations
) -> fragments.Held:
    """Return what a pod would hold of the devices and CPUs of a node."""
    return _held(*_described(cluster, node), granted) if granted else fragments.HOLDS_NOTHING


def _described(cluster: cluster_state.ClusterState, node: str) -> _Described:
    """Return what objects say of the devices and the CPUs of a node."""
    told = cluster.told(deltas.DEVICE, node)
    known = told.after if told is not None else None
    devices = known if isinstance(known, inventory.Inventory) else inventory.NOTHING
    told = cluster.told(deltas.NODE_TOPOLOGY, node)
    described = told.after if told is not None else None
    topology = described if isinstance(described, node_topology.NodeTopology) else None
    return devices, topology


def _of(cluster: cluster_state.ClusterState, node: str) -> fragments.Fragments:
    devices, topology = _described(cluster, node)
    if devices is inventory.NOTHING and topology is None:
        return fragments.NOTHING
    there = cluster.claims_on(node)
    free, of_zone = _cpus(topology, there)
    by_pod = {
        claim.id: _held(devices, topology, claim.allocations)
        for claim in there
        if claim.allocations and claim.kind in claims.FIRM
    }
    return fragments.Fragments(
        _devices(cluster, node, devices, there),
        free,
        of_zone,
        {uid: one for uid, one in by_pod.items() if one != fragments.HOLDS_NOTHING},
    )


def _devices(
    cluster: cluster_state.ClusterState,
    node: str,
    known: inventory.Inventory,
    held: tuple[claims.Claim, ...],
) -> Mapping[str, fragments.ByMinor]:
    """Return what is free of every device that offers something, in percent."""
    told = cluster.told(deltas.DEVICES_ELSEWHERE, node)
    elsewhere = told.after if told is not None else None
    if isinstance(elsewhere, dynamic_resources.Elsewhere):
        known = inventory.without(known, elsewhere)
    uses = inventory.Uses.of(by_type for one in held if (by_type := _granted(one.allocations)))
    counted = inventory.NodeDevices.of(known, uses)
    return {
        kind: {
            minor: _percent(counted.free[kind][minor], device.total)
            for minor, device in by_minor.items()
            if any(device.total.values())
        }
        for kind, by_minor in known.devices.items()
    }


def _percent(amounts: inventory.Amounts, total: inventory.Amounts) -> int:
    """Return the smallest share of the amounts of a device."""
    shares = [_WHOLE * amounts.get(name, 0) // value for name, value in total.items() if value]
    return min(shares, default=0)


def _granted(given: allocations.Allocations) -> inventory.Allocation:
    found = given.get(device_allocation.NAME)
    return found.by_type if isinstance(found, device_allocation.Devices) else {}


def _mask(given: allocations.Allocations) -> int:
    """Return the CPUs that a pod has of its own."""
    found = given.get(numa_allocation.NAME)
    return found.holding().cpus if isinstance(found, numa_allocation.CpuAllocation) else 0


def _cpus(
    topology: node_topology.NodeTopology | None, held: tuple[claims.Claim, ...]
) -> tuple[fragments.ByZone, fragments.ByZone]:
    """Return free CPUs by zone, and how many there are without the reserved ones."""
    if topology is None:
        return {}, {}
    taken = 0
    for claim in held:
        taken |= _mask(claim.allocations)
    free, offered = {}, {}
    for zone, mask in topology.cpus.nodes.items():
        usable = mask & ~topology.reserved
        free[zone], offered[zone] = (usable & ~taken).bit_count(), usable.bit_count()
    return free, offered


def _held(
    known: inventory.Inventory,
    topology: node_topology.NodeTopology | None,
    given: allocations.Allocations,
) -> fragments.Held:
    """Return what a pod holds; the one value for nothing where that is nothing."""
    granted, mask = _granted(given), _mask(given)
    if not granted and not mask:
        return fragments.HOLDS_NOTHING
    return fragments.Held(_shares(known, granted), _by_zone(topology, mask))


def _shares(
    known: inventory.Inventory, granted: inventory.Allocation
) -> Mapping[str, fragments.ByMinor]:
    """Return which share of its devices a pod holds, in percent: the largest of its amounts."""
    found: dict[str, dict[int, int]] = collections.defaultdict(dict)
    for kind, given in granted.items():
        there = known.devices.get(kind, {})
        for one in given:
            total = there[one.minor].total if one.minor in there else {}
            shares = [
                -(-_WHOLE * value // total[name])
                for name, value in one.amounts.items()
                if total.get(name)
            ]
            found[kind][one.minor] = min(max(shares, default=_WHOLE), _WHOLE)
    return dict(found)


def _by_zone(topology: node_topology.NodeTopology | None, mask: int) -> fragments.ByZone:
    if topology is None or not mask:
        return {}
    zones = {zone: (mask & there).bit_count() for zone, there in topology.cpus.nodes.items()}
    return {zone: count for zone, count in zones.items() if count}
