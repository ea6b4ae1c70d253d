"""Effective cpusets of cgroups: those of pods, and those outside of pods that are pinned."""

import os
from collections.abc import Iterable
from typing import Final

from agent.host import files
from agent.model import cgroup_layout
from domain.cpus import cpulists

MOST_GROUPS: Final = 512
"""Cgroups outside of pods that one look reads."""
DEEPEST: Final = 3


def effective(arranged: cgroup_layout.Layout, groups: Iterable[str]) -> dict[str, frozenset[int]]:
    """Return the CPUs that the kernel lets each cgroup use; one that is gone is left out."""
    found = {}
    for group in groups:
        cpus = _read(arranged, cgroup_layout.File.EFFECTIVE_CPUSET, group)
        if cpus is None:
            cpus = _read(arranged, cgroup_layout.File.CPUSET, group)
        if cpus:
            found[group] = cpus
    return found


def pinned(arranged: cgroup_layout.Layout, online: frozenset[int]) -> dict[str, frozenset[int]]:
    """Return the cgroups outside of pods that are confined to fewer CPUs than the machine has.

    A cgroup that inherits its CPUs is none of them, nor is one that the cgroups of pods lie in.
    """
    pods = arranged.qos_group("Guaranteed")
    found: dict[str, frozenset[int]] = {}
    queue = [("", 0)]
    looked = 0
    for above, depth in queue:
        for name in _folders(arranged.folder(cgroup_layout.File.CPUSET, above)):
            group = f"{above}/{name}" if above else name
            if group == pods or looked >= MOST_GROUPS:
                continue
            looked += 1
            cpus = _read(arranged, cgroup_layout.File.CPUSET, group)
            encloses = pods.startswith(f"{group}/")
            if cpus and cpus < online and not encloses:
                found[group] = cpus
            elif depth < DEEPEST - 1:
                queue.append((group, depth + 1))
    return found


def _read(
    arranged: cgroup_layout.Layout, file: cgroup_layout.File, group: str
) -> frozenset[int] | None:
    try:
        return cpulists.parse(files.read(arranged.path(file, group)).decode("ascii").strip())
    except (files.ReadingError, UnicodeDecodeError, cpulists.CpuListError):
        # A cgroup may end at any moment, and one without the file has no CPUs of its own.
        return None


def _folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(one.name for one in entries if one.is_dir(follow_symlinks=False))
    except OSError:
        return []
