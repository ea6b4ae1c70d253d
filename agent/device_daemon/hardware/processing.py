"""NPUs and other processing accelerators that no vendor tool is known for, from sysfs alone."""

from typing import Final

from agent.device_daemon.hardware import findings, fpga, sysfs
from agent.devices import device_inventory, pci
from api import names

CLASS: Final = "0x1200"
"""Processing accelerators of the PCI specification."""
WITH_A_TOOL: Final = frozenset({"0x19e5", "0x1d22", "0xcabc", "0x9999"})
VENDORS: Final = {"0x1da3": "habana", "0x8086": "intel", "0x1002": "amd", "0x1e36": "enflame"}


def discover(host: findings.Host, _at: float) -> findings.Findings:
    """Return accelerators by PCI class, and those of the kernel's class `accel`."""
    driven = {bus for _, bus in sysfs.addresses(f"{host.sys}/class/accel") if bus}

    def wanted(one: pci.Function, folder: str) -> bool:
        if one.vendor in WITH_A_TOOL or fpga.of_a_maker(one, folder):
            return False
        return one.kind.startswith(CLASS) or one.bus in driven

    cards = sysfs.cards(host.sys, findings.NPU, wanted)
    if not cards:
        return findings.Findings()
    vendors = {one.bus: one.vendor for one in pci.functions(pci.root(host.sys))}
    seen = {vendors.get(card.bus, "") for card in cards}
    if len(seen) != 1:
        # A mixture of makers has no name.
        return findings.Findings(cards)
    vendor = seen.pop()
    name = device_inventory.label(VENDORS.get(vendor, f"pci-{vendor.removeprefix('0x')}"))
    return findings.Findings(cards, labels={names.LABEL_GPU_VENDOR: name} if name else {})
