"""Properties that are not one whole file: lines of a device, a feature, a resctrl group."""

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from agent.apply import resctrl_mount
from agent.host import files
from agent.model import cgroup_layout, cgroup_properties, edits

MIXED: Final = "mixed"
"""What a group reads as whose processes differ."""
MOST_TEXT: Final = 4 << 20
ON, OFF = "1", "0"
LEAST_QUOTA_US: Final = 1000
"""The kernel takes no quota below a millisecond."""
_WITH_SWAP: Final = "memory.memsw.limit_in_bytes"
_NOTHING: Final[Mapping[edits.Role, str]] = {
    edits.Role.IO_WEIGHT: "default",
    edits.Role.IO_COST_QOS: "enable=0",
    edits.Role.IO_COST_MODEL: "ctrl=auto",
}
"""What is written for a device so that it has no line of its own any more; `0` for a limit."""


class Place(Protocol):
    """Where a property lies and how it is read and written."""

    def read(self, group: str) -> str:
        """Return the text that stands there; raises ReadingError."""

    def write(self, group: str, text: str) -> None:
        """Put a text there; raises OSError."""


Read = Callable[[str], bytes]
"""Reads a file of the kernel; raises ReadingError."""


class WholeFile:
    """A property that is all of a file."""

    def __init__(
        self, arranged: cgroup_layout.Layout, role: edits.Role, read: Read = files.read
    ) -> None:
        self._layout = arranged
        self._file = cgroup_properties.FILES[role]
        self._read = read

    def path(self, group: str) -> str:
        """Return where the file lies."""
        return self._layout.path(self._file, group)

    def read(self, group: str) -> str:
        """Return the text without the newline."""
        return _text(self.path(group), self._read)

    def write(self, group: str, text: str) -> None:
        """Write the text; an empty one needs a newline to reach the kernel at all."""
        files.write(self.path(group), text or "\n")


class MemoryLimit(WholeFile):
    """The memory of a group on version 1, whose limit may not exceed that of memory with swap.

    A runtime that sets the first sets the second to the same.
    """

    def write(self, group: str, text: str) -> None:
        """Write the limit; where that of memory with swap is in the way, it is raised as far."""
        try:
            super().write(group, text)
        except OSError as error:
            beside = Path(self.path(group)).with_name(_WITH_SWAP)
            if error.errno != errno.EINVAL or not beside.exists():
                raise
            files.write(str(beside), text)
            super().write(group, text)


class TextFile:
    """All of a file that a program other than the kernel reads, where there may be none.

    It is replaced in one step, so that its reader never sees half of it, and keeps its owner.
    """

    def __init__(self, arranged: cgroup_layout.Layout, role: edits.Role) -> None:
        self._layout, self._file = arranged, cgroup_properties.FILES[role]

    def read(self, group: str) -> str:
        """Return every character, or that there is no such file in its folder."""
        named = self._layout.path(self._file, group)
        if not named:
            raise files.ReadingError("host.terwayQos does not name the folder of Terway's files")
        folder = Path(named).parent
        if not folder.is_dir():
            raise files.VanishedError(f"{folder} is not there")
        try:
            text = files.read(named, MOST_TEXT).decode()
        except files.VanishedError:
            return edits.ABSENT
        except UnicodeDecodeError as error:
            raise files.ReadingError(f"{named} is no text") from error
        if text == edits.ABSENT:
            raise files.ReadingError(f"{named} holds the one word {edits.ABSENT!r}")
        return text

    def write(self, group: str, text: str) -> None:
        """Replace the file, or remove it."""
        path = Path(self._layout.path(self._file, group))
        if text == edits.ABSENT:
            path.unlink(missing_ok=True)
            return
        temporary = path.with_name(f".{path.name}.koord")
        try:
            temporary.write_bytes(text.encode())
            temporary.chmod(0o644)
            if path.exists():
                before = path.stat()
                temporary.chmod(before.st_mode & 0o7777)
                os.chown(temporary, before.st_uid, before.st_gid)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


