"""How much of the last-level caches and of the memory bandwidth each class uses (resctrl)."""

import contextlib
import os
from collections.abc import Iterator
from typing import Final

from agent.host import files
from agent.observe import collectors
from process.runtime import metrics

CLASSES: Final = ("LSR", "LS", "BE")
DEFAULT: Final = "default"
"""How tasks of no class are named in metrics."""
_BANDWIDTH: Final = {"local": "mbm_local_bytes", "total": "mbm_total_bytes"}


class Caches:
    """Reads what the processor counts for each group and cache."""

    name = "cache use"

    def __init__(self, figures: metrics.Registry, seconds: float) -> None:
        self.seconds = seconds
        self._occupied = figures.table(
            "koord_agent_cache_occupied_bytes",
            "Bytes of a last-level cache that a class holds.",
            ["class", "cache"],
        )
        self._moved = figures.table(
            "koord_agent_memory_traffic_bytes_total",
            "Bytes between a cache and memory, of its own zone and of all.",
            ["class", "cache", "scope"],
        )

    def collect(self, sight: collectors.Sight) -> None:
        """Look at every class once."""
        self.close()
        root = f"{sight.layout.sys}/fs/resctrl"
        if not os.access(f"{root}/mon_data", os.F_OK):
            raise files.ReadingError(
                f"{root}/mon_data: resctrl is not mounted, or the processor counts nothing (cqm)"
            )
        occupied: dict[tuple[str, ...], float] = {}
        moved: dict[tuple[str, ...], float] = {}
        for name in (DEFAULT, *CLASSES):
            group = root if name == DEFAULT else f"{root}/{name}"
            for cache, folder in _caches(group):
                held = _count(sight.kept, f"{folder}/llc_occupancy")
                if held is not None:
                    occupied[name, cache] = held
                    sight.samples.add(
                        ("node", "cache", name, cache), sight.at, held, sight.keep_seconds
                    )
                for scope, file in _BANDWIDTH.items():
                    count = _count(sight.kept, f"{folder}/{file}")
                    if count is not None:
                        moved[name, cache, scope] = count
                        key = ("node", f"memory-traffic-{scope}", name, cache)
                        sight.samples.add(key, sight.at, count, sight.keep_seconds)
        self._occupied.replace(occupied)
        self._moved.replace(moved)

    def close(self) -> None:
        """Tell nothing any more."""
        self._occupied.replace({})
        self._moved.replace({})


def _caches(group: str) -> Iterator[tuple[str, str]]:
    """Yield the number and the folder of each cache that a group is counted on."""
    with contextlib.suppress(OSError), os.scandir(f"{group}/mon_data") as entries:
        for name in sorted(entry.name for entry in entries):
            kind, _, number = name.rpartition("_")
            if kind == "mon_L3" and number.isdigit():
                yield str(int(number)), f"{group}/mon_data/{name}"


def _count(kept: files.Kept, path: str) -> float | None:
    """Read a counter; the kernel writes a word where it has none to spare or lost one."""
    try:
        text = kept.read(path, 64).strip()
    except files.ReadingError:
        return None
    return float(text) if text.isdigit() else None
