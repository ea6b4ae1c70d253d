"""Cards of one kind as the kernel shows them on the PCI bus."""

import os
from collections.abc import Callable, Iterator

from agent.device_daemon.hardware import findings
from agent.devices import device_inventory, pci
from agent.host import files

Wanted = Callable[[pci.Function, str], bool]
"""From a function and its folder to whether it is such a device."""


def cards(sys: str, kind: str, wanted: Wanted) -> tuple[findings.Card, ...]:
    """Return the cards by address; functions that are virtual are part of another card."""
    folder = pci.root(sys)
    found = []
    for one in pci.functions(folder):
        here = f"{folder}/{one.bus}"
        if not pci.ADDRESS.fullmatch(one.bus) or os.path.lexists(f"{here}/physfn"):
            continue
        if wanted(one, here):
            found.append(findings.Card(kind, one.bus, node=numa_node(here)))
    return tuple(found)


def numa_node(folder: str) -> int | None:
    """Return the NUMA node of a PCI device, 0 where the machine has none, None when unreadable."""
    try:
        return max(0, int(files.read(f"{folder}/numa_node")))
    except (files.ReadingError, ValueError):
        return None


def place(sys: str, bus: str) -> device_inventory.Place | None:
    """Return where a PCI device is plugged in, None where the kernel does not say all of it."""
    return pci.place(pci.root(sys), bus) if bus else None


def addresses(folder: str) -> Iterator[tuple[str, str]]:
    """Yield each device of a class of sysfs with its PCI address, empty where it has none."""
    for name in pci.listed(folder):
        parts = os.path.realpath(f"{folder}/{name}").split("/")
        yield name, next((part for part in reversed(parts) if pci.ADDRESS.fullmatch(part)), "")
