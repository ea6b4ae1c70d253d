"""FPGAs, from sysfs: PCI devices of their makers, and what the kernel's FPGA managers drive."""

import contextlib
from typing import Final

import msgspec

from agent.device_daemon.hardware import findings, sysfs
from agent.devices import pci
from agent.host import files

MAKERS: Final = frozenset({"0x10ee", "0x1172"})
"""Xilinx (AMD) and Altera (Intel)."""
CLASSES: Final = ("0x1200", "0x0580")
"""Processing accelerators, and memory controllers, as which older boards show themselves."""
_ERROR: Final = "error"


def of_a_maker(one: pci.Function, _folder: str) -> bool:
    """Tell whether a PCI function is an FPGA by maker and class."""
    return one.vendor in MAKERS and one.kind.startswith(CLASSES)


def discover(host: findings.Host, _at: float) -> findings.Findings:
    """Return the FPGAs; one without a PCI address is called after its manager, as `fpga0`."""
    cards = {one.bus: one for one in sysfs.cards(host.sys, findings.FPGA, of_a_maker)}
    folder = f"{host.sys}/class/fpga_manager"
    for name, bus in sysfs.addresses(folder):
        healthy = _healthy(f"{folder}/{name}/state")
        known = cards.get(bus)
        if known is not None:
            cards[bus] = msgspec.structs.replace(known, identity=name, healthy=healthy)
            continue
        node = sysfs.numa_node(f"{pci.root(host.sys)}/{bus}") if bus else None
        cards[bus or name] = findings.Card(
            findings.FPGA, bus, identity=name, node=node, healthy=healthy
        )
    return findings.Findings(tuple(cards[key] for key in sorted(cards)))


def _healthy(path: str) -> bool | None:
    """Return what the state of a manager says; one that was never programmed says nothing."""
    with contextlib.suppress(files.ReadingError):
        state = pci.text(path)
        return True if state == "operating" else False if _ERROR in state else None
    return None
