"""The block devices of this machine: which are disks, and on which disks the others lie."""

import contextlib
import os
from collections.abc import Mapping
from typing import Final

import msgspec

from agent.host import files

_NO_DISKS: Final = ("loop", "ram", "zram")
_MOST: Final = 1024


class Devices(msgspec.Struct, frozen=True):
    """What `/sys/block` says."""

    numbers: Mapping[str, str]
    """The number `MAJ:MIN` of every device and partition, by name."""
    whole: Mapping[str, str]
    """The device that a partition is part of, by name; a device is its own."""
    below: Mapping[str, tuple[str, ...]]
    """The devices and partitions that a mapped one lies on, by name."""
    mapped: Mapping[str, str]
    """The name that the mapper gives, of devices that belong to a volume group."""

    @property
    def disks(self) -> dict[str, str]:
        """The names of devices that lie on no other one, by number."""
        return {
            self.numbers[name]: name
            for name, whole in self.whole.items()
            if name == whole and not self.below.get(name) and not name.startswith(_NO_DISKS)
        }

    def under(self, name: str) -> frozenset[str]:
        """Return the numbers of the disks that a device, a partition or a mapping lies on."""
        seen, queue, found = set[str](), [name], set[str]()
        while queue:
            one = self.whole.get(queue.pop())
            if one is None or one in seen:
                continue
            seen.add(one)
            below = self.below.get(one, ())
            queue += below
            if not below:
                found.add(self.numbers[one])
        return frozenset(found)

    def named(self, number: str) -> str:
        """Return the name of a device or partition by its number, empty for an unknown one."""
        return next((name for name, known in self.numbers.items() if known == number), "")

    def groups(self) -> dict[str, str]:
        """Return the disk of every volume group that lies on one alone."""
        under: dict[str, set[str]] = {}
        for name, mapped in self.mapped.items():
            under.setdefault(group_of(mapped), set()).update(self.under(name))
        return {name: next(iter(disks)) for name, disks in under.items() if len(disks) == 1}


def look(sys: str) -> Devices:
    """Look at every device once."""
    numbers: dict[str, str] = {}
    whole: dict[str, str] = {}
    below: dict[str, tuple[str, ...]] = {}
    mapped: dict[str, str] = {}
    for name in _names(f"{sys}/block")[:_MOST]:
        folder = f"{sys}/block/{name}"
        number = _word(f"{folder}/dev")
        if not number:
            continue
        numbers[name], whole[name] = number, name
        for part in _names(folder):
            if part.startswith(name) and (of_part := _word(f"{folder}/{part}/dev")):
                numbers[part], whole[part] = of_part, name
        below[name] = tuple(_names(f"{folder}/slaves"))
        if _word(f"{folder}/dm/uuid").startswith("LVM-"):
            mapped[name] = _word(f"{folder}/dm/name")
    return Devices(numbers, whole, below, mapped)


def group_of(mapped: str) -> str:
    """Return the volume group in `group-volume`, in which dashes of names are doubled."""
    return mapped.replace("--", "\0").partition("-")[0].replace("\0", "-")


def _names(folder: str) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)
    return []


def _word(path: str) -> str:
    try:
        return files.read(path, 4096).decode("ascii", "replace").strip()
    except files.ReadingError:
        return ""
