"""Cold page cache by the generations of multi-gen LRU, which the kernel shows in debugfs.

A page of a generation was last touched before the next one began. Whether it was touched since is
known only up to the moment at which the youngest one began, for only then the kernel looked again.
So where nothing makes the kernel look (reclaim, or a tool that ages groups), nothing counts as
cold.
"""

import mmap
from collections.abc import Iterable, Iterator
from typing import Final

from agent.host import files

FILE: Final = "kernel/debug/lru_gen"
_LONGEST: Final = 8 * 1024 * 1024
_ROOT: Final = ""


def cold(sys: str, idle_seconds: float) -> dict[str, int]:
    """Return the cold bytes of every group, the groups below included."""
    text = files.read(f"{sys}/{FILE}", _LONGEST).decode("ascii", "replace")
    return parse(text, idle_seconds, mmap.PAGESIZE)


def parse(text: str, idle_seconds: float, page: int) -> dict[str, int]:
    """Add up the pages of generations that are old enough, by group."""
    found: dict[str, int] = {}
    for group, ages in _blocks(text):
        pages = _cold(ages, idle_seconds * 1000)
        for above in _lineage(group):
            found[above] = found.get(above, 0) + pages * page
    return found


def _cold(ages: list[tuple[int, int]], idle: float) -> int:
    """Add up the file pages of generations (age in milliseconds, pages), the oldest first."""
    if not ages:
        return 0
    looked = ages[-1][0]
    # The age of a generation is that of its beginning; its pages were touched until the next began.
    ends = (age for age, _ in ages[1:])
    return sum(pages for (_, pages), end in zip(ages, ends, strict=False) if end - looked >= idle)


def _blocks(text: str) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield the generations of each group on each memory node."""
    group, ages = None, list[tuple[int, int]]()
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] in ("memcg", "node"):
            if group is not None:
                yield group, ages
            ages = []
            if words[0] == "memcg":
                group = words[2].strip("/") if len(words) > 2 else _ROOT
        elif len(words) >= 4:
            ages.append((_number(words[1], line), _number(words[3], line)))
    if group is not None:
        yield group, ages


def _number(word: str, line: str) -> int:
    # What the kernel is about to take away is marked.
    digits = word.rstrip("xX")
    if not digits.isdigit():
        raise files.ReadingError(f"no generation in {line[:60]!r}")
    return int(digits)


def _lineage(group: str) -> Iterable[str]:
    """Return a group and all above it, the root among them."""
    parts = group.split("/") if group else []
    return ["/".join(parts[:count]) for count in range(len(parts) + 1)]
