"""A generated /sys as far as PCI devices are concerned."""

import itertools
from pathlib import Path


class PciTree:
    """PCI devices below a folder that stands for /sys."""

    def __init__(self, sys: Path) -> None:
        self.sys = sys
        self._numbers = itertools.count(1)
        (sys / "bus/pci/devices").mkdir(parents=True, exist_ok=True)

    def add(
        self, bus, *, vendor, kind, node=0, root="pci0000:3a", below="0000:3a:00.0", product=None
    ):
        """Plug in a device below the ports of bridges and switches, and return its folder."""
        folder = self.sys / "devices" / root / below / bus
        folder.mkdir(parents=True)
        for name, text in (("vendor", vendor), ("class", kind), ("numa_node", str(node))):
            (folder / name).write_text(f"{text}\n")
        if product is not None:
            (folder / "device").write_text(f"{product}\n")
        (self.sys / "bus/pci/devices" / bus).symlink_to(folder)
        return folder

    def remove(self, bus):
        """Pull a device out."""
        (self.sys / "bus/pci/devices" / bus).unlink()

    def add_gpu(self, bus, node=0, **place):
        """Plug in a GPU."""
        return self.add(bus, vendor="0x10de", kind="0x030200", node=node, **place)

    def add_adapter(self, bus, *names, states=("4: ACTIVE",), functions=(), node=1, **place):
        """Plug in an RDMA adapter with its interfaces, the same ports for each."""
        folder = self.add(bus, vendor="0x15b3", kind="0x020000", node=node, **place)
        for name in names:
            for port, state in enumerate(states, 1):
                ports = folder / "infiniband" / name / "ports" / str(port)
                ports.mkdir(parents=True)
                (ports / "state").write_text(f"{state}\n")
            (folder / "infiniband" / name).mkdir(parents=True, exist_ok=True)
        verbs = folder / "infiniband_verbs" / f"uverbs{next(self._numbers) - 1}"
        verbs.mkdir(parents=True)
        (folder / "sriov_numvfs").write_text(f"{len(functions)}\n")
        for number, function in enumerate(functions):
            virtual = self.add(function, vendor="0x15b3", kind="0x020000", node=node, **place)
            (virtual / "infiniband" / f"{names[0]}v{number}" / "ports").mkdir(parents=True)
            (virtual / "physfn").symlink_to(folder)
            (folder / f"virtfn{number}").symlink_to(virtual)
        return folder
