"""RDMA adapters, from what the kernel shows of PCI devices."""

import os
import re
from collections.abc import Iterator
from typing import Final

from agent.devices import device_inventory, pci
from agent.host import files
from api import names

NETWORK: Final = "0x02"
SOURCE: Final = device_inventory.RDMA
_NUMBERED = re.compile(r"mlx\d+_(\d{1,6})")


def discover(sys: str) -> device_inventory.Found:
    """Return the adapters of a host; one that cannot be read is named."""
    root = pci.root(sys)
    found, problems = [], []
    for bus in pci.listed(root):
        try:
            adapter = _adapter(root, bus)
        except files.VanishedError:
            continue
        except files.ReadingError as error:
            problems.append(str(error))
            continue
        if adapter is not None:
            found.append(adapter)
    return device_inventory.Found(tuple(found), problems=tuple(problems[:8]), complete=not problems)


def verbs(sys: str) -> dict[str, str]:
    """Return the name of the verbs interface of every PCI device that has one."""
    root = pci.root(sys)
    found = {bus: pci.listed(f"{root}/{bus}/infiniband_verbs") for bus in pci.listed(root)}
    return {bus: interfaces[0] for bus, interfaces in found.items() if interfaces}


def _adapter(root: str, bus: str) -> device_inventory.Device | None:
    folder = f"{root}/{bus}"
    if not pci.ADDRESS.fullmatch(bus) or not pci.text(f"{folder}/class").startswith(NETWORK):
        return None
    if os.path.lexists(f"{folder}/physfn"):
        return None
    interfaces = pci.listed(f"{folder}/infiniband")
    if not interfaces:
        return None
    states = [state for name in interfaces for state in _states(f"{folder}/infiniband/{name}")]
    inactive = [state for state in states if "ACTIVE" not in state]
    return device_inventory.Device(
        device_inventory.RDMA,
        bus,
        _minor(interfaces),
        {names.RDMA: device_inventory.WHOLE},
        healthy=bool(states) and not inactive,
        place=pci.place(root, bus),
        functions=tuple(_functions(folder)),
    )


def _minor(interfaces: list[str]) -> int | None:
    """Return the number in the first name of the usual form."""
    for name in interfaces:
        if match := _NUMBERED.fullmatch(name):
            return int(match[1])
    return None


def _states(folder: str) -> Iterator[str]:
    for port in pci.listed(f"{folder}/ports"):
        # As "4: ACTIVE"; the word after the number is what counts, and ACTIVE_DEFER counts too.
        yield pci.text(f"{folder}/ports/{port}/state")


def _functions(folder: str) -> Iterator[str]:
    """Return the addresses of the virtual functions, where there are any now."""
    try:
        if int(pci.text(f"{folder}/sriov_numvfs")) <= 0:
            return
    except (files.ReadingError, ValueError):
        return
    for name in pci.listed(folder):
        if name.startswith("virtfn"):
            try:
                bus = os.path.basename(os.readlink(f"{folder}/{name}"))  # noqa: PTH115, PTH119 - texts
            except OSError:
                # The number of virtual functions has just been changed.
                continue
            if pci.ADDRESS.fullmatch(bus):
                yield bus
