"""What the kernel and the machine of this host offer to decisions, looked at once a minute."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from agent.host import files, psi
from agent.model import cgroup_layout, cgroup_properties, edits, state

SECONDS: Final = 60.0
MOST_LOOKED: Final = 64
"""How many pods are looked at to learn how all of them are seen."""
_PR_SCHED_CORE, _GET, _THREAD = 62, 0, 0
_RESCTRL_FLAGS: Final = frozenset({"cat_l3", "mba"})

# The kernel gives the first namespace of process ids this inode.
_FIRST_PIDS = 0xEFFFFFFC


def kernel(arranged: cgroup_layout.Layout, groups: Iterable[str]) -> state.Kernel:
    """Find out which properties groups and the host have, by their files."""
    groups = tuple(groups)
    found = {
        role.value
        for role, file in cgroup_properties.FILES.items()
        if any(os.access(arranged.path(file, group), os.F_OK) for group in groups)
    }
    if os.access(arranged.path(cgroup_layout.File.NEW_SCHED_FEATURES, ""), os.F_OK):
        found.add(edits.Role.SCHED_FEATURE.value)
    if arranged.terway and os.access(arranged.terway, os.F_OK):
        # Its files need not be there yet.
        found |= {role.value for role in cgroup_properties.WHOLE_TEXTS}
    return state.Kernel(frozenset(found), has_core_scheduling())


def sealed(arranged: cgroup_layout.Layout, groups: Iterable[str]) -> frozenset[str]:
    """Return the roles whose files are there and cannot be written, found without writing.

    A file is opened and closed again, which asks the mount, the mode and the security module.
    """
    groups = tuple(groups)
    found: set[str] = set()
    for role, file in cgroup_properties.FILES.items():
        if role in cgroup_properties.WHOLE_TEXTS:
            # It is replaced as a whole, and may not be there yet.
            if arranged.terway and not os.access(arranged.terway, os.W_OK):
                found.add(role.value)
            continue
        paths = (arranged.path(file, group) for group in groups)
        there = [path for path in paths if os.access(path, os.F_OK)]
        if there and not any(map(_opens, there)):
            found.add(role.value)
    return frozenset(found)


def _opens(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW))
    except OSError:
        return False
    return True


def has_core_scheduling() -> bool:
    """Tell whether the kernel keeps cookies of processes; it is asked for our own."""
    import ctypes  # noqa: PLC0415 - 179 KiB, an agent counts its memory until this is asked for

    cookie = ctypes.c_ulong()
    # Refused where the kernel lacks it, and where cores have no threads that could share them.
    found: int = ctypes.CDLL(None).prctl(_PR_SCHED_CORE, _GET, 0, _THREAD, ctypes.byref(cookie))
    return found == 0


def pressure(paths: Mapping[str, str], kept: files.Kept) -> state.Pressure:
    """Read how long tasks wait, from the files of the three resources."""
    found = {name: psi.Wait() for name in ("cpu", "memory", "io")}
    for name, path in paths.items():
        with contextlib.suppress(files.ReadingError):
            found[name] = psi.parse(kept.read(path))
    return state.Pressure(
        cpu=found["cpu"].some,
        memory=found["memory"].some,
        memory_full=found["memory"].full,
        io=found["io"].some,
    )


def highest(found: Iterable[state.Pressure]) -> state.Pressure:
    """Return the most that any of several groups waits."""
    found = tuple(found)

    def most(values: Iterable[float | None]) -> float | None:
        return max((value for value in values if value is not None), default=None)

    return state.Pressure(
        cpu=most(one.cpu for one in found),
        memory=most(one.memory for one in found),
        memory_full=most(one.memory_full for one in found),
        io=most(one.io for one in found),
    )


def pressure_files(arranged: cgroup_layout.Layout, group: str) -> Mapping[str, str]:
    """Return where a group says how long its tasks wait."""
    return {name: arranged.path(file, group) for name, file in psi.FILES.items()}


def caches(proc: str, sys: str) -> state.Caches | None:
    """Return the caches that can be divided, None where the processor or the kernel cannot."""
    root = f"{sys}/fs/resctrl"
    try:
        mask = int(files.read(f"{root}/info/L3/cbm_mask").decode("ascii").strip(), 16)
        schemata = files.read(f"{root}/schemata").decode("ascii")
        vendor, flags = _processor(files.read(f"{proc}/cpuinfo", 8 * 1024 * 1024))
        ids = _cache_ids(schemata)
    except (files.ReadingError, ValueError):
        return None
    if not ids or not flags >= _RESCTRL_FLAGS:
        return None
    return state.Caches(ids, mask, vendor, _resctrl_groups(root))


def can_divide(proc: str, sys: str) -> bool:
    """Tell whether the processor and the kernel could divide the cache, with resctrl mounted."""
    if not os.access(f"{sys}/fs/resctrl", os.F_OK):
        return False
    try:
        return _processor(files.read(f"{proc}/cpuinfo", 8 * 1024 * 1024))[1] >= _RESCTRL_FLAGS
    except files.ReadingError:
        return False


def pod_groups(arranged: cgroup_layout.Layout, classes: Mapping[str, str]) -> Mapping[str, str]:
    """Return every group of a pod on disk, with its Kubernetes class."""
    found: dict[str, str] = {}
    for name, group in classes.items():
        with (
            contextlib.suppress(OSError),
            os.scandir(arranged.folder(cgroup_layout.File.CPU_SHARES, group)) as entries,
        ):
            found |= {
                f"{group}/{entry.name}": name
                for entry in entries
                if cgroup_layout.is_of_pod(entry.name) and entry.is_dir(follow_symlinks=False)
            }
    return found


def containers(arranged: cgroup_layout.Layout, classes: Iterable[str]) -> Iterator[str]:
    """Yield the groups of containers of some pods of each class, those that are there now."""
    looked = 0
    for above in classes:
        folder = arranged.folder(cgroup_layout.File.CPU_SHARES, above)
        for pod in filter(cgroup_layout.is_of_pod, _folders(folder)):
            looked += 1
            yield from (f"{above}/{pod}/{name}" for name in _folders(f"{folder}/{pod}"))
            if looked > MOST_LOOKED:
                return


def _folders(folder: str) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []


def _resctrl_groups(root: str) -> Mapping[str, float]:
    try:
        with os.scandir(root) as entries:
            return {
                entry.name: entry.stat(follow_symlinks=False).st_mtime
                for entry in entries
                if entry.is_dir(follow_symlinks=False)
                and entry.name not in ("info", "mon_data", "mon_groups")
            }
    except OSError:
        return {}


def _cache_ids(schemata: str) -> tuple[int, ...]:
    for line in schemata.splitlines():
        name, _, parts = line.strip().partition(":")
        if name == "L3":
            return tuple(int(part.partition("=")[0]) for part in parts.split(";") if part)
    return ()


def _processor(data: bytes) -> tuple[str, frozenset[str]]:
    vendor, flags = "", frozenset[str]()
    for line in data.decode("ascii", "replace").splitlines():
        name, _, rest = line.partition(":")
        if name.strip() == "vendor_id":
            vendor = rest.strip()
        elif name.strip() == "flags":
            flags = frozenset(rest.split())
        if vendor and flags:
            break
    return vendor, flags


def disks(sys: str) -> Mapping[str, str]:
    """Return the device numbers of disks, by the path of the disk or of a partition of it."""
    found: dict[str, str] = {}
    try:
        with os.scandir(f"{sys}/block") as entries:
            names = sorted(entry.name for entry in entries)
    except OSError:
        return found
    for name in names:
        with contextlib.suppress(files.ReadingError, OSError):
            number = files.read(f"{sys}/block/{name}/dev").decode("ascii", "replace").strip()
            found[f"device:/dev/{name}"] = number
            with os.scandir(f"{sys}/block/{name}") as parts:
                for part in parts:
                    if part.name.startswith(name):
                        found[f"device:/dev/{part.name}"] = number
    return found


def names_processes() -> bool:
    """Tell whether processes of pods can be named, which takes the host's process ids."""
    with contextlib.suppress(OSError):
        return os.stat("/proc/self/ns/pid").st_ino == _FIRST_PIDS  # noqa: PTH116 - no path is kept
    return False
