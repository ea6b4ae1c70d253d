"""The devices of one node: what each offers, where it is plugged in, and what pods hold of it."""

import dataclasses
import types
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from api import names
from api.koordinator import devices
from api.koordinator.metadata import annotations, payloads
from api.wire import base, quantity
from domain.devices import dynamic_resources
from domain.devices.requests import requests

Amounts = requests.Amounts
EMPTY: Final[Amounts] = types.MappingProxyType({})
_NONE_HELD: Final[Mapping[int, Amounts]] = types.MappingProxyType({})
NO_LABELS: Final[Mapping[str, str]] = types.MappingProxyType({})
_LARGEST: Final = 1 << 48
"""Amounts beyond this are cut: no device has them, and sums must stay within 64 bits."""
LARGEST_MINOR: Final = 4096
"""No machine has so many devices of one type."""
MOST_PARTITIONS: Final = 1024
"""Of one node; a machine with 16 GPUs has 31, or a few hundred where any pair will do."""
UNKNOWN_NUMA: Final = -1
"""NUMA node of a device whose place its agent does not know."""
_LARGEST_NUMA: Final = 63
"""NUMA node ids beyond this are not aligned either."""


class Function(msgspec.Struct, frozen=True, gc=False):
    """A virtual function of an adapter; its address identifies it."""

    minor: int
    bus_id: str
    labels: Mapping[str, str] = {}
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
    """Return the devices of a Device object; of two with the same minor the first counts.

    One whose minor no record of a pod can name is left out: nobody would know that it is held.
    """
    found: dict[str, dict[int, Device]] = {}
    shared = _Shared({}, {})
    for one in device.spec.devices:
        if one.minor is not None and 0 <= one.minor < LARGEST_MINOR:
            made = _device(one, one.minor, shared)
            found.setdefault(one.type, {}).setdefault(one.minor, made)
    return Inventory(found, device.metadata.labels, _partitions(device))


def _partitions(device: devices.Device) -> Partitions | None:
    """Return the partitions of GPUs that have as many as a pod asks for."""
    try:
        table = annotations.GPU_PARTITIONS.read(device.metadata.annotations)
    except base.ReadError:
        # The node is used without the table, as if there were none; admission warns about it.
        return None
    if table is None or sum(map(len, table.values())) > MOST_PARTITIONS:
        return None
    return {
        size: tuple(one for one in listed if is_partition(size, one))
        for size, listed in table.items()
    }


def is_partition(size: int, one: Partition) -> bool:
    """Whether a partition has as many GPUs as it is listed for, each once."""
    return len(one.minors) == len(set(one.minors)) == size


class _Shared(NamedTuple):
    """Amounts and places of devices that are alike: one object each, which saves comparing."""

    amounts: dict[tuple[tuple[str, int], ...], Amounts]
    places: dict[Place, Place]


def _device(one: devices.DeviceInfo, minor: int, shared: _Shared) -> Device:
    amounts = quantity.amounts(one.resources) if one.health else {}
    total = {name: min(value, _LARGEST) for name, value in amounts.items() if value >= 0}
    place = _place(one.topology)
    return Device(
        minor=minor,
        total=shared.amounts.setdefault(tuple(total.items()), total),
        id=one.id,
        labels=one.labels,
        place=place and shared.places.setdefault(place, place),
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
    is_known = 0 <= topology.node_id <= _LARGEST_NUMA
    numa = topology.node_id if is_known else UNKNOWN_NUMA
    return Place(numa, topology.pcie_id, topology.socket_id)


class Granted(msgspec.Struct, frozen=True, gc=False):
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


def left(whole: Allocation, parts: Iterable[Allocation]) -> Allocation:
    """Return what is held of each device beyond some parts of it; types without any are left out.

    A device of which nothing is left, in whatever unit, is not in it.
    """
    used = Uses.of(parts)
    found: dict[str, tuple[Granted, ...]] = {}
    for kind, granted in whole.items():
        there = used.amounts.get(kind, {})
        rest = [_rest(one, there.get(one.minor, EMPTY), used.functions, kind) for one in granted]
        if kept := tuple(one for one in rest if any(one.amounts.values())):
            found[kind] = kept
    return found


def _rest(
    one: Granted, held: Amounts, functions: frozenset[tuple[str, int, str]], kind: str
) -> Granted:
    return msgspec.structs.replace(
        one,
        amounts={name: max(0, value - held.get(name, 0)) for name, value in one.amounts.items()},
        functions=tuple(
            function
            for function in one.functions
            if (kind, one.minor, function.bus_id) not in functions
        ),
    )


class Uses(msgspec.Struct, frozen=True, gc=False):
    """What pods hold of the devices of one node, whether these are still there or not."""

    amounts: Mapping[str, Mapping[int, Amounts]] = {}
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


class NodeDevices(msgspec.Struct, frozen=True, gc=False):
    """The devices of one node with what is free of them."""

    inventory: Inventory
    uses: Uses = Uses()
    labels: Mapping[str, str] = {}
    """Of the Node object."""
    free: Mapping[str, Mapping[int, Amounts]] = {}
    """By type and minor, of the devices that are there; never below 0."""

    @classmethod
    def of(
        cls, inventory: Inventory, uses: Uses, labels: Mapping[str, str] = NO_LABELS
    ) -> "NodeDevices":
        """Return a node whose free amounts are worked out."""
        free: dict[str, dict[int, Amounts]] = {}
        for kind, by_minor in inventory.devices.items():
            free[kind] = left = {minor: device.total for minor, device in by_minor.items()}
            for minor, used in uses.amounts.get(kind, {}).items():
                if minor in left:
                    left[minor] = free_of(left[minor], used)
        return cls(inventory, uses, labels, free)

    def plus(self, allocations: Iterable[Allocation]) -> "NodeDevices":
        """Return the node once pods hold this as well."""
        amounts, free = dict(self.uses.amounts), dict(self.free)
        functions = self.uses.functions
        for allocation in allocations:
            for kind, granted in allocation.items():
                if not granted:
                    continue
                amounts[kind] = by_minor = {**amounts.get(kind, _NONE_HELD)}
                there = free.get(kind)
                left = {**there} if there is not None else {}
                for one in granted:
                    minor = one.minor
                    by_minor[minor] = held = together(by_minor.get(minor, EMPTY), one.amounts)
                    if minor in left:
                        left[minor] = free_of(self.inventory.devices[kind][minor].total, held)
                    if one.functions:
                        functions |= {(kind, minor, f.bus_id) for f in one.functions}
                if there is not None:
                    free[kind] = left
        return NodeDevices(self.inventory, Uses(amounts, functions), self.labels, free)

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


def together(held: Amounts, more: Amounts) -> Amounts:
    """Return what pods hold of one device once another one holds something of it."""
    if not held:
        return more
    return {**held, **{name: held.get(name, 0) + value for name, value in more.items()}}


def free_of(total: Amounts, used: Amounts) -> Amounts:
    """Subtract, never below 0, what is used of a device."""
    if not used:
        return total
    return {
        name: rest if (rest := value - used.get(name, 0)) > 0 else 0
        for name, value in total.items()
    }


def gpu_model(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return vendor and model of the GPUs that labels name."""
    return labels.get(names.LABEL_GPU_VENDOR, ""), labels.get(names.LABEL_GPU_MODEL, "")
