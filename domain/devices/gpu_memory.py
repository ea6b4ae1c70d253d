"""GPU memory as bytes and as a share: what a pod asks for in one is recorded in both."""

import dataclasses

from api import names
from api.koordinator import devices
from domain.devices import inventory, requests

MEMORY, RATIO = names.GPU_MEMORY, names.GPU_MEMORY_RATIO


def completed(
    allocation: inventory.Allocation, node: inventory.NodeDevices
) -> inventory.Allocation:
    """Return an allocation whose GPUs name their memory in bytes and in percent.

    Shares are cut to whole percents, so that little memory may count as 0 %.
    """
    if devices.GPU not in allocation:
        return allocation
    known = node.inventory.devices[devices.GPU]
    granted = tuple(
        dataclasses.replace(one, amounts=_both(one.amounts, known[one.minor].total))
        for one in allocation[devices.GPU]
    )
    return {**allocation, devices.GPU: granted}


def _both(amounts: requests.Amounts, total: requests.Amounts) -> requests.Amounts:
    size = total.get(MEMORY, 0)
    if MEMORY in amounts and RATIO in amounts:
        return amounts
    if MEMORY in amounts:
        return {**amounts, RATIO: amounts[MEMORY] * requests.WHOLE // size if size else 0}
    return {**amounts, MEMORY: amounts.get(RATIO, 0) * size // requests.WHOLE}
