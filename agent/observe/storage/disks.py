"""Bytes and operations of disks: of the node by disk, of pods and containers in sum."""

import contextlib
from collections.abc import Mapping
from typing import Final

import msgspec

from agent.host import block_devices, files
from agent.model import cgroup_layout
from agent.observe import collectors
from agent.store import time_series
from process.runtime import metrics

_SECTOR: Final = 512
_DIRECTIONS: Final = ("read", "write")
_WORDS: Final = {"rbytes": "read", "wbytes": "write"}
_COUNTS: Final = {"rios": "read", "wios": "write"}
_LONGEST_GAP: Final = 6.0
"""A rate is computed over no more intervals than this."""


class Moved(msgspec.Struct, frozen=True):
    """What was moved since something began, by direction."""

    size: Mapping[str, int]
    """Bytes."""
    times: Mapping[str, int]
    """Operations."""


class Disks:
    """Reads the counters of the machine's disks and of every group."""

    name = "disks"

    def __init__(self, figures: metrics.Registry, seconds: float) -> None:
        self.seconds = seconds
        self._rates = time_series.Counters(_LONGEST_GAP * seconds)
        group, disk = [*collectors.LABELS, "direction"], ["disk", "direction"]
        self._size = figures.table(
            "koord_agent_disk_bytes_total", "Bytes that pods and containers read and wrote.", group
        )
        self._times = figures.table(
            "koord_agent_disk_operations_total", "Operations of pods and containers.", group
        )
        self._node_size = figures.table(
            "koord_agent_node_disk_bytes_total", "Bytes read from and written to a disk.", disk
        )
        self._node_times = figures.table(
            "koord_agent_node_disk_operations_total", "Operations of a disk.", disk
        )
        self._busy = figures.table(
            "koord_agent_node_disk_busy_seconds_total",
            "Time in which a disk had something to do.",
            ["disk"],
        )

    def collect(self, sight: collectors.Sight) -> None:
        """Look at every disk and group once."""
        self.close()
        disks = block_devices.look(sight.layout.sys).disks
        self._node(sight, disks)
        if not counts(sight.layout, sight.kept, disks):
            raise files.ReadingError(
                "on cgroup v1 this kernel counts no disk for cgroups before one of them has a "
                "limit for a disk (blkio.throttle.*)"
            )
        size: dict[tuple[str, ...], float] = {}
        times: dict[tuple[str, ...], float] = {}
        lacking = ""
        for spot in sight.spots():
            try:
                moved = of_group(sight.layout, sight.kept, spot.group, disks)
            except files.ReadingError as error:
                lacking = lacking or str(error)
                continue
            for direction in _DIRECTIONS:
                size[*spot.labels, direction] = moved.size[direction]
                times[*spot.labels, direction] = moved.times[direction]
            self._sample(sight, spot.key, spot.group, moved)
        self._rates.prune(sight.at)
        self._size.replace(size)
        self._times.replace(times)
        if lacking and not size:
            raise files.ReadingError(f"{lacking}; the io controller counts for no pod")

    def close(self) -> None:
        """Tell nothing any more."""
        tables = (self._size, self._times, self._node_size, self._node_times, self._busy)
        for table in tables:
            table.replace({})

    def _node(self, sight: collectors.Sight, disks: Mapping[str, str]) -> None:
        size: dict[tuple[str, ...], float] = {}
        times: dict[tuple[str, ...], float] = {}
        busy: dict[tuple[str, ...], float] = {}
        text = sight.kept.read(f"{sight.layout.proc}/diskstats", 1 << 20)
        for name, moved, milli in of_disks(text, disks):
            for direction in _DIRECTIONS:
                size[name, direction] = moved.size[direction]
                times[name, direction] = moved.times[direction]
            busy[name,] = milli / 1000
        total = Moved(_sum(size), _sum(times))
        if size:
            self._sample(sight, ("node",), "", total)
        self._node_size.replace(size)
        self._node_times.replace(times)
        self._busy.replace(busy)

    def _sample(
        self, sight: collectors.Sight, key: tuple[str, ...], group: str, moved: Moved
    ) -> None:
        """Keep rates: bytes per second as `disk-read`, operations as `disk-read-operations`."""
        for direction in _DIRECTIONS:
            for figure, amount in (
                (f"disk-{direction}", moved.size[direction]),
                (f"disk-{direction}-operations", moved.times[direction]),
            ):
                # The counter belongs to the group: a restarted container has another one.
                rate = self._rates.rate((*key, group, figure), sight.at, amount)
                if rate is not None:
                    sight.add(key, figure, rate)


