"""What this host offers to strategies, as facts."""

import contextlib
import os

from agent.host import files
from agent.model import capability_matrix, cgroup_layout
from agent.observe.node import kernel_features

_LONGEST = 1 << 22
_CLASSES = ("Guaranteed", "Burstable", "BestEffort")


def facts(arranged: cgroup_layout.Layout | None, proc: str, sys: str) -> capability_matrix.Facts:
    """Look at the kernel, its groups and what this process may do."""
    if arranged is None:
        return capability_matrix.Facts(os.uname().release, 0, "", frozenset())
    groups = [arranged.qos_group(name) for name in _CLASSES]
    kernel = kernel_features.kernel(arranged, (*groups, ""))
    above = groups[0]
    return capability_matrix.Facts(
        kernel=os.uname().release,
        version=arranged.version,
        driver=arranged.driver,
        roles=kernel.roles,
        writable=os.access(arranged.path(cgroup_layout.File.CPU_SHARES, above), os.W_OK),
        sealed=kernel_features.sealed(arranged, (*groups, "")),
        processes_writable=not _read_only(proc),
        pressure=_says_pressure(arranged, groups),
        reclaim=any(
            os.access(arranged.path(cgroup_layout.File.MEMORY_RECLAIM, group), os.W_OK)
            for group in groups
        ),
        core_scheduling=kernel.core_scheduling,
        cache_division=kernel_features.caches(proc, sys) is not None,
        host_pids=_host_pids(arranged, groups),
        capabilities=_capabilities(),
    )


def _read_only(proc: str) -> bool:
    with contextlib.suppress(OSError):
        return bool(os.statvfs(proc).f_flag & os.ST_RDONLY)
    return False


def _host_pids(arranged: cgroup_layout.Layout, groups: list[str]) -> bool:
    """Tell whether processes of pods have numbers here.

    In the first namespace they have. In another one, such as that of a node that is a container
    itself, those that are seen tell: version 2 shows 0 for the others, version 1 leaves them out.
    """
    if kernel_features.names_processes():
        return True
    own, seen = str(os.getpid()).encode(), False
    for group in kernel_features.containers(arranged, groups):
        with contextlib.suppress(files.ReadingError):
            pids = files.read(arranged.path(cgroup_layout.File.PROCESSES, group), _LONGEST).split()
            if b"0" in pids:
                return False
            seen = seen or (bool(pids) and own not in pids)
    return seen


def _says_pressure(arranged: cgroup_layout.Layout, groups: list[str]) -> bool:
    """Tell whether any group says how long tasks wait; a kernel may have it switched off."""
    for group in groups:
        with contextlib.suppress(files.ReadingError):
            files.read(arranged.path(cgroup_layout.File.CPU_PRESSURE, group))
            return True
    return False


def _capabilities() -> frozenset[int]:
    """Return the effective capabilities of this process."""
    with contextlib.suppress(files.ReadingError, ValueError):
        for line in files.read("/proc/self/status").decode("ascii", "replace").splitlines():
            if line.startswith("CapEff:"):
                mask = int(line.split()[1], 16)
                return frozenset(bit for bit in range(64) if mask >> bit & 1)
    return frozenset()
