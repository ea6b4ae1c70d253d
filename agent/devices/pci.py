"""What the kernel shows of PCI devices."""

import os
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from agent.devices import device_inventory
from agent.host import files

MOST: Final = 4096
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")


def root(sys: str) -> str:
    """Return the folder that lists all devices by their addresses."""
    return f"{sys}/bus/pci/devices"


def listed(folder: str) -> list[str]:
    """Return the sorted names in a folder, none where there is no such folder."""
    try:
        return sorted(os.listdir(folder))[:MOST]  # noqa: PTH208 - names alone
    except OSError:
        return []


def text(path: str) -> str:
    """Return the one line of a file."""
    return files.read(path).decode("ascii", "replace").strip()


class Function(msgspec.Struct, frozen=True):
    """One function of a PCI device, with the hexadecimal numbers of its configuration space."""

    bus: str
    """Address as domain:bus:device.function."""
    vendor: str
    """As `0x10de`."""
    kind: str
    """Class, subclass and programming interface, as `0x030200`."""


def functions(folder: str) -> Iterator[Function]:
    """Yield the functions in a folder of PCI devices; one that cannot be read is left out."""
    for bus in listed(folder):
        try:
            yield Function(bus, text(f"{folder}/{bus}/vendor"), text(f"{folder}/{bus}/class"))
        except files.ReadingError:
            continue


def product(folder: str) -> str:
    """Return the product of a PCI device as `0xd802`, empty where it cannot be read."""
    try:
        return text(f"{folder}/device")
    except files.ReadingError:
        return ""


def driver(folder: str) -> str:
    """Return the name of the driver that has a device, empty where none has it."""
    try:
        return os.readlink(f"{folder}/driver").rpartition("/")[2]  # noqa: PTH115 - a text
    except OSError:
        return ""


def place(folder: str, bus: str) -> device_inventory.Place | None:
    """Return where a device is plugged in, None where the kernel does not say all of it."""
    try:
        parts = os.path.realpath(f"{folder}/{bus}").split("/")
        node = max(0, int(files.read(f"{folder}/{bus}/numa_node")))
    except (OSError, ValueError, files.ReadingError):
        return None
    pcie = next((part for part in parts if _ROOT.fullmatch(part)), "")
    return device_inventory.Place(node, pcie, bus) if pcie else None