def counts(arranged: cgroup_layout.Layout, kept: files.Kept, disks: Mapping[str, str]) -> bool:
    """Tell whether the kernel counts what cgroups move at all.

    Since Linux 6.10 the counters of cgroup v1 begin with the first throttling limit of a disk, in
    whatever cgroup; until then every file, that of the root too, says `Total 0`.
    """
    if arranged.version == 2:
        return True
    try:
        data = kept.read(arranged.path(cgroup_layout.File.IO_BYTES, ""))
    except files.ReadingError:
        # Its files are reported one by one.
        return True
    return any(line.split(" ")[0] in disks for line in data.decode("ascii", "replace").split("\n"))


def of_group(
    arranged: cgroup_layout.Layout, kept: files.Kept, group: str, disks: Mapping[str, str]
) -> Moved:
    """Return what a group and those below it have moved to and from real disks."""
    data = kept.read(arranged.path(cgroup_layout.File.IO_BYTES, group))
    if arranged.version == 2:
        return Moved(*(_fields(data, words, disks) for words in (_WORDS, _COUNTS)))
    counts = kept.read(arranged.path(cgroup_layout.File.IO_OPERATIONS, group))
    return Moved(_lines(data, disks), _lines(counts, disks))


def of_disks(data: bytes, disks: Mapping[str, str]) -> list[tuple[str, Moved, int]]:
    """Return what each disk has moved, and for how many milliseconds it was busy."""
    found = []
    for line in data.decode("ascii", "replace").splitlines():
        words = line.split()
        if len(words) < 13 or f"{words[0]}:{words[1]}" not in disks:
            continue
        with contextlib.suppress(ValueError):
            reads, read, writes, wrote, busy = (int(words[at]) for at in (3, 5, 7, 9, 12))
            size = {"read": read * _SECTOR, "write": wrote * _SECTOR}
            found.append((words[2], Moved(size, {"read": reads, "write": writes}), busy))
    return found


def _fields(data: bytes, words: Mapping[str, str], disks: Mapping[str, str]) -> dict[str, int]:
    """Add up lines such as `8:0 rbytes=1 wbytes=2` of version 2."""
    total = dict.fromkeys(_DIRECTIONS, 0)
    for line in data.decode("ascii", "replace").splitlines():
        number, _, rest = line.partition(" ")
        if number in disks:
            for pair in rest.split():
                name, _, value = pair.partition("=")
                if name in words and value.isdigit():
                    total[words[name]] += int(value)
    return total


def _lines(data: bytes, disks: Mapping[str, str]) -> dict[str, int]:
    """Add up lines such as `8:0 Read 12` of version 1."""
    total = dict.fromkeys(_DIRECTIONS, 0)
    for line in data.decode("ascii", "replace").splitlines():
        words = line.split()
        if len(words) == 3 and words[0] in disks and words[2].isdigit():
            direction = words[1].lower()
            if direction in total:
                total[direction] += int(words[2])
    return total


def _sum(amounts: Mapping[tuple[str, ...], float]) -> dict[str, int]:
    total = dict.fromkeys(_DIRECTIONS, 0)
    for (_, direction), amount in amounts.items():
        total[direction] += int(amount)
    return total
