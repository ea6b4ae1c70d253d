"""GPUs of NVIDIA: through NVML, and as far as sysfs tells where NVML is missing.

They are not written into the device file: the node agent asks NVML itself, which also tells use
and errors.
"""

from typing import cast

import msgspec

from agent.device_daemon.hardware import findings, sysfs
from agent.devices import device_inventory, gpus, pci
from api import names


def discover(host: findings.Host, at: float) -> findings.Findings:
    """Return the GPUs; without NVML those that are plugged in, with nothing of their health."""
    folder = pci.root(host.sys)
    plugged = gpus.plugged_in(folder)
    if not plugged:
        return findings.Findings()
    cards = tuple(
        findings.Card(findings.GPU, bus, node=sysfs.numa_node(f"{folder}/{bus}")) for bus in plugged
    )
    driver = gpus.Gpus(host.sys, lambda: cast(gpus.Driver, host.driver()))
    try:
        found = driver.discover(at)
    finally:
        # An open session keeps others from resetting a GPU, and the next look is minutes away.
        driver.close()
    known = {one.place.bus: one for one in found.devices if one.place is not None}
    return findings.Findings(
        tuple(_told(card, known.get(card.bus)) for card in cards),
        labels=found.labels or {names.LABEL_GPU_VENDOR: "nvidia"},
        problems=found.problems,
    )


def _told(card: findings.Card, device: device_inventory.Device | None) -> findings.Card:
    if device is None:
        return card
    return msgspec.structs.replace(
        card, identity=device.identity, minor=device.minor, healthy=device.healthy
    )
