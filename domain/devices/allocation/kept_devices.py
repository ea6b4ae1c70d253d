"""Devices for a pod that uses what is kept for it: these first, and free ones beside them.

A pod that uses an Aligned Reservation takes devices of the Reservation where they suffice. Where
they do not, it takes as few other devices as it can.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from domain.devices import inventory
from domain.devices.allocation import allocator, candidates

Place = tuple[str, int]
"""Type and minor of a device."""
_FEW: Final = 16
"""Devices that are left out one by one; of more of them, many are left out at once."""


def only(node: inventory.NodeDevices, kept: inventory.Allocation) -> inventory.NodeDevices:
    """Return the node with nothing free but what is kept, of the types of which some is.

    Of an adapter of which virtual functions are kept, these alone are free, by their addresses.
    """
    amounts = inventory.Uses.of((kept,)).amounts
    free = {
        kind: {
            minor: {
                name: min(value, amounts[kind].get(minor, {}).get(name, 0))
                for name, value in there.items()
            }
            for minor, there in by_minor.items()
        }
        for kind, by_minor in node.free.items()
        if kind in amounts
    }
    uses = msgspec.structs.replace(
        node.uses, functions=node.uses.functions | _other_functions(node, kept)
    )
    return msgspec.structs.replace(node, free={**node.free, **free}, uses=uses)


def _other_functions(
    node: inventory.NodeDevices, kept: inventory.Allocation
) -> frozenset[tuple[str, int, str]]:
    """Return the virtual functions that are not kept, of adapters of which some are."""
    return frozenset(
        (kind, one.minor, function.bus_id)
        for kind, granted in kept.items()
        for one in granted
        if one.functions and one.minor in node.inventory.devices.get(kind, {})
        for function in node.inventory.devices[kind][one.minor].functions
        if function.bus_id not in {mine.bus_id for mine in one.functions}
    )


def allocate(
    choice: candidates.Choice, kept: inventory.Allocation
) -> inventory.Allocation | candidates.Refusal:
    """Return the devices of a pod: of what is kept alone, else with as few others as possible.

    `choice` holds the node without the claim that keeps them. What is free of a device of which a
    part is kept counts like that part.
    """
    narrow = allocator.allocate(_on(choice, only(choice.node, kept)))
    if not isinstance(narrow, candidates.Refusal):
        return narrow
    found = allocator.allocate(choice)
    if isinstance(found, candidates.Refusal):
        return found
    return _filled(choice, kept, found)


def _filled(
    choice: candidates.Choice, kept: inventory.Allocation, found: inventory.Allocation
) -> inventory.Allocation:
    """Leave out one device after the other that is not kept, as long as the pod is served.

    Of many, halves are tried first: most are not needed, and each trial looks at all devices.
    """
    node = choice.node
    mine = {(kind, one.minor) for kind, granted in kept.items() for one in granted}
    types = {kind for kind, granted in kept.items() if granted}
    others = _farthest_first(node, mine, types)
    left = [others] if len(others) > _FEW else [[place] for place in reversed(others)]
    while left:
        places = left.pop()
        smaller = _without(node, places)
        tried = allocator.allocate(_on(choice, smaller))
        if not isinstance(tried, candidates.Refusal):
            node, found = smaller, tried
        elif len(places) > 1:
            middle = len(places) // 2
            left += (places[middle:], places[:middle])
    return found


def _farthest_first(node: inventory.NodeDevices, mine: set[Place], types: set[str]) -> list[Place]:
    """Return the devices that are not kept and of which something is free, the nearest last.

    Near is what is on a PCIe switch or a NUMA node with a device that is kept, of any type, and
    then what has a number close to one.
    """
    known = node.inventory.devices
    own = [known[kind][minor] for kind, minor in mine if minor in known.get(kind, {})]
    switches = {candidates.switch(device) for device in own} - {""}
    numas = {device.place.numa for device in own if device.place is not None}

    def nearness(place: Place) -> tuple[bool, bool, int, int]:
        kind, minor = place
        device = known[kind][minor]
        distances = [abs(minor - other) for same, other in mine if same == kind]
        return (
            candidates.switch(device) in switches,
            device.place is not None and device.place.numa in numas,
            -min(distances, default=0),
            -minor,
        )

    others = [
        (kind, minor)
        for kind in types
        for minor, amounts in node.free.get(kind, {}).items()
        if (kind, minor) not in mine and any(amounts.values())
    ]
    return sorted(others, key=lambda place: (nearness(place), place[0]))


def _without(node: inventory.NodeDevices, places: Sequence[Place]) -> inventory.NodeDevices:
    free: dict[str, Mapping[int, Mapping[str, int]]] = dict(node.free)
    for kind in {kind for kind, _ in places}:
        minors = {minor for other, minor in places if other == kind}
        free[kind] = {
            minor: dict.fromkeys(amounts, 0) if minor in minors else amounts
            for minor, amounts in node.free[kind].items()
        }
    return msgspec.structs.replace(node, free=free)


def _on(choice: candidates.Choice, node: inventory.NodeDevices) -> candidates.Choice:
    return dataclasses.replace(choice, node=node)
