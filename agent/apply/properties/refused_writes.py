"""Files that refuse to be written: tried again at once a few times, then ever more seldom."""

from collections.abc import Iterable

import msgspec

from agent.apply import journal
from agent.apply.properties import ownership
from agent.model import edits

AT_ONCE = 3
"""Failures after which the next look may try again: a group that was just born is in the way."""
FIRST_SECONDS = 10.0
LONGEST_SECONDS = 300.0
FORGOTTEN_SECONDS = 900.0


class _Refusal(msgspec.Struct, frozen=True):
    write: ownership.Write
    reason: str
    failures: int
    until: float


class Refusals:
    """Remembers which files refused, and until when they are left alone."""

    def __init__(self) -> None:
        self._known: dict[journal.Key, _Refusal] = {}

    def __len__(self) -> int:
        return len(self._known)

    def held(self, key: journal.Key, now: float) -> tuple[ownership.Write, str] | None:
        """Return what was refused, and why, while it is too early to try again."""
        found = self._known.get(key)
        if found is None or now >= found.until:
            return None
        return found.write, found.reason

    def add(self, write: ownership.Write, reason: str, now: float) -> None:
        """Remember a refusal; those of groups that went are forgotten."""
        before = self._known.pop(write.key, None)
        failures = before.failures + 1 if before else 1
        late = min(failures - AT_ONCE, 16)
        pause = min(FIRST_SECONDS * 2.0**late, LONGEST_SECONDS) if late >= 0 else 0.0
        # In the order of their time, so that the oldest stand first.
        self._known[write.key] = _Refusal(write, reason, failures, now + pause)
        for key, found in tuple(self._known.items()):
            if now - found.until <= FORGOTTEN_SECONDS:
                break
            del self._known[key]

    def forget(self, key: journal.Key) -> None:
        """Forget a file that was written or is gone."""
        self._known.pop(key, None)


class Owed:
    """The releases that failed: asked for again until they are done or the value is wanted anew."""

    def __init__(self, kept: journal.Journal) -> None:
        self._journal = kept
        self._edits: dict[journal.Key, edits.Edit] = {}

    def beside(self, wanted: tuple[edits.Edit, ...]) -> tuple[edits.Edit, ...]:
        """Return what is wanted and what is owed, unless that is wanted otherwise by now."""
        if not self._edits:
            return wanted
        named = {edit.key for edit in wanted}
        return (*wanted, *(edit for key, edit in self._edits.items() if key not in named))

    def note(self, asked: Iterable[edits.Edit]) -> None:
        """Remember what is still to be released: what the journal names is not put back yet."""
        for edit in asked:
            if edit.value is None and self._journal.get(*edit.key) is not None:
                self._edits[edit.key] = edit
            else:
                self._edits.pop(edit.key, None)

    def clear(self) -> None:
        """Owe nothing: everything is put back at once."""
        self._edits.clear()
