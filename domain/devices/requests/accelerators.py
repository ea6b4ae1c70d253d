"""What a node offers of its accelerators and adapters: the sum over the healthy ones."""

import collections
import dataclasses
from collections.abc import Mapping
from typing import Final

from api import names
from api.koordinator import devices
from api.wire import quantity
from domain.pods import resources

GPU_RESOURCES: Final = (
    names.GPU,
    names.GPU_CORE,
    names.GPU_MEMORY,
    names.GPU_MEMORY_RATIO,
    names.GPU_SHARED,
    names.NPU_CORE,
    names.NPU_CPU,
    names.NPU_DVPP,
)
ADAPTERS: Final = {devices.RDMA: names.RDMA, devices.FPGA: names.FPGA}
"""Types of devices of which every healthy one counts as much as every other, and their names."""
RESOURCES: Final = (*GPU_RESOURCES, *ADAPTERS.values())
"""Everything that is summed up on nodes."""
LABELS: Final = (names.LABEL_GPU_VENDOR, names.LABEL_GPU_MODEL, names.LABEL_GPU_DRIVER)
"""What nodes say about their GPUs, too."""
_WHOLE: Final = 100
_WITH_GPU: Final = frozenset({"", "nvidia"})
"""Vendors whose GPUs are also offered under the name that asks for cores and memory at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """What a node is to say about its devices."""

    gpus: Mapping[str, int] | None = None
    """Amounts by resource; None without a healthy GPU."""
    adapters: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Amounts by resource; without those of which no adapter is healthy."""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)


NOTHING: Final = Inventory()


def inventory(device: devices.Device) -> Inventory:
    """Sum up the healthy devices of a node."""
    healthy = [item for item in device.spec.devices if item.health]
    gpus = [item for item in healthy if item.type == devices.GPU]
    adapters = collections.Counter(ADAPTERS[item.type] for item in healthy if item.type in ADAPTERS)
    marks: dict[str, str] = {}
    # What the object says as a whole counts more than what it says about single devices.
    for labels in (device.metadata.labels, *(gpu.labels for gpu in gpus)):
        for key in LABELS:
            if key in labels:
                marks.setdefault(key, labels[key])
    return Inventory(
        gpus=_gpus(gpus, marks.get(names.LABEL_GPU_VENDOR, "")) if gpus else None,
        adapters={name: count * _WHOLE for name, count in adapters.items()},
        labels=marks,
    )


def _gpus(healthy: list[devices.WrittenDevice], vendor: str) -> dict[str, int]:
    total: dict[str, int] = {names.GPU_SHARED: _WHOLE * len(healthy)}
    for item in healthy:
        found = quantity.amounts(item.resources)
        total = resources.add(total, {k: v for k, v in found.items() if k in GPU_RESOURCES})
    if vendor in _WITH_GPU and names.GPU_CORE in total:
        total[names.GPU] = total[names.GPU_CORE]
    return total


def offered(
    found: Inventory | None, published: Mapping[str, int], *, shared: bool
) -> dict[str, int | None]:
    """Return by resource what a node is to offer, None to offer it no longer.

    Without an inventory the node has no Device any more. What healthy devices say nothing about
    stays as it is on the node; so do slices unless ``shared``, since another controller offers
    them then.
    """
    wanted: dict[str, int | None] = {
        name: None for name in RESOURCES if shared or name != names.GPU_SHARED
    }
    if found is None:
        return wanted
    wanted |= {name: found.adapters.get(name) for name in ADAPTERS.values()}
    if found.gpus is None:
        return wanted
    for name in GPU_RESOURCES:
        amount = found.gpus.get(name, published.get(name))
        if amount is None:
            wanted.pop(name, None)
        elif name in wanted:
            wanted[name] = amount
    return wanted
