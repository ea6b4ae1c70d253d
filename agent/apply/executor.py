"""Write edits in a safe order, only what changed, and put everything back in the end."""

import contextlib
import dataclasses
import errno
from collections.abc import Iterable, Mapping, Sequence

from agent import edits, files
from agent.apply import audit, journal, knobs, processes

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
    ours: str = ""
    """What of the target is ours; all of it but for lines of other devices."""

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
        together: dict[tuple[str, edits.Role, str, str], list[_Write]] = {}
        for outcome, write, reason in self.records:
            key = (outcome, write.role, write.target, reason)
            together.setdefault(key, []).append(write)
        return [
            audit.Record(
                at,
                outcome,
                role,
                value,
                tuple(sorted(write.group for write in writes)),
                reason,
                _common(write.current for write in writes),
            )
            for (outcome, role, value, reason), writes in together.items()
        ]


def _common(texts: Iterable[str]) -> str:
    """Return the text if all are the same."""
    different = set(texts)
    return different.pop() if len(different) == 1 else ""


class Executor:
    """Turns edits into writes on one host."""

    def __init__(self, handles: knobs.Knobs, kept: journal.Journal, *, writing: bool) -> None:
        self._knobs = handles
        self._journal = kept
        self._writing = writing
        self._written: dict[_Key, str] = {}
        self._taken: dict[_Key, tuple[str, str]] = {}
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
            for edit in self._with_side_effects(tuple(wanted))
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

    def _with_side_effects(self, wanted: Sequence[edits.Edit]) -> list[edits.Edit]:
        """Add the release of what the kernel changed along with something that ends."""
        named = {edit.key: edit for edit in wanted}
        found: list[edits.Edit] = []
        for edit in wanted:
            above = named.get((edits.Role.CPU_IDLE, edit.group))
            if self._knobs.pointless(edit.role, edit.group, above.value or "0" if above else None):
                # Refused while the group is idle; it comes when that ends.
                continue
            found.append(edit)
            effect = self._knobs.side_effect(edit.role)
            if effect and edit.value in (None, "0") and (effect[0], edit.group) not in named:
                found.append(dataclasses.replace(edit, role=effect[0], value=None))
        return found

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
        if edit.value is None:
            return self._plan_release(edit, current, outcome)
        target, ours = self._knobs.aim(edit.role, current, edit.value)
        write = _Write(edit.role, edit.group, current, target, edit.reason, False, ours)
        taken = self._taken.get(write.key)
        if taken == (target, current) or self._knobs.same(edit.role, current, target):
            return None
        return write

    def _plan_release(self, edit: edits.Edit, current: str, outcome: Outcome) -> _Write | None:
        """Return the write that puts a file back; what is not ours stays."""
        key = edit.role, edit.group
        before = self._previous(edit.role, edit.group, current)
        write = _Write(edit.role, edit.group, current, before or "", edit.reason, True)
        if before is None or self._knobs.same(edit.role, current, before):
            self._forget(key)
            return None
        entry = self._journal.get(*key)
        if entry is None:
            return write
        target = self._knobs.released(edit.role, current, before, entry.ours)
        if target is None or before == processes.MIXED:
            why = "was not one value before" if target else f"somebody else wrote {current!r}"
            outcome.note("left", write, f"{why}; it stays")
            self._forget(key)
            return None
        return dataclasses.replace(write, target=target)

    def _is_ours(self, entry: journal.Entry, current: str) -> bool:
        return self._knobs.any_of(entry.role, current, entry.ours)

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
            return entry.previous if self._is_ours(entry, current) else None
        return None

    def _mine(self, write: _Write, monotonic: float, outcome: Outcome) -> bool:
        """Tell whether we may write: somebody else who insists on a file wins it."""
        last = self._written.get(write.key)
        if write.release or last is None or self._knobs.same(write.role, write.current, last):
            return write.release or write.key not in self._yielded
        entry = self._journal.get(*write.key)
        if write.role in edits.OF_PROCESSES and write.current == processes.MIXED:
            # Processes were born since; nobody else had a hand in it.
            return True
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
        steps = {write.key: self._steps(write) for write in writes}
        for write in writes:
            self._announce(write, steps[write.key])
        for write in writes:
            self._announce_effect(write)
        if not self._commit(outcome):
            return
        failed: set[_Key] = set()
        # Widen from the top so that a child never exceeds its parent, then tighten from below.
        for write in sorted(writes, key=lambda w: w.depth):
            wider, _ = steps[write.key]
            if wider is not None and not self._write(write, wider, outcome):
                failed.add(write.key)
        for write in sorted(writes, key=lambda w: (-w.depth, self._knobs.rank(w.role, w.target))):
            if write.key not in failed and self._finish(write, steps[write.key], outcome):
                outcome.note("put back" if write.release else "written", write)

    def _steps(self, write: _Write) -> tuple[str | None, str | None]:
        """Return the text to write on the way down the tree and the one on the way up."""
        wider = self._knobs.wider(write.role, write.current, write.target)
        return wider, None if wider == write.target else write.target

    def _announce(self, write: _Write, steps: tuple[str | None, str | None]) -> None:
        """Say in the journal what may stand in the file from now on."""
        entry = self._journal.get(*write.key)
        if entry is None:
            before = self._previous(write.role, write.group, write.current)
            previous = write.current if before is None else before
            entry = journal.Entry(write.role, write.group, previous)
        # While a release is under way, what stood there before us is no text of ours.
        last = None if write.release else write.ours
        texts = [text for text in (steps[0] if steps[1] else None, last) if text is not None]
        known = self._journal.get(*write.key) is not None
        held = self._knobs.held(write.role, write.current, entry.ours)
        if write.release and not known:
            held = (write.current,)
        ours = journal.together((*held, *texts))
        self._journal.put(dataclasses.replace(entry, ours=ours))

    def _announce_effect(self, write: _Write) -> None:
        """Say in the journal what the kernel will change by itself."""
        effect = self._knobs.side_effect(write.role)
        if effect is None or write.release:
            return
        role, texts = effect
        try:
            current = self._knobs.read(role, write.group)
        except files.ReadingError:
            # Where it is not, there is nothing to put back.
            return
        entry = self._journal.get(role, write.group) or journal.Entry(role, write.group, current)
        ours = journal.together((*entry.ours, *texts))
        self._journal.put(dataclasses.replace(entry, ours=ours))

    def _finish(
        self, write: _Write, steps: tuple[str | None, str | None], outcome: Outcome
    ) -> bool:
        if steps[1] is not None and not self._write(write, steps[1], outcome):
            return False
        if write.release:
            self._forget(write.key)
            return True
        self._written[write.key] = write.target
        return self._read_back(write, outcome)

    def _read_back(self, write: _Write, outcome: Outcome) -> bool:
        """Look at what the kernel made of a write; a text of its own is remembered as ours."""
        try:
            text = self._knobs.read(write.role, write.group)
        except files.VanishedError:
            self._forget(write.key)
            return False
        except files.ReadingError as error:
            outcome.note("failed", write, f"written, and cannot be read back: {error}")
            return False
        if self._knobs.same(write.role, text, write.target):
            self._taken.pop(write.key, None)
            return True
        entry = self._journal.get(*write.key)
        if entry is not None:
            self._journal.put(
                dataclasses.replace(entry, ours=journal.together((*entry.ours, text)))
            )
        self._written[write.key] = text
        if text == write.current:
            outcome.note("failed", write, f"the kernel kept {text!r}")
            return False
        self._taken[write.key] = (write.target, text)
        outcome.note("adjusted", write, f"the kernel made {text!r} of it")
        return False

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
        self._note_effect(write)
        return True

    def _note_effect(self, write: _Write) -> None:
        """Take what the kernel changed along with a write for what we last saw there."""
        effect = self._knobs.side_effect(write.role)
        if effect is None:
            return
        with contextlib.suppress(files.ReadingError):
            self._written[effect[0], write.group] = self._knobs.read(effect[0], write.group)

    def _commit(self, outcome: Outcome) -> bool:
        try:
            self._journal.commit()
        except journal.JournalError as error:
            outcome.problem = str(error)
            return False
        return True

    def _forget(self, key: _Key) -> None:
        self._journal.drop(*key)
        for memory in (
            self._written,
            self._taken,
            self._conflicts,
            self._reasserted,
            self._yielded,
        ):
            memory.pop(key, None)

    def _below(self, role: edits.Role, group: str) -> list[str]:
        """The group and, where they inherit, everything inside it."""
        found = [group]
        if role is edits.Role.CPUSET and self._knobs.inherits:
            for above in found:
                found += self._knobs.children(role, above)
        return found
