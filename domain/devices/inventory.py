"""The devices of one node: what each offers, where it is plugged in, and what pods hold of it."""

import dataclasses
import types
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from api import names
from api.koordinator import devices
from api.koordinator.metadata import annotations, payloads
from api.wire import base, quantity
from domain.devices import dynamic_resources, requests

Amounts = requests.Amounts
EMPTY: Final[Amounts] = types.MappingProxyType({})
NO_LABELS: Final[Mapping[str, str]] = types.MappingProxyType({})
UNKNOWN_NUMA: Final = -1
"""NUMA node of a device whose place its agent does not know."""


@dataclasses.dataclass(frozen=True, slots=True)
class Function:
    """A virtual function of an adapter; its address identifies it."""

    minor: int
    bus_id: str
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Of the group that it belongs to."""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a device is plugged in."""

    numa: int
    pcie: str
    socket: int = -1


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """One device; it offers nothing while it is unhealthy."""

    minor: int
    total: Amounts
    id: str = ""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    place: Place | None = None
    functions: tuple[Function, ...] = ()
    module: int | None = None
    """Physical slot."""
    bus_id: str = ""
    """PCI address, as it is written."""
    claim: str = ""
    """ResourceClaim that holds it, as namespace/name; it offers nothing meanwhile."""


ByMinor = Mapping[int, Device]
Partition = payloads.Partition
Partitions = Mapping[int, tuple[Partition, ...]]
"""Partitions of GPUs that are linked to each other, by the number of GPUs in them."""


class Inventory(msgspec.Struct, frozen=True):
    """All devices of a node: what its Device object says, without the status."""

    devices: Mapping[str, ByMinor] = {}
    """By type and minor."""
    labels: Mapping[str, str] = {}
    """Of the Device object."""
    partitions: Partitions | None = None
    """None: the Device object has no table that can be read."""


NOTHING: Final = Inventory()


def read(device: devices.Device) -> Inventory:
    """Return the devices of a Device object; of two with the same minor the first counts."""
    found: dict[str, dict[int, Device]] = {}
    for one in device.spec.devices:
        if one.minor is not None:
            found.setdefault(one.type, {}).setdefault(one.minor, _device(one, one.minor))
    try:
        table = annotations.GPU_PARTITIONS.read(device.metadata.annotations)
        partitions = None if table is None else {int(size): parts for size, parts in table.items()}
    except (base.ReadError, ValueError):
        # The node is used without the table, as if there were none; admission warns about it.
        partitions = None
    return Inventory(found, device.metadata.labels, partitions)


def _device(one: devices.DeviceInfo, minor: int) -> Device:
    amounts = quantity.amounts(one.resources) if one.health else {}
    return Device(
        minor=minor,
        total={name: value for name, value in amounts.items() if value >= 0},
        id=one.id,
        labels=one.labels,
        place=_place(one.topology),
        functions=tuple(
            Function(function.minor, function.bus_id, group.labels)
            for group in one.vf_groups
            for function in group.vfs
        ),
        module=one.module_id,
        bus_id=one.topology.bus_id if one.topology else "",
    )


def without(known: Inventory, elsewhere: dynamic_resources.Elsewhere) -> Inventory:
    """Return an inventory in which devices that ResourceClaims hold offer nothing."""

    def left(device: Device) -> Device:
        claim = elsewhere.holder(device.id, device.bus_id)
        return dataclasses.replace(device, total={}, claim=claim) if claim else device

    found = {
        kind: {minor: left(device) for minor, device in by_minor.items()}
        for kind, by_minor in known.devices.items()
    }
    return msgspec.structs.replace(known, devices=found)


def _place(topology: devices.Topology | None) -> Place | None:
    if topology is None:
        return None
    return Place(topology.node_id, topology.pcie_id, topology.socket_id)


@dataclasses.dataclass(frozen=True, slots=True)
class Granted:
    """What one pod holds of one device."""

    minor: int
    amounts: Amounts
    functions: tuple[Function, ...] = ()
    template: str = ""
    """Name of the template by which an accelerator is sliced."""
    id: str = ""
    """Identifier of the device, as far as it is known."""


Allocation = Mapping[str, tuple[Granted, ...]]
"""What one pod holds, by type of device."""


@dataclasses.dataclass(frozen=True, slots=True)
class Uses:
    """What pods hold of the devices of one node, whether these are still there or not."""

    amounts: Mapping[str, Mapping[int, Amounts]] = dataclasses.field(default_factory=dict)
    """By type and minor."""
    functions: frozenset[tuple[str, int, str]] = frozenset()
    """Type, minor and address of every virtual function in use."""

    @classmethod
    def of(cls, allocations: Iterable[Allocation]) -> "Uses":
        """Return what some pods hold together."""
        amounts: dict[str, dict[int, dict[str, int]]] = {}
        functions: set[tuple[str, int, str]] = set()
        for allocation in allocations:
            for kind, granted in allocation.items():
                for one in granted:
                    held = amounts.setdefault(kind, {}).setdefault(one.minor, {})
                    for name, value in one.amounts.items():
                        held[name] = held.get(name, 0) + value
                    functions |= {(kind, one.minor, f.bus_id) for f in one.functions}
        return cls(amounts, frozenset(functions))


@dataclasses.dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of one node with what is free of them."""

    inventory: Inventory
    uses: Uses = dataclasses.field(default_factory=Uses)
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Of the Node object."""
    free: Mapping[str, Mapping[int, Amounts]] = dataclasses.field(default_factory=dict)
    """By type and minor, of the devices that are there; never below 0."""

    @classmethod
    def of(
        cls, inventory: Inventory, uses: Uses, labels: Mapping[str, str] = NO_LABELS
    ) -> "NodeDevices":
        """Return a node whose free amounts are worked out."""
        free = {
            kind: {
                minor: free_of(device.total, uses.amounts.get(kind, {}).get(minor, EMPTY))
                for minor, device in by_minor.items()
            }
            for kind, by_minor in inventory.devices.items()
        }
        return cls(inventory, uses, labels, free)

    def used(self, kind: str) -> frozenset[int]:
        """Return the minors of which pods hold something."""
        held = self.uses.amounts.get(kind, {})
        return frozenset(minor for minor, amounts in held.items() if any(amounts.values()))

    def overused(self) -> list[tuple[str, int, str, int, int]]:
        """Return type, minor, resource, amount held and amount there, where more is held."""
        found = []
        for kind, held in sorted(self.uses.amounts.items()):
            known = self.inventory.devices.get(kind, {})
            for minor, amounts in sorted(held.items()):
                total = known[minor].total if minor in known else EMPTY
                for name, value in sorted(amounts.items()):
                    if name in total and value > total[name]:
                        found.append((kind, minor, name, value, total[name]))
        return found


def free_of(total: Amounts, used: Amounts) -> Amounts:
    """Subtract, never below 0, what is used of a device."""
    if not used:
        return total
    return {name: max(0, value - used.get(name, 0)) for name, value in total.items()}


def gpu_model(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return vendor and model of the GPUs that labels name."""
    return labels.get(names.LABEL_GPU_VENDOR, ""), labels.get(names.LABEL_GPU_MODEL, "")
