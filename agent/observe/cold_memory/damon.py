"""Cold page cache of the whole node, where DAMON is configured to look for it.

DAMON has one set of observers for the whole machine, which its administrator, a balloon or a
reclaimer may have claimed; so it is only read. A scheme is of use that does nothing but count
(`stat`) memory without any access, leaves out anonymous pages, and is refreshed by the kernel.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Final

from agent.host import files

FOLDER: Final = "kernel/mm/damon/admin/kdamonds"
_MOST_REGIONS: Final = 1024
_NODE: Final = ""


def cold(sys: str, idle_seconds: float) -> dict[str, int]:
    """Return the cold bytes of the node; raises ReadingError with what is missing."""
    root = f"{sys}/{FOLDER}"
    for kdamond in _numbered(root):
        if _word(f"{kdamond}/state") != "on" or _word(f"{kdamond}/refresh_ms") in ("", "0"):
            continue
        for context in _numbered(f"{kdamond}/contexts"):
            if _word(f"{context}/operations") != "paddr":
                continue
            for scheme in _numbered(f"{context}/schemes"):
                if _fits(context, scheme, idle_seconds):
                    return {_NODE: _passed(scheme)}
    raise files.ReadingError(f"{root} has no scheme that counts page cache without access")


def _fits(context: str, scheme: str, idle_seconds: float) -> bool:
    pattern = f"{scheme}/access_pattern"
    interval = _natural(f"{context}/monitoring_attrs/intervals/aggr_us")
    age = _natural(f"{pattern}/age/min") * interval / 1e6
    return (
        _word(f"{scheme}/action") == "stat"
        and _word(f"{pattern}/nr_accesses/max") == "0"
        and age >= idle_seconds
        and any(
            _word(f"{one}/type") == "anon"
            and _word(f"{one}/matching") == "Y"
            and _word(f"{one}/allow") == "N"
            for kind in ("ops_filters", "filters")
            for one in _numbered(f"{scheme}/{kind}")
        )
    )


def _passed(scheme: str) -> int:
    regions = list(_numbered(f"{scheme}/tried_regions"))
    if len(regions) > _MOST_REGIONS:
        raise files.ReadingError(f"{scheme} has more than {_MOST_REGIONS} regions")
    return sum(_natural(f"{region}/sz_filter_passed") for region in regions)


def _numbered(folder: str) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = sorted((e.name for e in entries if e.name.isdigit()), key=int)
        yield from (f"{folder}/{name}" for name in names)


def _word(path: str) -> str:
    try:
        return files.read(path, 4096).decode("ascii", "replace").strip()
    except files.VanishedError:
        return ""


def _natural(path: str) -> int:
    word = _word(path)
    return int(word) if word.isdigit() else 0
