"""GPU partitions: sets of GPUs that are linked to each other, of which a pod gets a whole one."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from api import names
from api.wire import quantity
from domain.devices import inventory
from domain.devices.allocation import candidates

Granted = inventory.Granted
Partition = inventory.Partition

NO_TABLE: Final = candidates.Refusal("node(s) missing GPU Partition Table", final=True)
NO_SUCH_SIZE: Final = candidates.Refusal("node(s) Unsupported number of GPU requests", final=True)
TOO_FEW: Final = candidates.Refusal("Insufficient Partitioned GPU Devices")
HONOR: Final = "Honor"
_RESTRICTED: Final = "Restricted"
_LINKED_PAIRWISE: Final = frozenset({"H100", "H800", "H20"})
"""Models of NVIDIA whose machines of eight GPUs are divided in halves."""
_WEIGHTS: Final = ((8, 10000), (4, 100), (2, 1))
"""What a partition of a size counts that stays free."""


@functools.cache
def _built_in() -> inventory.Partitions:
    return {
        size: tuple(
            Partition(
                minors=tuple(range(first, first + size)), gpu_link_type="NVLink", allocation_score=1
            )
            for first in range(0, 8, size)
        )
        for size in (1, 2, 4, 8)
    }


def table(node: inventory.NodeDevices) -> inventory.Partitions | None:
    """Return the partitions of a node: those of its Device, else those known of its model."""
    if node.inventory.partitions is not None:
        return node.inventory.partitions
    vendor, model = inventory.gpu_model(node.labels)
    return _built_in() if vendor in ("", "nvidia") and model in _LINKED_PAIRWISE else None


def honoured(choice: candidates.Choice) -> bool:
    """Whether nothing but a partition will do."""
    return choice.pod.partition is not None or required(choice.node)


def required(node: inventory.NodeDevices) -> bool:
    """Whether a node gives whole GPUs by partitions only."""
    own = node.inventory
    labels = own.labels if own.partitions is not None else node.labels
    return labels.get(names.LABEL_GPU_PARTITION_POLICY) == HONOR


def allocate(
    choice: candidates.Choice, pool: candidates.Pool, wanted: candidates.Wanted
) -> tuple[Granted, ...] | candidates.Refusal:
    """Return the GPUs of the partition that leaves the best partitions to others."""
    partitions = table(choice.node)
    if partitions is None:
        return NO_TABLE
    sized = partitions.get(wanted.count)
    if not sized:
        return NO_SUCH_SIZE
    used = pool.used
    for group in _groups(choice, sized):
        feasible = [one for one in group if _feasible(choice, pool, wanted, one)]
        if feasible:
            best = _best(feasible, partitions, wanted.count, used)
            return tuple(Granted(minor, wanted.per_device) for minor in best.minors)
    return TOO_FEW


def _groups(choice: candidates.Choice, sized: Sequence[Partition]) -> Iterator[list[Partition]]:
    """Yield partitions of equal scores, the highest first; only these if the pod needs one."""
    scores = sorted({one.allocation_score for one in sized}, reverse=True)
    spec = choice.pod.partition
    if spec is not None and spec.allocate_policy == _RESTRICTED:
        scores = scores[:1]
    for score in scores:
        yield [one for one in sized if one.allocation_score == score]


def _feasible(
    choice: candidates.Choice, pool: candidates.Pool, wanted: candidates.Wanted, one: Partition
) -> bool:
    if not pool.used.isdisjoint(one.minors):
        return False
    if not all(_serves(pool, wanted, minor) for minor in one.minors):
        return False
    spec = choice.pod.partition
    if spec is None or spec.ring_bus_bandwidth is None:
        return True
    offered = one.ring_bus_bandwidth
    return offered is not None and (
        quantity.parse(offered).nanos >= quantity.parse(spec.ring_bus_bandwidth).nanos
    )


def _serves(pool: candidates.Pool, wanted: candidates.Wanted, minor: int) -> bool:
    total, free = pool.total.get(minor, {}), pool.free.get(minor, {})
    if not any(total.values()):
        return False
    # Of an unused GPU everything is free, but where the pod may only take what is kept for it.
    return free == total or (any(free.values()) and candidates.fits(wanted.per_device, free))


def _best(
    feasible: Sequence[Partition],
    partitions: Mapping[int, Sequence[Partition]],
    count: int,
    used: frozenset[int],
) -> Partition:
    others = [
        (one.minors, weight * one.allocation_score)
        for size, weight in _WEIGHTS
        if size >= count
        for one in _first_group(partitions.get(size, ()))
    ]

    def left(chosen: Partition) -> int:
        gone = used | frozenset(chosen.minors)
        return sum(value for minors, value in others if gone.isdisjoint(minors))

    # Of equal ones max returns the first that is listed.
    return max(feasible, key=left)


def _first_group(sized: Sequence[Partition]) -> list[Partition]:
    best = max((one.allocation_score for one in sized), default=0)
    return [one for one in sized if one.allocation_score == best]
