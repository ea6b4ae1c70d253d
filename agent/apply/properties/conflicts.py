"""Others who write to the same files: known owners are put right for ever, the others win."""

from collections.abc import Mapping

from agent.apply import journal
from agent.apply.properties import ownership, partial_properties, property_files
from agent.model import edits

CONFLICTS_BORNE = 3
CONFLICT_SECONDS = 600.0
REASSERT_SECONDS = 10.0


class Quarrels:
    """Remembers what we wrote and who wrote over it."""

    def __init__(self, kept: journal.Journal, handles: property_files.Knobs) -> None:
        self.written: dict[journal.Key, str] = {}
        """What we last saw of our own in each file."""
        self._journal = kept
        self._knobs = handles
        self._conflicts: dict[journal.Key, tuple[float, ...]] = {}
        self._yielded: dict[journal.Key, str] = {}
        self._reasserted: dict[journal.Key, float] = {}

    @property
    def given_up(self) -> Mapping[journal.Key, str]:
        """The files that another program kept writing, and the text that stays."""
        return dict(self._yielded)

    def forget(self, key: journal.Key) -> None:
        """Forget a file that was put back, is gone or was given up."""
        for memory in (self.written, self._conflicts, self._reasserted, self._yielded):
            memory.pop(key, None)

    def judge(
        self, write: ownership.Write, monotonic: float, owners: ownership.Owners
    ) -> tuple[bool, str, str]:
        """Tell whether we may write, and what is to be said: an outcome and a reason, or nothing.

        A known owner is put right again and again, at a limited rate. An unknown writer that
        insists on a file wins it; the caller forgets it then.
        """
        self._pardon(write, owners)
        last = self.written.get(write.key)
        if write.release or last is None or self._knobs.same(write.role, write.current, last):
            return write.release or write.key not in self._yielded, "", ""
        if write.role in edits.OF_PROCESSES and write.current == partial_properties.MIXED:
            # Processes were born since; no other program wrote it.
            return True, "", ""
        if self.is_known(write, owners):
            return self._reassert(write.key, monotonic), "", ""
        recent = [t for t in self._conflicts.get(write.key, ()) if monotonic - t < CONFLICT_SECONDS]
        self._conflicts[write.key] = (*recent, monotonic)
        if len(recent) + 1 < CONFLICTS_BORNE:
            return True, "conflict", f"another program wrote {write.current!r}"
        return False, "given up", f"another program keeps writing {write.current!r}"

    def is_known(self, write: ownership.Write, owners: ownership.Owners) -> bool:
        """Tell whether what stands there comes from an owner of the file, or from before us."""
        entry = self._journal.get(*write.key)
        before_us = (
            entry is not None
            and not entry.foreign
            and self._knobs.same(write.role, write.current, entry.previous)
        )
        return before_us or owners.may_write(write.role, write.group, write.current)

    def forgive(self, key: journal.Key) -> None:
        """Forget conflicts with a writer that turned out to be an owner."""
        self._conflicts.pop(key, None)

    def _pardon(self, write: ownership.Write, owners: ownership.Owners) -> None:
        """Take a file back that was given up to a writer that turned out to be an owner."""
        lost = self._yielded.get(write.key)
        if lost is not None and owners.may_write(write.role, write.group, lost):
            self.forget(write.key)

    def give_up(self, write: ownership.Write) -> None:
        """Leave a file to another program."""
        self.forget(write.key)
        self._yielded[write.key] = write.current

    def _reassert(self, key: journal.Key, monotonic: float) -> bool:
        """A kubelet or a reloaded systemd sets its own value again: known, and no quarrel."""
        if monotonic - self._reasserted.get(key, -REASSERT_SECONDS) < REASSERT_SECONDS:
            return False
        self._reasserted[key] = monotonic
        return True
