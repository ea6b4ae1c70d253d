"""Write edits in a safe order, only what changed, and put everything back in the end."""

import dataclasses
import errno
from collections.abc import Iterable, Mapping, Sequence

from agent import edits, files
from agent.apply import audit, journal, knobs
from domain import cpulists

CONFLICTS_BORNE = 3
CONFLICT_SECONDS = 600.0
REASSERT_SECONDS = 10.0
_GONE = {errno.ENOENT, errno.ENODEV}
_Key = tuple[edits.Role, str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Write:
    """One file that has to change."""

    role: edits.Role
    group: str
    current: str
    target: str
    reason: str
    release: bool

    @property
    def key(self) -> _Key:
        return self.role, self.group

    @property
    def depth(self) -> int:
        return self.group.count("/")


@dataclasses.dataclass(slots=True)
class Outcome:
    """What became of the edits of one tick."""

    records: list[tuple[str, _Write, str]] = dataclasses.field(default_factory=list)
    problem: str = ""
    """Why nothing at all could be written."""

    def note(self, outcome: str, write: _Write, reason: str = "") -> None:
        """Add what became of one file."""
        self.records.append((outcome, write, reason or write.reason))

    @property
    def failures(self) -> int:
        """How many files could not be written."""
        return sum(outcome == "failed" for outcome, _, _ in self.records)

    def summary(self, at: float) -> list[audit.Record]:
        """Return one record per outcome, role and value."""
        together: dict[tuple[str, edits.Role, str, str], list[str]] = {}
        for outcome, write, reason in self.records:
            key = (outcome, write.role, write.target, reason)
            together.setdefault(key, []).append(write.group)
        return [
            audit.Record(at, outcome, role, value, tuple(sorted(groups)), reason)
            for (outcome, role, value, reason), groups in together.items()
        ]


class Executor:
    """Turns edits into writes on one host."""

    def __init__(self, handles: knobs.Knobs, kept: journal.Journal, *, writing: bool) -> None:
        self._knobs = handles
        self._journal = kept
        self._writing = writing
        self._written: dict[_Key, str] = {}
        self._conflicts: dict[_Key, tuple[float, ...]] = {}
        self._yielded: dict[_Key, str] = {}
        self._reasserted: dict[_Key, float] = {}

    @property
    def given_up(self) -> Mapping[_Key, str]:
        """The files that somebody else insisted on, and the text that won."""
        return dict(self._yielded)

    def apply(self, wanted: Iterable[edits.Edit], monotonic: float) -> Outcome:
        """Carry out the edits of one tick, or say what would have been done."""
        outcome = Outcome()
        writes = [
            write
            for edit in wanted
            if (write := self._plan(edit, outcome)) and self._mine(write, monotonic, outcome)
        ]
        if not self._writing:
            for write in writes:
                outcome.note("would have written", write)
            return outcome
        self._carry_out(writes, outcome)
        return outcome

    def put_back(self, reason: str) -> Outcome:
        """Put back every file that the journal names, and what was born inside them since."""
        outcome = Outcome()
        seen: set[_Key] = set()
        writes = []
        for entry in self._journal.entries:
            for group in self._below(entry.role, entry.group):
                edit = edits.Edit(entry.role, group, None, reason)
                write = self._plan(edit, outcome) if (entry.role, group) not in seen else None
                seen.add((entry.role, group))
                if write:
                    writes.append(write)
        self._carry_out(writes, outcome)
        if not outcome.problem:
            self._commit(outcome)
        return outcome

    def _plan(self, edit: edits.Edit, outcome: Outcome) -> _Write | None:
        """Compare an edit with the host; None where nothing is to be done."""
        try:
            current = self._knobs.read(edit.role, edit.group)
        except files.VanishedError:
            self._forget((edit.role, edit.group))
            return None
        except files.ReadingError as error:
            unread = _Write(edit.role, edit.group, "", edit.value or "", edit.reason, False)
            outcome.note("failed", unread, str(error))
            return None
        release = edit.value is None
        if edit.value is None:
            before = self._previous(edit.role, edit.group, current)
            target = current if before is None else before
        else:
            target = self._knobs.render(edit.role, edit.value)
        write = _Write(edit.role, edit.group, current, target, edit.reason, release)
        if self._knobs.same(edit.role, current, target):
            if release:
                self._forget(write.key)
            return None
        return write

    def _previous(self, role: edits.Role, group: str, current: str) -> str | None:
        """What the group held before us; None where we never had a hand in it.

        A group that was born inside one that we confined begins confined: what it would have
        had without us is what the one above had before.
        """
        entry = self._journal.get(role, group)
        if entry is not None:
            return entry.previous
        if role is not edits.Role.CPUSET or not self._knobs.inherits:
            return None
        above = group
        while "/" in above:
            above = above.rpartition("/")[0]
            entry = self._journal.get(role, above)
            if entry is None:
                continue
            confined = self._written.get(entry.key)
            if confined is None:
                try:
                    confined = self._knobs.read(role, above)
                except files.ReadingError:
                    return None
            inherited = self._knobs.same(role, confined, current)
            return entry.previous if inherited else None
        return None

    def _mine(self, write: _Write, monotonic: float, outcome: Outcome) -> bool:
        """Tell whether we may write: somebody else who insists on a file wins it."""
        last = self._written.get(write.key)
        if write.release or last is None or self._knobs.same(write.role, write.current, last):
            return write.release or write.key not in self._yielded
        entry = self._journal.get(*write.key)
        if entry is not None and self._knobs.same(write.role, write.current, entry.previous):
            # A kubelet or a reloaded systemd sets its own value again: known, and no quarrel.
            if monotonic - self._reasserted.get(write.key, -REASSERT_SECONDS) < REASSERT_SECONDS:
                return False
            self._reasserted[write.key] = monotonic
            return True
        recent = [t for t in self._conflicts.get(write.key, ()) if monotonic - t < CONFLICT_SECONDS]
        self._conflicts[write.key] = (*recent, monotonic)
        if len(recent) + 1 < CONFLICTS_BORNE:
            outcome.note("conflict", write, f"somebody else wrote {write.current!r}")
            return True
        outcome.note("given up", write, f"somebody else keeps writing {write.current!r}")
        self._forget(write.key)
        self._yielded[write.key] = write.current
        return False

    def _carry_out(self, writes: Sequence[_Write], outcome: Outcome) -> None:
        for write in writes:
            if not write.release and self._journal.get(*write.key) is None:
                before = self._previous(write.role, write.group, write.current)
                previous = write.current if before is None else before
                self._journal.put(journal.Entry(write.role, write.group, previous))
        if not self._commit(outcome):
            return
        failed: set[_Key] = set()
        # Widen from the top so that a child never exceeds its parent, then tighten from below.
        for write in sorted(writes, key=lambda w: w.depth):
            wider = _wider(write)
            if wider is not None and not self._write(write, wider, outcome):
                failed.add(write.key)
        for write in sorted(writes, key=lambda w: -w.depth):
            if write.key not in failed and self._finish(write, outcome):
                outcome.note("put back" if write.release else "written", write)

    def _finish(self, write: _Write, outcome: Outcome) -> bool:
        if _wider(write) != write.target and not self._write(write, write.target, outcome):
            return False
        if write.release:
            self._forget(write.key)
        else:
            self._written[write.key] = write.target
        return True

    def _write(self, write: _Write, text: str, outcome: Outcome) -> bool:
        try:
            self._knobs.write(write.role, write.group, text)
        except OSError as error:
            if error.errno in _GONE:
                self._forget(write.key)
            else:
                outcome.note("failed", write, f"{errno.errorcode.get(error.errno or 0)}: {error}")
            return False
        self._written[write.key] = text
        return True

    def _commit(self, outcome: Outcome) -> bool:
        try:
            self._journal.commit()
        except journal.JournalError as error:
            outcome.problem = str(error)
            return False
        return True

    def _forget(self, key: _Key) -> None:
        self._journal.drop(*key)
        for memory in (self._written, self._conflicts, self._reasserted, self._yielded):
            memory.pop(key, None)

    def _below(self, role: edits.Role, group: str) -> list[str]:
        """The group and, where they inherit, everything inside it."""
        found = [group]
        if role is edits.Role.CPUSET and self._knobs.inherits:
            for above in found:
                found += self._knobs.children(role, above)
        return found


def _wider(write: _Write) -> str | None:
    """Return the first of two steps, None where the one step needs no room above it.

    Cpus grow to what was and what shall be; a quota grows at once.
    """
    if write.role is edits.Role.CPU_QUOTA:
        return None
    now, then = knobs.cpus(write.current), knobs.cpus(write.target)
    if not now or not then or then <= now:
        return None
    return cpulists.text(now | then)
