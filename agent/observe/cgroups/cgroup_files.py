"""What control groups use and are allowed, on cgroup v1 and v2."""

import functools
import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from agent.host import files
from agent.model import cgroup_layout, state
from domain.cpus import cpulists

MOST_GROUPS = 4096
DEEPEST = 3
"""How many groups may lie above those of pods."""
DEEPEST_NESTED = 8
"""How far below that of the class groups are listed that containers make inside themselves."""
MOST_LOOKED = 64
_FILES = (
    cgroup_layout.File.CPU_USAGE,
    cgroup_layout.File.MEMORY_STAT,
    cgroup_layout.File.CPU_STAT,
    cgroup_layout.File.CPU_QUOTA,
)
_FOREIGN = frozenset(
    {"system.slice", "user.slice", "machine.slice", "docker", "lxc", "lxc.payload"}
)
_CLASSES = ("burstable", "besteffort", "-burstable.slice", "-besteffort.slice")
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
_LONGEST = 20
"""Digits of the largest number that a kernel writes."""
_LONGEST_QUOTA = 2 * _LONGEST + 2
_REMEMBERED = 256
_FEW = 64
_PERIODS = _marks(["nr_periods", "nr_throttled"])


def _consecutive(marks: Iterable[bytes]) -> re.Pattern[bytes]:
    """Return what finds numbers in lines that follow each other, as kernels write these."""
    return re.compile(b"".join(b"%b([0-9]{1,%d})" % (mark, _LONGEST) for mark in marks) + rb"\n")


_ORDER = ("inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable")
_IN_ORDER = {
    1: (b"\ntotal_inactive_anon ", _consecutive(_marks(_ORDER, "total_"))),
    2: (b"\ninactive_anon ", _consecutive(_marks(_ORDER))),
}
"""What these lines begin with, which is found sooner by itself, and all of them."""
_THROTTLING = _consecutive(_PERIODS)
_USAGE_FIRST = re.compile(rb"usage_usec ([0-9]{1,20})\n")


class MemoryUse(msgspec.Struct, frozen=True, gc=False):
    """Memory of a group in bytes."""

    without_cache: int
    with_cache: int


class _Paths(NamedTuple):
    """The files of a group that are read in every tick."""

    cpu_usage: str
    memory_stat: str
    cpu_stat: str
    cpu_quota: str


def detect(root: str, kubelet_root: str = "") -> cgroup_layout.Layout | None:
    """Find out how this host arranges its groups; None while no pod could have run here yet.

    Where a kubelet keeps its groups below another one, `kubelet_root` names that as its
    `--cgroup-root` does; without it the only one there is is taken, and several are an error.
    """
    version: cgroup_layout.Version = 2 if _exists(f"{root}/cgroup.controllers") else 1
    top = root if version == 2 else f"{root}/cpu"
    made = functools.partial(_arranged, root, version, top)
    if kubelet_root.strip("/"):
        plain = kubelet_root.strip("/")
        base, prefix = cgroup_layout.slices(plain)
        return made(base, prefix) or made(plain, "")
    found = made("", "")
    if found is not None:
        return found
    nested = _nested(top)
    if len(nested) > 1:
        names = ", ".join(base for base, _ in nested[:5])
        raise files.ReadingError(
            f"{root} has groups of pods below {names}; name the one of this node's kubelet in "
            "host.kubeletRoot"
        )
    return made(*nested[0]) if nested else None


def _arranged(
    root: str, version: cgroup_layout.Version, top: str, base: str, prefix: str
) -> cgroup_layout.Layout | None:
    folder = f"{top}/{base}" if base else top
    hybrid = version == 1 and _exists(f"{root}/unified/cgroup.procs")
    name = f"{prefix}-kubepods" if prefix else "kubepods"
    by_systemd = _exists(f"{folder}/{name}.slice")
    plain = not prefix and _exists(f"{folder}/kubepods")
    if not by_systemd and not plain:
        return None
    driver: cgroup_layout.Driver = "systemd" if by_systemd else "cgroupfs"
    if by_systemd and plain and not _has_pods(f"{folder}/{name}.slice"):
        # A kubelet whose driver was changed leaves the groups of the other one behind.
        driver = "cgroupfs" if _has_pods(f"{folder}/kubepods") else "systemd"
    return cgroup_layout.Layout(root, version, driver, base, prefix=prefix, hybrid=hybrid)


def stands(arranged: cgroup_layout.Layout) -> bool:
    """Tell whether the groups of pods still lie where they did; it asks for a file or two."""
    version: cgroup_layout.Version = 2 if _exists(f"{arranged.root}/cgroup.controllers") else 1
    top = arranged.root if version == 2 else f"{arranged.root}/cpu"
    found = _arranged(arranged.root, version, top, arranged.base, arranged.prefix)
    return found is not None and (found.version, found.driver, found.hybrid) == (
        arranged.version,
        arranged.driver,
        arranged.hybrid,
    )


