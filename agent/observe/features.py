"""What this host offers to strategies, as facts."""

import contextlib
import os

from agent import capabilities, files, layout, matrix

_CLASSES = ("Guaranteed", "Burstable", "BestEffort")


def facts(arranged: layout.Layout | None, proc: str, sys: str) -> matrix.Facts:
    """Look at the kernel, its groups and what this process may do."""
    if arranged is None:
        return matrix.Facts(os.uname().release, 0, "", frozenset())
    groups = [arranged.qos_group(name) for name in _CLASSES]
    kernel = capabilities.kernel(arranged, (*groups, ""))
    above = groups[0]
    return matrix.Facts(
        kernel=os.uname().release,
        version=arranged.version,
        driver=arranged.driver,
        roles=kernel.roles,
        writable=os.access(arranged.path(layout.File.CPU_SHARES, above), os.W_OK),
        pressure=_says_pressure(arranged, groups),
        reclaim=any(
            os.access(arranged.path(layout.File.MEMORY_RECLAIM, group), os.W_OK) for group in groups
        ),
        core_scheduling=kernel.core_scheduling,
        cache_division=capabilities.caches(proc, sys) is not None,
        host_pids=capabilities.names_processes(),
        capabilities=_capabilities(),
    )


def _says_pressure(arranged: layout.Layout, groups: list[str]) -> bool:
    """Tell whether any group says how long tasks wait; a kernel may have it switched off."""
    for group in groups:
        with contextlib.suppress(files.ReadingError):
            files.read(arranged.path(layout.File.CPU_PRESSURE, group))
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
