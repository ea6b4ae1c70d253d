"""What was changed on this host, when and why; or what would have been."""

import collections
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from agent import edits
from api import durations

_logger = logging.getLogger(__name__)
MOST_RECORDS = 512
MOST_GROUPS_NAMED = 4
AGAIN_SECONDS = 600.0
"""Trouble that lasts is told again so often."""
_What = tuple[str, edits.Role, str, tuple[str, ...]]


class Record(msgspec.Struct, frozen=True):
    """One outcome for one value, of all groups that it concerns."""

    at: float
    outcome: str
    """`would have written`, `written`, `adjusted`, `put back`, `left`, `failed`, `missing` (the
    kernel has no such property), `conflict` or `given up`."""
    role: edits.Role
    value: str
    groups: tuple[str, ...]
    reason: str
    previous: str = ""
    """What stood there before; empty where the groups differ in it."""

    def as_json(self) -> dict[str, Any]:
        """Return the record as it is served."""
        return {**msgspec.structs.asdict(self), "groups": list(self.groups)}

    def as_event(self) -> dict[str, Any]:
        """Return the record as a line of the audit log: what, where, from, to, why."""
        return {
            "createdAt": durations.moment(self.at),
            "type": "group",
            "reason": self.outcome,
            "property": self.role.value,
            "groups": list(self.groups),
            "from": self.previous,
            "to": self.value,
            "message": self.reason,
        }


class Audit:
    """A bounded record of what the agent did; the newest replaces the oldest."""

    def __init__(self, most: int = MOST_RECORDS) -> None:
        self.sink: Callable[[Sequence[Record]], None] | None = None
        """Takes what is news, once per tick that has any."""
        self._records: collections.deque[Record] = collections.deque(maxlen=most)
        self._last: set[_What] = set()
        self._trouble: dict[_What, float] = {}

    def __len__(self) -> int:
        return len(self._records)

    def records(self) -> list[Record]:
        """Return everything remembered, oldest first."""
        return list(self._records)

    def add(self, records: Iterable[Record]) -> None:
        """Take the outcomes of one tick; what the last tick said as well is not said again.

        Nor is trouble that was said a while ago, though it was not looked at in between.
        """
        before, self._last = self._last, set()
        news = []
        for record in records:
            what = (record.outcome, record.role, record.value, record.groups)
            self._last.add(what)
            if what in before or self._known(what, record):
                continue
            news.append(record)
            named = ",".join(record.groups[:MOST_GROUPS_NAMED])
            level = logging.WARNING if record.outcome in _TROUBLE else logging.INFO
            _logger.log(
                level,
                "%s role=%s value=%r groups=%d named=%s reason=%r",
                record.outcome,
                record.role.value,
                record.value,
                len(record.groups),
                named,
                record.reason,
            )
        self._records.extend(news)
        if news and self.sink is not None:
            self.sink(news)

    def _known(self, what: _What, record: Record) -> bool:
        """Tell whether the same trouble was told lately, and remember that it was."""
        if record.outcome not in _TROUBLE:
            return False
        said = self._trouble.pop(what, None)
        known = said is not None and 0 <= record.at - said < AGAIN_SECONDS
        self._trouble[what] = said if known and said is not None else record.at
        while len(self._trouble) > MOST_RECORDS:
            del self._trouble[next(iter(self._trouble))]
        return known


_TROUBLE = {"failed", "missing", "conflict", "given up"}