def _has_pods(folder: str) -> bool:
    classes = [name for name in _folders(folder) if name.endswith(_CLASSES)]
    below = (name for above in ("", *classes) for name in _folders(f"{folder}/{above}"))
    return any(map(cgroup_layout.is_of_pod, below))


def _nested(top: str) -> list[tuple[str, str]]:
    """List where groups of pods lie deeper, with what their slices begin with.

    What containers, services and users keep below their own groups is theirs, not this node's.
    """
    found: list[tuple[str, str]] = []
    queue = [""]
    for base in queue:
        folder = f"{top}/{base}" if base else top
        for name in _folders(folder):
            if name in ("kubepods", "kubepods.slice"):
                found.append((base, ""))
            elif name.endswith("-kubepods.slice"):
                found.append((base, name.removesuffix("-kubepods.slice")))
            elif base.count("/") < DEEPEST - 1 and not _foreign(name) and len(queue) < MOST_GROUPS:
                queue.append(f"{base}/{name}" if base else name)
    return found


def _foreign(name: str) -> bool:
    return name in _FOREIGN or name.endswith((".scope", ".service", ".mount", ".socket"))


def runtime(arranged: cgroup_layout.Layout) -> str:
    """Return which runtime's names the groups of containers have, empty where none tells."""
    looked = 0
    for kubernetes_qos in ("Guaranteed", "Burstable", "BestEffort"):
        folder = arranged.folder(cgroup_layout.File.CPU_SHARES, arranged.qos_group(kubernetes_qos))
        for pod in _folders(folder):
            looked += 1
            for name in _folders(f"{folder}/{pod}") if "pod" in pod else ():
                if found := cgroup_layout.runtime_of(name):
                    return found
            if looked > MOST_LOOKED:
                return ""
    return ""


def _folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            found = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(filter(files.is_text, found))


