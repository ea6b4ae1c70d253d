"""What is used of GPUs, by node, pod and container. Pure."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from agent.devices import device_inventory, usage_figures
from api import names
from api.wire import quantity

MOST_PROCESSES: Final = 4096
Key = tuple[str, ...]


class Owner(msgspec.Struct, frozen=True):
    """Whose process it is."""

    pod: str
    container: str


@dataclasses.dataclass(slots=True, frozen=True)
class Amount:
    """How much of one GPU is used; None for what is unknown."""

    core: float | None = None
    memory: float | None = None

    def with_process(self, process: device_inventory.Process) -> "Amount":
        """Return the amount with one more process, whose share may be unknown."""
        core = self.core if process.core is None else (self.core or 0.0) + process.core
        return Amount(core, (self.memory or 0.0) + process.memory)


def counted(found: device_inventory.Inventory) -> tuple[usage_figures.Counted, ...]:
    """Return the GPUs of an inventory whose use can be told."""
    memory = names.GPU_MEMORY
    return tuple(
        usage_figures.Counted(
            one.identity, one.minor, quantity.whole(one.resources[memory]), one.healthy
        )
        for one in found.devices
        if one.kind == device_inventory.GPU and one.minor is not None and memory in one.resources
    )


def amounts(
    readings: Iterable[device_inventory.Reading], owners: Mapping[int, Owner]
) -> dict[Key, Amount]:
    """Return what the node, every pod and every container uses, by key and GPU.

    The node's figures are those of the device itself where the driver has them, so that processes
    outside of pods and hidden ones count as well; else the sum of its processes. A process without
    a sample of its share counts with its memory.
    """
    found: dict[Key, Amount] = {}
    for reading in readings:
        place = ("gpu", reading.identity)
        total = Amount()
        for process in reading.processes[:MOST_PROCESSES]:
            total = total.with_process(process)
            owner = owners.get(process.pid)
            if owner is None:
                continue
            for key in (("pod", owner.pod), ("container", owner.pod, owner.container)):
                found[*key, *place] = found.get((*key, *place), Amount()).with_process(process)
        core = total.core if reading.core is None else reading.core
        memory = total.memory if reading.memory is None else reading.memory
        found["node", *place] = Amount(core, memory)
    return found


def shares(samples: Iterable[tuple[int, int, float]], since: int) -> dict[int, float]:
    """Return each process' mean share from (process, moment, share), newer ones only.

    Drivers also return slots that they have not filled in: shares above the whole are none.
    """
    grouped: dict[int, list[float]] = {}
    for pid, moment, share in samples:
        if moment > since and 0 <= share <= 100:
            grouped.setdefault(pid, []).append(share)
    return {pid: sum(values) / len(values) for pid, values in grouped.items()}


def owner_of(path: str, containers: Mapping[str, Owner]) -> Owner | None:
    """Return whose process it is, from its control group and the last parts of known groups."""
    for part in reversed(path.split("/")):
        found = containers.get(part)
        if found is not None:
            return found
    return None