class Quota(WholeFile):
    """The cpu time of a group on version 1, whose period lies in a file of its own.

    A period other than 100 ms (the kubelet's cpuCFSQuotaPeriod) stands behind the quota as it does
    on version 2; it is not ours and stays.
    """

    def read(self, group: str) -> str:
        """Return the quota, with its period where that is not 100 ms."""
        quota, period = super().read(group), self._period(group)
        return (
            quota if period == cgroup_properties.PERIOD_US or quota == "-1" else f"{quota} {period}"
        )

    def write(self, group: str, text: str) -> None:
        """Write the quota for the period that the group has."""
        words = text.split()
        of = int(words[1]) if len(words) > 1 else cgroup_properties.PERIOD_US
        period = self._period(group)
        if of != period and words[0] != "-1":
            words[0] = str(max(int(words[0]) * period // of, LEAST_QUOTA_US))
        super().write(group, words[0])

    def _period(self, group: str) -> int:
        try:
            path = self._layout.path(cgroup_layout.File.CPU_PERIOD, group)
            text = _text(path, self._read)
        except files.VanishedError:
            return cgroup_properties.PERIOD_US
        return int(text) if text.isdigit() and int(text) else cgroup_properties.PERIOD_US


class Cpuset(WholeFile):
    """The cpus of a group; on v2 an empty list stands for all that the group above has."""

    def write(self, group: str, text: str) -> None:
        """Write the list; where processes forbid an empty one, say what it would stand for."""
        try:
            super().write(group, text)
        except OSError as error:
            if text or error.errno != errno.ENOSPC:
                raise
            above = self._layout.path(cgroup_layout.File.EFFECTIVE_CPUSET, group.rpartition("/")[0])
            super().write(group, _text(above))


class Devices(WholeFile):
    """A property with a line per device, which the kernel takes one at a time.

    On v2 four limits share the lines of one file; only the field of the role is seen here.
    """

    def __init__(self, arranged: cgroup_layout.Layout, role: edits.Role) -> None:
        super().__init__(arranged, role)
        self._nothing = _NOTHING.get(role, "0")
        self._field = cgroup_properties.IO_FIELDS.get(role, "") if arranged.version == 2 else ""

    def read(self, group: str) -> str:
        """Return a line `MAJ:MIN value` for each device that has one."""
        found = cgroup_properties.devices(super().read(group))
        if self._field:
            found = {name: _field(value, self._field) for name, value in found.items()}
        kept = {name: value for name, value in found.items() if value not in ("", "max")}
        return "\n".join(f"{name} {value}" for name, value in sorted(kept.items()))

    def write(self, group: str, text: str) -> None:
        """Write the lines that differ; a device that is not named any more loses its line."""
        now, wanted = cgroup_properties.devices(self.read(group)), cgroup_properties.devices(text)
        for name in sorted(now.keys() | wanted.keys()):
            value = wanted.get(name, self._nothing)
            if now.get(name, self._nothing) == value:
                continue
            if self._field:
                value = f"{self._field}={'max' if value == '0' else value}"
            files.write(self.path(group), f"{name} {value}")


class Feature(WholeFile):
    """One name in a list where `NO_` before a name says that it is off."""

    def path(self, group: str) -> str:
        """Return where the list lies: in a folder of its own since 5.13."""
        new = self._layout.path(cgroup_layout.File.NEW_SCHED_FEATURES, group)
        return new if os.access(new, os.F_OK) else super().path(group)

    def read(self, group: str) -> str:
        """Return 1 or 0; a name that the kernel does not know is not there."""
        words = _text(self.path("")).split()
        if group in words:
            return ON
        if f"NO_{group}" in words:
            return OFF
        raise files.VanishedError(f"{self.path('')}: no feature {group!r}")

    def write(self, group: str, text: str) -> None:
        """Switch the feature."""
        files.write(self.path(""), f"{group}\n" if text == ON else f"NO_{group}\n")


class Schemata(WholeFile):
    """The line of one resource in the schemata of a resctrl group."""

    def __init__(self, arranged: cgroup_layout.Layout, role: edits.Role) -> None:
        super().__init__(arranged, role)
        self._resource = "L3" if role is edits.Role.RESCTRL_L3 else "MB"

    def read(self, group: str) -> str:
        """Return the line, without the blanks that the kernel puts before it."""
        for line in super().read(group).splitlines():
            if line.strip().startswith(f"{self._resource}:"):
                return line.strip()
        raise files.VanishedError(f"{self.path(group)}: no line for {self._resource}")

    def write(self, group: str, text: str) -> None:
        """Write the line."""
        files.write(self.path(group), f"{text}\n")


class ResctrlGroup:
    """Whether a resctrl group exists; the kernel moves the tasks of a removed one to the root."""

    def __init__(self, arranged: cgroup_layout.Layout) -> None:
        self._root = Path(arranged.path(cgroup_layout.File.RESCTRL_SCHEMATA, "")).parent

    def read(self, group: str) -> str:
        """Return `present` or `absent`."""
        if not (self._root / "schemata").exists():
            raise files.VanishedError(f"{self._root} is not mounted")
        return edits.PRESENT if self._path(group).is_dir() else edits.ABSENT

    def write(self, group: str, text: str) -> None:
        """Make or remove the group."""
        if text == edits.PRESENT:
            self._path(group).mkdir(mode=0o755, exist_ok=True)
        else:
            self._path(group).rmdir()

    def _path(self, group: str) -> Path:
        if not group or "/" in group or group.startswith("."):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), group)
        return self._root / group


def place(arranged: cgroup_layout.Layout, role: edits.Role, read: Read = files.read) -> Place:
    """Return the place of a role that is no property of processes; `read` reads plain files."""
    if role is edits.Role.RESCTRL_GROUP:
        return ResctrlGroup(arranged)
    if role is edits.Role.RESCTRL_MOUNT:
        return resctrl_mount.Resctrl(arranged)
    if role in cgroup_properties.WHOLE_TEXTS:
        return TextFile(arranged, role)
    if role in cgroup_properties.BY_DEVICE:
        return Devices(arranged, role)
    if role in (edits.Role.RESCTRL_L3, edits.Role.RESCTRL_MB):
        return Schemata(arranged, role)
    if role is edits.Role.CPUSET:
        return Cpuset(arranged, role, read)
    if role is edits.Role.CPU_QUOTA and arranged.version == 1:
        return Quota(arranged, role, read)
    if role is edits.Role.MEMORY_LIMIT and arranged.version == 1:
        return MemoryLimit(arranged, role, read)
    if role is edits.Role.SCHED_FEATURE:
        return Feature(arranged, role)
    return WholeFile(arranged, role, read)


def _text(path: str, read: Read = files.read) -> str:
    data = read(path)
    try:
        return data.decode("ascii").strip()
    except UnicodeDecodeError as error:
        raise files.ReadingError(f"{path} is no text") from error


def _field(value: str, name: str) -> str:
    """Return one field of `rbps=1 wbps=max riops=max wiops=max`."""
    pairs = (word.partition("=") for word in value.split())
    return next((amount for field, _, amount in pairs if field == name), "")