class Cgroups:
    """Readings of one cgroup root."""

    def __init__(self, arranged: cgroup_layout.Layout, kept: files.Kept) -> None:
        self._layout = arranged
        self._kept = kept
        self._paths: dict[str, _Paths] = {}
        """Put together once: a tick reads thousands of files."""
        self._stat: tuple[str | None, bytes] = (None, b"")
        """The last `cpu.stat` that was read, and whose it is."""

    @property
    def layout(self) -> cgroup_layout.Layout:
        """How the groups are arranged."""
        return self._layout

    def begin(self) -> None:
        """Begin a tick: what was read before is old."""
        self._stat = (None, b"")

    def forget(self, pods: Sequence[state.PodState]) -> None:
        """Forget the paths of groups that went, as soon as they are more than those of pods."""
        present = sum(1 + len(pod.containers) for pod in pods)
        if len(self._paths) > 2 * present + _FEW:
            groups = {
                one for pod in pods for one in (pod.group, *(c.group for c in pod.containers))
            }
            self._paths = {group: one for group, one in self._paths.items() if group in groups}

    def cpu_seconds(self, group: str) -> float:
        """Return the cpu time that a group has used."""
        data = self._kept.read(self._of(group).cpu_usage)
        if self._layout.version == 1:
            return number(data, group) / 1e9
        # The same file tells how often the group was throttled.
        self._stat = (group, data)
        quick = _USAGE_FIRST.match(data)
        return (int(quick[1]) if quick else _fields(data, _USAGE, group)[0]) / 1e6

    def memory(self, group: str) -> MemoryUse:
        """Return the memory that a group uses."""
        data = self._kept.read(self._of(group).memory_stat)
        begin, lines = _IN_ORDER[self._layout.version]
        if (place := data.find(begin)) >= 0 and (quick := lines.match(data, place)):
            idle, active, idle_file, active_file, locked = map(int, quick.groups())
            held = idle + active + locked
            return MemoryUse(held, held + idle_file + active_file)
        found = _fields(data, _MEMORY[self._layout.version], group)
        plain = sum(found[: len(_WITHOUT_CACHE)])
        return MemoryUse(plain, plain + sum(found[len(_WITHOUT_CACHE) :]))

    def best_effort(self) -> state.BestEffort | None:
        """Return the groups of best-effort work as they stand; None where there are none."""
        root = self._layout.qos_group(state.BEST_EFFORT)
        groups = []
        for path, depth in self._walk(root):
            try:
                groups.append(state.Group(path, depth, self._cpus(cgroup_layout.File.CPUSET, path)))
            except files.VanishedError:
                # It has gone since its folder was listed.
                continue
        if not groups or groups[0].depth:
            quota = self._quota(root)
            group = state.Group(root, 0, frozenset())
            return None if quota is None else state.BestEffort((group,), None, quota)
        try:
            effective = self._cpus(cgroup_layout.File.EFFECTIVE_CPUSET, root)
        except files.VanishedError:
            effective = groups[0].cpus
        return state.BestEffort(tuple(groups), effective or None, self._quota(root))

    def allowed_us(self, group: str) -> int | None:
        """Return the cpu time per period, -1 for no limit, None where unknown."""
        try:
            return self._quota(group)
        except files.ReadingError:
            return None

    def throttled(self, group: str) -> tuple[int, int] | None:
        """Return how many periods there were and in how many the group was throttled."""
        try:
            last, data = self._stat
            if last != group:
                data = self._kept.read(self._of(group).cpu_stat)
            if quick := _THROTTLING.search(data):
                return int(quick[1]), int(quick[2])
            periods, throttled = _fields(data, _PERIODS, group)
        except files.ReadingError:
            return None
        return periods, throttled

    def _of(self, group: str) -> _Paths:
        """Return where the files of a group lie."""
        found = self._paths.get(group)
        if found is None:
            usage, memory, stat, quota = (self._layout.path(one, group) for one in _FILES)
            # One file on version 2, so that one text is enough.
            stat = usage if stat == usage else stat
            found = self._paths[group] = _Paths(usage, memory, stat, quota)
        return found

    def _cpus(self, file: cgroup_layout.File, group: str) -> frozenset[int]:
        try:
            text = self._kept.read(self._layout.path(file, group)).decode("ascii").strip()
            return cpulists.parse(text)
        except (UnicodeDecodeError, cpulists.CpuListError) as error:
            raise files.ReadingError(f"group {group}: {error}") from error

    def _quota(self, group: str) -> int | None:
        try:
            data = self._kept.read(self._of(group).cpu_quota)
        except files.VanishedError:
            return None
        if self._layout.version == 1 and not data.startswith(b"-1"):
            data = b"%b %b" % (data.strip(), self._period(group))
        return quota(data, group)

    def _period(self, group: str) -> bytes:
        try:
            return self._kept.read(self._layout.path(cgroup_layout.File.CPU_PERIOD, group)).strip()
        except files.VanishedError:
            return b""

    def _walk(self, root: str) -> list[tuple[str, int]]:
        """List the class, its pods and their containers, those above first.

        On version 1 no group may have fewer cpus than one below it, so that the groups that a
        container makes inside itself (an init system, another runtime) are listed as well.
        """
        deepest = DEEPEST_NESTED if self._layout.version == 1 else 2
        found = [(root, 0)]
        for group, depth in found:
            if depth == deepest or len(found) >= MOST_GROUPS:
                continue
            folder = self._layout.folder(cgroup_layout.File.CPUSET, group)
            found += [(cgroup_layout.inner(group, name), depth + 1) for name in _folders(folder)]
        return found[:MOST_GROUPS]


def quota(data: bytes, group: str) -> int:
    """Read the cpu time per 100 ms period, -1 for no limit, from either version's file."""
    try:
        return _quota(data) if len(data) <= _LONGEST_QUOTA else _quota_of(data)
    except ValueError as error:
        raise files.ReadingError(f"group {group}: {error}") from None


def _quota_of(data: bytes) -> int:
    words = data.split()
    if not words or len(words) > 2:
        raise ValueError(f"no quota in {data[:40]!r}")
    if words[0] in (b"max", b"-1"):
        return -1
    period = _natural(words[1]) if len(words) == 2 else 100_000
    if not period:
        raise ValueError("a quota without a period")
    return _natural(words[0]) * 100_000 // period


_quota = functools.lru_cache(_REMEMBERED)(_quota_of)
"""The groups of a node share a few limits, which are read in every tick."""


def number(data: bytes, group: str) -> int:
    """Read a file that holds one natural number."""
    try:
        return _natural(data)
    except ValueError as error:
        raise files.ReadingError(f"group {group}: {error}") from None


def _natural(data: bytes) -> int:
    word = data.strip()
    if not word.isdigit() or len(word) > _LONGEST:
        raise ValueError(f"{data[:40]!r} is no number")
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
        word = text[begin:] if end < 0 else text[begin:end]
        # As `number` does it, which would cost a fifth of a tick.
        plain = word.isdigit() and len(word) <= _LONGEST
        found.append(int(word) if plain else number(word, group))
    if missing:
        raise files.ReadingError(f"group {group}: {', '.join(missing)} is missing")
    return found


def _exists(path: str) -> bool:
    return os.access(path, os.F_OK)
