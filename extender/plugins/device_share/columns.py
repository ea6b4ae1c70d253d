"""The columns of a node: what numbers say of its devices, and how they follow from it. Pure."""

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from api import names
from api.koordinator import devices
from domain.devices import inventory
from domain.devices.allocation import partitions
from domain.devices.requests import requests

GPUS: Final = 16
"""GPUs that have columns; nodes with more are looked at one by one."""
FLAGS, LABELS, DIGEST, ALIKE, HELD, RDMA, FPGA = range(7)
CORE, RATIO, MEMORY = 7, 7 + GPUS, 7 + 2 * GPUS
SUMS: Final = 7 + 3 * GPUS
"""The columns: flags, a digest of the labels of GPUs, one of all that is free of them, one of all
that an allocation depends on and one of what pods hold, the most that is free of one adapter, what
is free of every GPU, and from here on two for every resource that is scored, total and free."""
KNOWN, HAS_GPU, HAS_RDMA, HAS_FPGA, ODD, MIXED = 1, 2, 4, 8, 16, 32
"""The flags: the node has devices, it has some of a type, its GPUs are looked at one by one, its
GPUs do not all carry the same labels."""
HAS: Final[Mapping[str, int]] = {
    devices.GPU: HAS_GPU,
    devices.RDMA: HAS_RDMA,
    devices.FPGA: HAS_FPGA,
}
UNLISTED: Final = 1 << 53
"""Stands for what a device does not list, which is not checked."""
NO_DEVICE: Final = -1
_NOTHING: Final[requests.Amounts] = inventory.EMPTY
_ADAPTERS: Final = ((RDMA, devices.RDMA, names.RDMA), (FPGA, devices.FPGA, names.FPGA))


class Layout(msgspec.Struct, frozen=True):
    """What follows from the devices of a node, whatever pods hold of them."""

    unused: tuple[int, ...]
    """The columns while pods hold nothing, without what labels of the node say."""
    places: Mapping[int, int]
    """Of GPUs that offer something: the place among the columns, by minor."""
    weighed: Mapping[str, tuple[tuple[int, str, int], ...]]
    """By type: the first column and the name of every resource that is scored, and how much there
    is of it."""
    digest: int
    """Of all that an allocation of any pod depends on, besides what pods hold."""


def layout(found: inventory.Inventory, labels: Mapping[str, str], weighed: Sequence[str]) -> Layout:
    """Return the layout of a node with these labels; `weighed` are what is scored."""
    gpus = found.devices.get(devices.GPU, {})
    places = {
        minor: place
        for place, minor in enumerate(sorted(gpus)[:GPUS])
        if any(gpus[minor].total.values())
    }
    by_type: dict[str, list[tuple[int, str, int]]] = {}
    for place, name in enumerate(weighed):
        kind = next(kind for kind, names_ in requests.NAMES.items() if name in names_)
        known = found.devices.get(kind, {}).values()
        total = sum([one.total.get(name, 0) for one in known])
        by_type.setdefault(kind, []).append((SUMS + 2 * place, name, total))
    figures = [0] * (SUMS + 2 * len(weighed))
    figures[FLAGS], figures[LABELS] = _flags(found), _labels(gpus)
    figures[CORE:SUMS] = [NO_DEVICE] * (SUMS - CORE)
    unused = inventory.NodeDevices.of(found, inventory.Uses())
    made = Layout(
        (),
        places,
        {kind: tuple(columns) for kind, columns in by_type.items()},
        _digest(found, labels),
    )
    for _, kind, _ in _ADAPTERS:
        _set_adapters(figures, unused, kind)
    for minor in places:
        _set_gpu(figures, made, unused, minor)
    for kind in by_type:
        _count(figures, made, unused, kind, [(one, _NOTHING) for one in _free(unused, kind)])
    return msgspec.structs.replace(made, unused=tuple(figures))


def of(node: inventory.NodeDevices, made: Layout, *, digested: bool) -> tuple[int, ...]:
    """Return the columns of a node; the digest of what is free only where it is asked for."""
    figures = list(made.unused)
    if partitions.required(node):
        figures[FLAGS] |= ODD
    unused = inventory.NodeDevices.of(node.inventory, inventory.Uses())
    touched = {kind: by_minor.keys() for kind, by_minor in node.uses.amounts.items()}
    return changed((figures, unused), made, node, touched, digested=digested)


