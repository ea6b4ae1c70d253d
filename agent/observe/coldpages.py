"""Page cache that nobody has touched for long, from whichever part of the kernel keeps count.

`kidled` of some vendors' kernels counts idle pages for every group; the generations of the kernel's
own page reclaim (multi-gen LRU) tell of every group as well, as far as they have been aged; DAMON
tells of the node as a whole where somebody has it look. The first of these that works is taken.
"""

from collections.abc import Mapping
from typing import Final

from agent import files, layout

LINES = 31
SECONDS: Final = 5.0
"""Time between two looks at what tells of all groups at once."""
IDLE_SECONDS: Final = 300.0
"""How long a page is left alone before it counts as cold: sixty scans of kidled."""
_FILE_PAGES = (b"cfei", b"dfei", b"cfui", b"dfui")
_FIRST_COLD = 5
"""The first of the columns of age that counts as cold: sixty scans and more."""
_NOT_STARTED = b"scan_period_in_seconds: 0\n"


class Reader:
    """Tells cold bytes of groups, and who counts them."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.source = ""
        """Who counted last: `kidled`, `generations`, `damon`, or empty for nobody."""
        self.reasons: list[str] = []
        """Why nobody counts, when nobody does."""
        self._seconds = seconds
        self._looked: float | None = None
        self._found: Mapping[str, int] = {}

    def cold(self, arranged: layout.Layout, kept: files.Kept, group: str, at: float) -> int | None:
        """Return the bytes of page cache of a group that are cold, None where nobody counts."""
        counted = cold(arranged, kept, group)
        if counted is not None:
            self.source, self.reasons, self._looked = "kidled", [], None
            return counted
        if group and self.source == "kidled":
            # The group is gone; what the node as a whole says decides who counts.
            return None
        if self._looked is None or at - self._looked >= self._seconds:
            self._looked = at
            self._look(arranged)
        return self._found.get(group)

    def _look(self, arranged: layout.Layout) -> None:
        from agent.observe import damon, generations  # noqa: PLC0415 - few agents ask

        self.source, self.reasons, self._found = "", ["kidled: not there, or not started"], {}
        for name, look in (("generations", generations.cold), ("damon", damon.cold)):
            try:
                self._found = look(arranged.sys, IDLE_SECONDS)
            except files.ReadingError as error:
                self.reasons.append(f"{name}: {error}")
            else:
                self.source, self.reasons = name, []
                return


def cold(arranged: layout.Layout, kept: files.Kept, group: str) -> int | None:
    """Return the bytes of page cache that kidled found cold, None where it does not count."""
    try:
        data = kept.read(arranged.path(layout.File.IDLE_PAGES, group))
    except files.VanishedError:
        return None
    return cold_bytes(data, group)


def cold_bytes(data: bytes, group: str) -> int | None:
    """Add up the cold columns of the rows of file pages, None while nothing is scanned."""
    if _NOT_STARTED in data:
        return None
    lines = data.splitlines()
    if len(lines) != LINES:
        raise files.ReadingError(f"group {group}: {len(lines)} lines of idle pages, not {LINES}")
    total = 0
    for line in lines:
        words = line.split()
        if words and words[0] in _FILE_PAGES:
            try:
                total += sum(int(word) for word in words[1 + _FIRST_COLD :])
            except ValueError:
                raise files.ReadingError(f"group {group}: no idle pages in {line[:60]!r}") from None
    return total
