"""What control groups use and are allowed, on cgroup v1 and v2."""

import dataclasses
import os
from collections.abc import Iterable

from agent import files, layout, state
from domain import cpulists

MOST_GROUPS = 4096
_WITHOUT_CACHE = ("inactive_anon", "active_anon", "unevictable")
_CACHE = ("inactive_file", "active_file")


def _marks(names: Iterable[str], prefix: str = "") -> tuple[bytes, ...]:
    """Return what stands before the value of each field."""
    return tuple(f"\n{prefix}{name} ".encode() for name in names)


_MEMORY = {
    1: _marks((*_WITHOUT_CACHE, *_CACHE), "total_"),
    2: _marks((*_WITHOUT_CACHE, *_CACHE)),
}
_USAGE = _marks(["usage_usec"])
_PERIODS = _marks(["nr_periods", "nr_throttled"])


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of a group in bytes."""

    without_cache: int
    with_cache: int


def detect(root: str) -> layout.Layout | None:
    """Find out how this host arranges its groups; None while no pod could have run here yet."""
    version: layout.Version = 2 if _exists(f"{root}/cgroup.controllers") else 1
    top = root if version == 2 else f"{root}/cpu"
    if _exists(f"{top}/kubepods.slice"):
        return layout.Layout(root, version, "systemd")
    if _exists(f"{top}/kubepods"):
        return layout.Layout(root, version, "cgroupfs")
    return None


class Cgroups:
    """Readings of one cgroup root."""

    def __init__(self, arranged: layout.Layout, kept: files.Kept) -> None:
        self._layout = arranged
        self._kept = kept

    def cpu_seconds(self, group: str) -> float:
        """Return the cpu time that a group has used."""
        data = self._kept.read(self._layout.path(layout.File.CPU_USAGE, group))
        if self._layout.version == 1:
            return number(data, group) / 1e9
        return _fields(data, _USAGE, group)[0] / 1e6

    def memory(self, group: str) -> MemoryUse:
        """Return the memory that a group uses."""
        data = self._kept.read(self._layout.path(layout.File.MEMORY_STAT, group))
        found = _fields(data, _MEMORY[self._layout.version], group)
        plain = sum(found[: len(_WITHOUT_CACHE)])
        return MemoryUse(plain, plain + sum(found[len(_WITHOUT_CACHE) :]))

    def best_effort(self) -> state.BestEffort | None:
        """Return the groups of best-effort work as they stand; None where there are none."""
        root = self._layout.qos_group(state.BEST_EFFORT)
        groups = []
        for path, depth in self._walk(root):
            try:
                groups.append(state.Group(path, depth, self._cpus(layout.File.CPUSET, path)))
            except files.VanishedError:
                continue
        if not groups or groups[0].depth:
            quota = self._quota(root)
            group = state.Group(root, 0, frozenset())
            return None if quota is None else state.BestEffort((group,), None, quota)
        try:
            effective = self._cpus(layout.File.EFFECTIVE_CPUSET, root)
        except files.VanishedError:
            effective = groups[0].cpus
        return state.BestEffort(tuple(groups), effective or None, self._quota(root))

    def allowed_us(self, group: str) -> int | None:
        """Return the cpu time per period, -1 for no limit, None where nobody can tell."""
        try:
            return self._quota(group)
        except files.ReadingError:
            return None

    def throttled(self, group: str) -> tuple[int, int] | None:
        """Return how many periods there were and in how many the group was throttled."""
        try:
            data = self._kept.read(self._layout.path(layout.File.CPU_STAT, group))
            periods, throttled = _fields(data, _PERIODS, group)
        except files.ReadingError:
            return None
        return periods, throttled

    def _cpus(self, file: layout.File, group: str) -> frozenset[int]:
        try:
            text = self._kept.read(self._layout.path(file, group)).decode("ascii").strip()
            return cpulists.parse(text)
        except (UnicodeDecodeError, cpulists.CpuListError) as error:
            raise files.ReadingError(f"group {group}: {error}") from error

    def _quota(self, group: str) -> int | None:
        try:
            data = self._kept.read(self._layout.path(layout.File.CPU_QUOTA, group))
        except files.VanishedError:
            return None
        return quota(data, group)

    def _walk(self, root: str) -> list[tuple[str, int]]:
        """List the class, its pods and their containers, those above first."""
        found = [(root, 0)]
        for group, depth in found:
            if depth == 2 or len(found) >= MOST_GROUPS:
                continue
            folder = self._layout.folder(layout.File.CPUSET, group)
            try:
                with os.scandir(folder) as entries:
                    names = sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
            except OSError:
                continue
            found += [(f"{group}/{name}", depth + 1) for name in names]
        return found[:MOST_GROUPS]


def quota(data: bytes, group: str) -> int:
    """Read the cpu time per 100 ms period, -1 for no limit, from either version's file."""
    words = data.split()
    if not words or len(words) > 2:
        raise files.ReadingError(f"group {group}: no quota in {data[:40]!r}")
    if words[0] in (b"max", b"-1"):
        return -1
    period = number(words[1], group) if len(words) == 2 else 100_000
    if not period:
        raise files.ReadingError(f"group {group}: a quota without a period")
    return number(words[0], group) * 100_000 // period


def number(data: bytes, group: str) -> int:
    """Read a file that holds one natural number."""
    word = data.strip()
    if not word.isdigit() or len(word) > 20:
        raise files.ReadingError(f"group {group}: {data[:40]!r} is no number")
    return int(word)


def _fields(data: bytes, marks: tuple[bytes, ...], group: str) -> list[int]:
    """Pick numbers out of lines such as `name 12`, by what stands before them."""
    # Such a file has dozens of lines, each group has one, and a tick reads them all.
    text = b"\n" + data
    found, missing = [], []
    for mark in marks:
        place = text.find(mark)
        if place < 0:
            missing.append(mark.decode().strip())
            continue
        begin = place + len(mark)
        end = text.find(b"\n", begin)
        found.append(number(text[begin:] if end < 0 else text[begin:end], group))
    if missing:
        raise files.ReadingError(f"group {group}: {', '.join(missing)} is missing")
    return found


def _exists(path: str) -> bool:
    return os.access(path, os.F_OK)
