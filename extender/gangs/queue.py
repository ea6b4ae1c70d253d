"""Which gang group is planned next: fair order, back-off of those that failed, staggering. Pure.

The group of the highest priority comes first, then the one that has waited longest since it was
complete, then by id. A group that found no room waits 1, 2, 4 ... seconds; where capacity was freed
meanwhile it is looked at sooner, the first in line at once and each next one a little later.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Final

FIRST_PAUSE: Final = 1.0
STAGGER: Final = 0.05
"""Seconds between groups that are looked at because capacity was freed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Waiting:
    """A gang group that is complete and has members without a node."""

    group: str
    priority: int
    since: float
    """When it was complete, on the wall clock."""

    @property
    def order(self) -> tuple[int, float, str]:
        """Return where it stands: the smallest comes first."""
        return -self.priority, self.since, self.group


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """What became of the plans of a group; its moments are on the monotonic clock."""

    failures: int
    """In a row."""
    at: float
    """When the last one failed."""
    due: float
    """When it is planned anew."""


class Queue:
    """The groups that wait for a plan."""

    def __init__(self, longest_pause: float = 60.0, look_again: float = 30.0) -> None:
        """Take the longest back-off, and after how long a group is looked at in any case."""
        self._longest, self._again = longest_pause, look_again
        self._waiting: dict[str, Waiting] = {}
        self._attempts: dict[str, Attempt] = {}
        self._line: tuple[Waiting, ...] = ()
        """All that wait, the first in line first."""
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        """Return how many groups wait."""
        return len(self._waiting)

    def take(self, groups: Iterable[Waiting]) -> None:
        """Take in which groups wait now; what is known of others is forgotten."""
        waiting = {one.group: one for one in groups}
        if waiting == self._waiting:
            return
        self._waiting = waiting
        self._line = tuple(sorted(waiting.values(), key=lambda one: one.order))
        self._places = {one.group: place for place, one in enumerate(self._line, start=1)}
        self._attempts = {group: one for group, one in self._attempts.items() if group in waiting}

    def line(self) -> tuple[Waiting, ...]:
        """Return all that wait, the first in line first."""
        return self._line

    def places(self) -> Mapping[str, int]:
        """Return the place in line of every group, 1 is the first."""
        return self._places

    def priority(self, group: str) -> int:
        """Return the priority of a group that waits."""
        return self._waiting[group].priority

    def next(self, now: float, busy: Collection[str] = ()) -> str:
        """Return the first group in line that is due, empty where none is."""
        for one in self._line:
            attempt = self._attempts.get(one.group)
            if one.group not in busy and (attempt is None or attempt.due <= now):
                return one.group
        return ""

    def failing(self) -> Collection[str]:
        """Return the groups of which the last plan failed."""
        return self._attempts.keys()

    def is_due(self, group: str, now: float) -> bool:
        """Whether a group may be planned now, wherever it stands in line."""
        attempt = self._attempts.get(group)
        return attempt is None or attempt.due <= now

    def due(self, busy: Collection[str] = ()) -> float | None:
        """Return when the next group is due, None where none waits."""
        moments = [
            self._attempts[group].due if group in self._attempts else 0.0
            for group in self._waiting
            if group not in busy
        ]
        return min(moments, default=None)

    def failed(self, group: str, now: float) -> float:
        """Take in that a group has no plan, or lost it; return after how long it is due again."""
        before = self._attempts.get(group)
        failures = before.failures + 1 if before is not None else 1
        place = self._places.get(group, 1)
        pause = min(FIRST_PAUSE * 2.0 ** min(failures - 1, 16), self._longest, self._again)
        pause += STAGGER * (place - 1)
        self._attempts[group] = Attempt(failures, now, now + pause)
        return pause

    def placed(self, group: str) -> None:
        """Take in that a group has a plan: its failures no longer count."""
        self._attempts.pop(group, None)

    def forget(self, group: str) -> None:
        """Let a group be planned at once, such as one whose members have changed."""
        self.placed(group)

    def freed(self, now: float) -> None:
        """Take in that capacity was freed: groups that wait are due soon, in the order of the line.

        None is planned twice within a second, and one that fails often is not planned all the time.
        """
        for place, one in enumerate(self._line):
            attempt = self._attempts.get(one.group)
            if attempt is None:
                continue
            pause = min(FIRST_PAUSE * attempt.failures, self._longest / 8)
            soon = max(now, attempt.at + pause) + STAGGER * place
            if soon < attempt.due:
                self._attempts[one.group] = dataclasses.replace(attempt, due=soon)
