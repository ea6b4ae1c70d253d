"""Page cache that was not touched for long, as kidled of some vendors' kernels counts it."""

from agent.host import files
from agent.model import cgroup_layout
from domain import wording

LINES = 31
_FILE_PAGES = (b"cfei", b"dfei", b"cfui", b"dfui")
_FIRST_COLD = 5
"""The first of the columns of age that counts as cold: sixty scans and more."""
_NOT_STARTED = b"scan_period_in_seconds: 0\n"


def cold(arranged: cgroup_layout.Layout, kept: files.Kept, group: str) -> int | None:
    """Return the bytes of page cache that kidled found cold, None where it does not count."""
    try:
        data = kept.read(arranged.path(cgroup_layout.File.IDLE_PAGES, group))
    except files.VanishedError:
        return None
    return cold_bytes(data, group)


def cold_bytes(data: bytes, group: str) -> int | None:
    """Add up the cold columns of the rows of file pages, None while nothing is scanned."""
    if _NOT_STARTED in data:
        return None
    lines = data.splitlines()
    if len(lines) != LINES:
        found = wording.count(len(lines), "line", "lines")
        raise files.ReadingError(f"group {group}: {found} of idle pages, not {LINES}")
    total = 0
    for line in lines:
        words = line.split()
        if words and words[0] in _FILE_PAGES:
            try:
                total += sum(int(word) for word in words[1 + _FIRST_COLD :])
            except ValueError:
                raise files.ReadingError(f"group {group}: no idle pages in {line[:60]!r}") from None
    return total
