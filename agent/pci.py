"""What the kernel shows of PCI devices."""

import os
import re
from typing import Final

from agent import devices, files

MOST: Final = 4096
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")


def root(sys: str) -> str:
    """Return the folder that lists all devices by their addresses."""
    return f"{sys}/bus/pci/devices"


def listed(folder: str) -> list[str]:
    """Return the sorted names in a folder, none where there is no such folder."""
    try:
        return sorted(os.listdir(folder))[:MOST]  # noqa: PTH208
    except OSError:
        return []


def text(path: str) -> str:
    """Return the one line of a file."""
    return files.read(path).decode("ascii", "replace").strip()


def driver(folder: str) -> str:
    """Return the name of the driver that has a device, empty where none has it."""
    try:
        return os.readlink(f"{folder}/driver").rpartition("/")[2]  # noqa: PTH115
    except OSError:
        return ""


def place(folder: str, bus: str) -> devices.Place | None:
    """Return where a device is plugged in, None where the kernel does not say all of it."""
    try:
        parts = os.path.realpath(f"{folder}/{bus}").split("/")
        node = max(0, int(files.read(f"{folder}/{bus}/numa_node")))
    except (OSError, ValueError, files.ReadingError):
        return None
    pcie = next((part for part in parts if _ROOT.fullmatch(part)), "")
    return devices.Place(node, pcie, bus) if pcie else None
