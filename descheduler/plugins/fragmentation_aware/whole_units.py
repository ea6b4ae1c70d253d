"""Devices and NUMA zones that one pod alone keeps from being free whole."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from descheduler.model import fragments

CPU: Final = "cpu"
"""The kind of the CPUs of a NUMA zone, beside types of devices."""
_DEVICE: Final = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Unit:
    """One device, or the CPUs of one NUMA zone."""

    capacity: int
    free: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it is held."""
        return self.free == self.capacity > 0


Units = Mapping[str, Mapping[int, Unit]]
"""By kind and by minor or zone."""


def units(known: fragments.Fragments) -> Units:
    """Return the devices and zones of a node."""
    found = {
        kind: {minor: Unit(_DEVICE, free) for minor, free in by_minor.items()}
        for kind, by_minor in known.devices.items()
    }
    zones = {
        zone: Unit(capacity, known.cpus.get(zone, 0))
        for zone, capacity in known.cpus_of_zone.items()
    }
    return {**found, CPU: zones} if zones else found


def held_by(known: fragments.Fragments, uid: str) -> Mapping[str, Mapping[int, int]]:
    """Return what a pod holds of each unit, by kind."""
    held = known.held.get(uid)
    if held is None:
        return {}
    return {**held.devices, CPU: held.cpus} if held.cpus else held.devices


def scattered(known: fragments.Fragments) -> Mapping[str, tuple[int, ...]]:
    """Return the free pieces of the kinds that have no whole unit, where they make up one together.

    Pods that ask for a whole one find none although as much is free.
    """
    found = {}
    for kind, of_kind in units(known).items():
        pieces = tuple(sorted(unit.free for unit in of_kind.values() if unit.free > 0))
        smallest = min((unit.capacity for unit in of_kind.values() if unit.capacity), default=0)
        whole = any(unit.is_whole for unit in of_kind.values())
        if pieces and not whole and sum(pieces) >= smallest:
            found[kind] = pieces
    return found


def freed(known: fragments.Fragments, uid: str, kinds: Mapping[str, object]) -> int:
    """Return how many units of some kinds become whole once a pod has left."""
    of = units(known)
    return sum(
        unit.free + share == unit.capacity > unit.free
        for kind, shares in held_by(known, uid).items()
        if kind in kinds
        for at, share in shares.items()
        if (unit := of.get(kind, {}).get(at)) is not None
    )


def broken(known: fragments.Fragments | None, asked: Mapping[str, Mapping[int, int]]) -> int | None:
    """Return how many whole units a node breaks to take what a pod holds; None where it cannot.

    Each share of a device needs a device of its own; CPUs have to come from one zone.
    """
    there = units(known) if known is not None else {}
    total = 0
    for kind, shares in asked.items():
        wanted = [sum(shares.values())] if kind == CPU else sorted(shares.values(), reverse=True)
        left = sorted(there.get(kind, {}).values(), key=lambda unit: (unit.is_whole, unit.free))
        for share in wanted:
            place = next((unit for unit in left if unit.free >= share), None)
            if place is None:
                return None
            left.remove(place)
            total += place.is_whole
    return total
