"""NUMA hints of devices: from which NUMA nodes a pod could be given all devices that it wants."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from api.koordinator import devices
from domain.devices import inventory
from domain.devices.allocation import allocator, candidates

TOO_FEW: Final = candidates.Refusal("Insufficient NUMA Scoped Devices", final=True)
SAME_GPUS: Final = 500
"""Score of NUMA nodes from which a pod gets the GPUs that it would get from all of them."""
MOST: Final = 12
"""NUMA nodes whose combinations are looked at; on larger machines only single ones and all."""
_MOST_LOOKS: Final = 1 << 16
"""Devices times combinations of their NUMA nodes; with more of them it is the same."""


class Hint(NamedTuple):
    """NUMA nodes that could serve a pod."""

    mask: int
    preferred: bool
    """Whether no fewer would do."""
    score: int


Hints = Mapping[str, tuple[Hint, ...]]
"""By type of device."""


def hints(choice: candidates.Choice) -> Hints | candidates.Refusal:
    """Return which NUMA nodes could serve the pod; empty: any will do."""
    known = sorted(_numa_nodes(choice.node))
    if not known:
        return {}
    wanted = candidates.wanted(choice)
    if isinstance(wanted, candidates.Refusal):
        return wanted
    whole = _tried(choice, wanted, known)
    if isinstance(whole, candidates.Refusal):
        return whole
    feasible = {}
    for numa in _subsets(known, _size(choice.node)):
        found = whole if len(numa) == len(known) else _tried(choice, wanted, numa)
        if not isinstance(found, candidates.Refusal):
            feasible[tuple(numa)] = _gpus(found)
    narrowest = min(map(len, feasible))
    found_hints = tuple(
        Hint(
            mask=sum(1 << one for one in numa),
            preferred=len(numa) == narrowest,
            score=SAME_GPUS if chosen == _gpus(whole) else 0,
        )
        for numa, chosen in feasible.items()
    )
    return dict.fromkeys(wanted, found_hints)


def _numa_nodes(node: inventory.NodeDevices) -> set[int]:
    return {
        device.place.numa
        for by_minor in node.inventory.devices.values()
        for device in by_minor.values()
        if device.place is not None and device.place.numa != inventory.UNKNOWN_NUMA
    }


def _size(node: inventory.NodeDevices) -> int:
    return sum(map(len, node.inventory.devices.values()))


def _subsets(known: Sequence[int], devices_there: int) -> Iterator[list[int]]:
    if len(known) > MOST or devices_there << len(known) > _MOST_LOOKS:
        yield from ([one] for one in known)
        yield list(known)
        return
    for bits in range(1, 1 << len(known)):
        yield [one for place, one in enumerate(known) if bits >> place & 1]


def _tried(
    choice: candidates.Choice, wanted: Mapping[str, candidates.Wanted], numa: Sequence[int]
) -> inventory.Allocation | candidates.Refusal:
    for kind, one in wanted.items():
        there = _counted(choice.node, kind, numa)
        if 0 < there < one.count:
            return TOO_FEW
    return allocator.allocate(dataclasses.replace(choice, scoring=None, numa=frozenset(numa)))


def _counted(node: inventory.NodeDevices, kind: str, numa: Sequence[int]) -> int:
    return sum(
        device.place is not None and device.place.numa in numa
        for device in node.inventory.devices[kind].values()
    )


def _gpus(allocation: inventory.Allocation) -> frozenset[int]:
    return frozenset(one.minor for one in allocation.get(devices.GPU, ()))
