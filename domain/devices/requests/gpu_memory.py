"""GPU memory as bytes and as a share: what a pod asks for in one is recorded in both."""

import msgspec

from api import names
from api.koordinator import devices
from domain.devices import inventory
from domain.devices.requests import requests

MEMORY, RATIO = names.GPU_MEMORY, names.GPU_MEMORY_RATIO


def completed(
    allocation: inventory.Allocation, node: inventory.NodeDevices
) -> inventory.Allocation:
    """Return an allocation that names its devices, and the memory of GPUs in bytes and percent.

    Shares are cut to whole percents, so that little memory may count as 0 %.
    """
    return {
        kind: tuple(
            _completed(kind, one, node.inventory.devices[kind][one.minor])
            for one in sorted(granted, key=lambda one: one.minor)
        )
        for kind, granted in allocation.items()
    }


def _completed(kind: str, one: inventory.Granted, device: inventory.Device) -> inventory.Granted:
    amounts = _both(one.amounts, device.total) if kind == devices.GPU else one.amounts
    return msgspec.structs.replace(one, amounts=amounts, id=device.id)


def _both(amounts: requests.Amounts, total: requests.Amounts) -> requests.Amounts:
    size = total.get(MEMORY, 0)
    if MEMORY in amounts and RATIO in amounts:
        return amounts
    if MEMORY in amounts:
        return {**amounts, RATIO: amounts[MEMORY] * requests.WHOLE // size if size else 0}
    return {**amounts, MEMORY: amounts.get(RATIO, 0) * size // requests.WHOLE}
