"""When each edit is repeated that did not change: every one at a time of its own. Pure."""

import math
import zlib
from typing import Final

from agent.model import cgroup_layout, edits

_PHASES: Final = 1024


def has(phase: float, before: float, now: float, seconds: float) -> bool:
    """Tell whether what comes every so many seconds, at a phase of them (0..1), has its turn."""
    if not seconds:
        return True
    return math.floor(before / seconds - phase) != math.floor(now / seconds - phase)


class Turns:
    """The edits that are repeated within so many seconds; math.inf repeats none."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._asked: float | None = None
        self._phases: dict[edits.Key, int] = {}
        self._edits: dict[int, list[edits.Key]] = {}

    def add(self, key: edits.Key, edit: edits.Edit) -> None:
        """Give an edit its time.

        What concerns one pod has it at once, so that what is written from above stays in order.
        """
        named = next(filter(cgroup_layout.is_of_pod, edit.group.split("/")), edit.pod or edit.group)
        phase = self._phases[key] = zlib.crc32(named.encode()) % _PHASES
        self._edits.setdefault(phase, []).append(key)

    def drop(self, key: edits.Key) -> None:
        """Forget an edit."""
        phase = self._phases.pop(key)
        self._edits[phase].remove(key)
        if not self._edits[phase]:
            del self._edits[phase]

    def clear(self) -> None:
        """Forget all of them; all have their turn next."""
        self._phases.clear()
        self._edits.clear()
        self._asked = None

    def due(self, now: float) -> set[edits.Key] | None:
        """Return what has its turn since this was asked last; None for everything."""
        before, self._asked = self._asked, now
        if self._seconds == math.inf:
            return None if before is None else set()
        if before is None or now - before >= self._seconds or now < before:
            return None
        begin, end = (math.floor(at / self._seconds % 1 * _PHASES) + 1 for at in (before, now))
        phases = [*range(begin, end)] if begin <= end else [*range(begin, _PHASES), *range(end)]
        return set[edits.Key]().union(*(self._edits.get(phase, ()) for phase in phases))
