"""What the agent says about the machine: its NUMA zones, processors and devices."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from api import names
from api.koordinator import devices, topology
from api.koordinator.metadata import annotations as payloads
from api.koordinator.metadata import node_payloads
from api.wire import base, quantity
from domain.devices.requests import accelerators
from domain.lending import colocation

SIDES: Final = ("capacity", "allocatable", "available")
"""The three amounts that a zone names of a resource."""
MOST_ZONES: Final = 64
"""Of one node; no machine has more, and each pod of the node is divided among all of them."""


class Zone(NamedTuple):
    """One NUMA node, as far as lending is concerned."""

    name: str
    capacity: colocation.Amount
    """What pods may use of it."""
    published: Mapping[str, tuple[int, ...]]
    """The batch resources that it offers, by side."""


class Topology(msgspec.Struct, frozen=True, gc=False):
    """A NodeResourceTopology."""

    processors: node_payloads.CpuBasicInfo | None
    """None while the agent has not said it, or it cannot be parsed."""
    zones: tuple[Zone, ...]
    """Empty where no zone says what it has, or there are more than any machine has."""
    written: tuple[dict[str, Any], ...]
    """The zones as they are written."""


def read_topology(raw: Mapping[str, Any]) -> Topology:
    """Project a NodeResourceTopology; what cannot be read is left out."""
    try:
        found = topology.read_node_resource_topology(raw)
    except base.ReadError:
        return Topology(None, (), ())
    zones = tuple(_zone(zone) for zone in found.zones)
    known = any(zone.capacity != colocation.NOTHING for zone in zones) and len(zones) <= MOST_ZONES
    return Topology(
        processors=_processors(raw),
        zones=zones if known else (),
        written=tuple(raw["zones"]) if known else (),
    )


def _processors(raw: Mapping[str, Any]) -> node_payloads.CpuBasicInfo | None:
    try:
        return payloads.CPU_BASIC_INFO.read((raw.get("metadata") or {}).get("annotations") or {})
    except base.ReadError:
        return None


def _zone(zone: topology.Zone) -> Zone:
    offers = {item.name: item for item in zone.resources}
    cpu, memory = offers.get(names.CPU), offers.get(names.MEMORY)
    return Zone(
        zone.name,
        colocation.Amount(
            quantity.milli(cpu.allocatable) if cpu else 0,
            quantity.whole(memory.allocatable) if memory else 0,
        ),
        {
            name: tuple(quantity.whole(getattr(offers[name], side)) for side in SIDES)
            for name in names.BATCH_RESOURCES
            if name in offers
        },
    )


def read_devices(raw: Mapping[str, Any]) -> accelerators.Inventory:
    """Project a Device; one that cannot be parsed counts as none."""
    try:
        return accelerators.inventory(devices.read_device(raw))
    except base.ReadError:
        return accelerators.NOTHING
