"""Hardware types by name: each has a manager of its own. A new one is a module and a line here."""

from collections.abc import Mapping
from typing import Final

from agent.device_daemon.hardware import (
    adapters,
    cambricon,
    findings,
    fpga,
    huawei,
    kunlun,
    metax,
    nvidia,
    processing,
)

HARDWARE: Final[Mapping[str, findings.Discover]] = {
    "nvidia": nvidia.discover,
    "huawei": huawei.VENDOR.discover,
    "kunlun": kunlun.VENDOR.discover,
    "cambricon": cambricon.VENDOR.discover,
    "metax": metax.VENDOR.discover,
    "processing": processing.discover,
    "rdma": adapters.discover,
    "fpga": fpga.discover,
}
"""In the order in which their labels count: where two set the same one, the first has it."""