def changed(
    before: tuple[Sequence[int], inventory.NodeDevices],
    made: Layout,
    node: inventory.NodeDevices,
    touched: Mapping[str, Collection[int]],
    *,
    digested: bool,
) -> tuple[int, ...]:
    """Return the columns of a node after some of its devices, by type and minor, have changed.

    `before` are its columns and the node as it was.
    """
    figures, was = list(before[0]), before[1]
    for kind, minors in touched.items():
        figures[HELD] ^= _held(was, kind, minors) ^ _held(node, kind, minors)
        free = node.free.get(kind)
        if free is None:
            continue
        if kind == devices.GPU:
            for minor in minors:
                if minor in made.places:
                    _set_gpu(figures, made, node, minor)
        else:
            _set_adapters(figures, node, kind)
        earlier = was.free[kind]
        moved = [(free[minor], earlier[minor]) for minor in minors if minor in free]
        _count(figures, made, node, kind, moved)
    figures[ALIKE] = hash((made.digest, figures[HELD], node.uses.functions))
    if digested:
        text = repr((figures[LABELS], figures[CORE:SUMS]))
        figures[DIGEST] = zlib.crc32(text.encode())
    return tuple(figures)


def _flags(found: inventory.Inventory) -> int:
    flags = KNOWN
    for kind, flag in HAS.items():
        if found.devices.get(kind):
            flags |= flag
    gpus = list(found.devices.get(devices.GPU, {}).values())
    if any(one.labels != gpus[0].labels for one in gpus):
        flags |= MIXED
    return flags | ODD if len(gpus) > GPUS else flags


_NODE_LABELS: Final = (
    *(names.LABEL_GPU_VENDOR, names.LABEL_GPU_MODEL),
    *(names.LABEL_GPU_ISOLATION_PROVIDER, names.LABEL_GPU_PARTITION_POLICY),
)
_DEVICE_LABELS: Final = (names.LABEL_SECONDARY_DEVICE_PLANNED, names.LABEL_GPU_PARTITION_POLICY)


def _held(node: inventory.NodeDevices, kind: str, minors: Iterable[int]) -> int:
    """Return a digest of what pods hold of some devices; those of more of them are combined."""
    digest, there = 0, node.uses.amounts.get(kind)
    if there:
        for minor in minors:
            if minor in there:
                digest ^= hash((kind, minor, *sorted(there[minor].items())))
    return digest


def _digest(found: inventory.Inventory, of_node: Mapping[str, str]) -> int:
    """Return a digest of devices without what tells equal machines apart, such as identifiers."""
    known = [
        (kind, minor, one.place, one.module, *_texts(one.total), *_texts(one.labels))
        for kind, by_minor in found.devices.items()
        for minor, one in by_minor.items()
    ]
    functions = [
        (kind, minor, function.minor, function.bus_id, *_texts(function.labels))
        for kind, by_minor in found.devices.items()
        for minor, one in by_minor.items()
        for function in one.functions
    ]
    labels = [found.labels.get(name) for name in _DEVICE_LABELS]
    labels += [of_node.get(name) for name in _NODE_LABELS]
    return hash((tuple(known), tuple(functions), tuple(labels), repr(found.partitions)))


def _texts(pairs: Mapping[str, object]) -> tuple[object, ...]:
    """Return names and values, and where they end."""
    return (len(pairs), *sorted(pairs.items()))


def _labels(gpus: inventory.ByMinor) -> int:
    """Return a number that is the same for nodes whose GPUs carry the same labels."""
    marks = sorted({tuple(sorted(one.labels.items())) for one in gpus.values()})
    return zlib.crc32(repr(marks).encode())


def _set_gpu(figures: list[int], made: Layout, node: inventory.NodeDevices, minor: int) -> None:
    free, place = node.free[devices.GPU][minor], made.places[minor]
    figures[CORE + place] = free.get(names.GPU_CORE, UNLISTED)
    figures[RATIO + place] = free.get(names.GPU_MEMORY_RATIO, UNLISTED)
    figures[MEMORY + place] = free.get(names.GPU_MEMORY, UNLISTED)


def _set_adapters(figures: list[int], node: inventory.NodeDevices, kind: str) -> None:
    """Set the most that is free of one device of a type."""
    for column, one, name in _ADAPTERS:
        if one == kind:
            known, free = node.inventory.devices.get(kind, {}), node.free.get(kind, {})
            healthy = [minor for minor, device in known.items() if any(device.total.values())]
            figures[column] = max(
                (free[minor].get(name, UNLISTED) for minor in healthy), default=NO_DEVICE
            )


def _count(
    figures: list[int],
    made: Layout,
    node: inventory.NodeDevices,
    kind: str,
    moved: Sequence[tuple[requests.Amounts, requests.Amounts]],
) -> None:
    """Count what is free of each resource after what is free of some devices has changed.

    The column before it says how much there is in all; both are 0 of a type that is used up.
    """
    weighed, left = made.weighed.get(kind, ()), 0
    for column, name, total in weighed:
        free = figures[column + 1]
        for after, before in moved:
            free += after.get(name, 0) - before.get(name, 0)
        figures[column], figures[column + 1] = total, free
        left += free
    if not left and not any(any(one.values()) for one in _free(node, kind)):
        for column, _, _ in weighed:
            figures[column] = 0


def _free(node: inventory.NodeDevices, kind: str) -> Collection[requests.Amounts]:
    """Return what is free of each device of a type."""
    return node.free.get(kind, {}).values()
