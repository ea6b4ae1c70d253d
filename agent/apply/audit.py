"""What was changed on this host, when and why; or what would have been."""

import collections
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from agent.model import edits
from api.wire import durations

_logger = logging.getLogger(__name__)
MOST_RECORDS = 512
MOST_GROUPS_NAMED = 4
MOST_TROUBLED = 4096
"""Of how many groups is remembered which trouble was told."""
AGAIN_SECONDS = 600.0
"""How often trouble that lasts is reported again."""
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
        self._trouble: dict[tuple[str, edits.Role, str, str], float] = {}
        """When the trouble of each group was told, what was met last at the end."""

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
        # Most often the same groups once more: records of many ticks share their names.
        known = {groups: groups for *_, groups in before}
        news = []
        for record in records:
            if (groups := known.get(record.groups)) is not None:
                record = msgspec.structs.replace(record, groups=groups)
            what = (record.outcome, record.role, record.value, record.groups)
            self._last.add(what)
            groups = () if what in before else self._untold(record)
            if not groups:
                continue
            if groups != record.groups:
                record = msgspec.structs.replace(record, groups=groups)
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

    def _untold(self, record: Record) -> tuple[str, ...]:
        """Return the groups whose trouble was not told lately, and remember that it is now.

        Groups that failed together are tried again one after the other.
        """
        if record.outcome not in _TROUBLE:
            return record.groups
        new = []
        for group in record.groups:
            what = (record.outcome, record.role, record.value, group)
            said = self._trouble.pop(what, None)
            if said is None or not 0 <= record.at - said < AGAIN_SECONDS:
                said = record.at
                new.append(group)
            self._trouble[what] = said
        while len(self._trouble) > MOST_TROUBLED:
            del self._trouble[next(iter(self._trouble))]
        return tuple(new)


_TROUBLE = {"failed", "missing", "conflict", "given up"}
