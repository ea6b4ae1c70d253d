"""Write edits in a safe order, only what changed, and put everything back in the end."""

import contextlib
import dataclasses
import errno
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from agent.apply import audit, journal, unwritten
from agent.apply.properties import (
    conflicts,
    ownership,
    partial_properties,
    property_files,
    refused_writes,
)
from agent.host import files
from agent.model import edits

_GONE = {errno.ENOENT, errno.ENODEV}


@dataclasses.dataclass(slots=True)
class Outcome:
    """What became of the edits of one tick."""

    records: list[tuple[str, ownership.Write, str]] = dataclasses.field(default_factory=list)
    problem: str = ""
    """Why nothing at all could be written."""

    def note(self, outcome: str, write: ownership.Write, reason: str = "") -> None:
        """Add what became of one file."""
        self.records.append((outcome, write, reason or write.reason))

    @property
    def failures(self) -> int:
        """How many files could not be written."""
        return sum(outcome == "failed" for outcome, _, _ in self.records)

    @property
    def failed(self) -> unwritten.Failures:
        """What could not be written or put back."""
        return {
            write.key: unwritten.Failure(reason, write.release)
            for outcome, write, reason in self.records
            if outcome == "failed"
        }

    def summary(self, at: float) -> list[audit.Record]:
        """Return one record per outcome, role and value."""
        together: dict[tuple[str, edits.Role, str, str], list[ownership.Write]] = {}
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


def _stages(wanted: Sequence[edits.Edit]) -> list[list[edits.Edit]]:
    """Return edits after those that make what they are about."""
    makers = [edit for edit in wanted if edit.role in edits.MAKERS and edit.value is not None]
    if not makers:
        return [list(wanted)]
    stages = [[edit for edit in makers if edit.role is role] for role in edits.MAKERS]
    made = {edit.key for edit in makers}
    stages.append([edit for edit in wanted if edit.key not in made])
    return [stage for stage in stages if stage]


class Executor:
    """Turns edits into writes on one host."""

    def __init__(
        self, handles: property_files.Knobs, kept: journal.Journal, *, writing: bool
    ) -> None:
        self._knobs = handles
        self._journal = kept
        self._writing = writing
        self.claims = ownership.Claims(kept, handles)
        self._quarrels = conflicts.Quarrels(kept, handles)
        self._refusals = refused_writes.Refusals()
        self._taken: dict[journal.Key, tuple[str, str]] = {}
        self._owed = refused_writes.Owed(kept)
        self._now = 0.0

    @property
    def given_up(self) -> Mapping[journal.Key, str]:
        """The files that another program kept writing, and the text that stays."""
        return self._quarrels.given_up

    def follow(self, owners: ownership.Owners) -> None:
        """Learn what the owners of files write by now, so that undo never writes a stale value."""
        self.claims.owners = owners
        for key in self.claims.follow():
            self._quarrels.forgive(key)

    def apply(self, wanted: Iterable[edits.Edit], monotonic: float) -> Outcome:
        """Carry out the edits of one tick, or say what would have been done."""
        outcome = Outcome()
        self._now = monotonic
        self.claims.settle(monotonic)
        self._knobs.fresh()
        asked = self._owed.beside(tuple(wanted))
        for stage in _stages(self._with_side_effects(asked)):
            writes = [
                write
                for edit in stage
                if (write := self._plan(edit, outcome)) and self._may(write, outcome)
            ]
            if self._writing:
                self._carry_out(writes, outcome)
                continue
            for write in writes:
                outcome.note("would have written", write)
        if self._writing:
            self._owed.note(asked)
        return outcome

    def put_back(self, reason: str, monotonic: float | None = None) -> Outcome:
        """Put back every file that the journal names, and what was born inside them since.

        With a time, a file that just refused is left alone for a while; without, all are tried.
        """
        outcome = Outcome()
        self._now = self._now if monotonic is None else monotonic
        self._knobs.fresh()
        seen: set[journal.Key] = set()
        writes = []
        for entry in self._journal.entries:
            for group in self.claims.below(entry.role, entry.group):
                edit = edits.Edit(entry.role, group, None, reason)
                write = self._plan(edit, outcome) if (entry.role, group) not in seen else None
                seen.add((entry.role, group))
                if write and (monotonic is None or self._may(write, outcome)):
                    writes.append(write)
        self._owed.clear()
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
                found.append(msgspec.structs.replace(edit, role=effect[0], value=None))
        return found

    def _plan(self, edit: edits.Edit, outcome: Outcome) -> ownership.Write | None:
        """Compare an edit with the host; None where nothing is to be done."""
        try:
            current = self._knobs.read(edit.role, edit.group)
        except files.VanishedError as error:
            self._forget((edit.role, edit.group))
            if edit.value is not None and self._knobs.lacks(edit.role, edit.group):
                lost = ownership.Write(edit.role, edit.group, "", edit.value, edit.reason, False)
                outcome.note("missing", lost, str(error))
            return None
        except files.ReadingError as error:
            unread = ownership.Write(
                edit.role, edit.group, "", edit.value or "", edit.reason, False
            )
            outcome.note("failed", unread, str(error))
            return None
        if edit.value is None:
            return self._plan_release(edit, current, outcome)
        target, ours = self._knobs.aim(edit.role, current, edit.value)
        taken = self._taken.get((edit.role, edit.group))
        if taken == (target, current) or self._knobs.same(edit.role, current, target):
            return None
        return ownership.Write(edit.role, edit.group, current, target, edit.reason, False, ours)

    def _plan_release(
        self, edit: edits.Edit, current: str, outcome: Outcome
    ) -> ownership.Write | None:
        """Return the write that puts a file back; what is not ours stays."""
        key = edit.role, edit.group
        before = self.claims.previous(edit.role, edit.group, current)
        write = ownership.Write(edit.role, edit.group, current, before or "", edit.reason, True)
        if before is None or self._knobs.same(edit.role, current, before):
            self._forget(key)
            return None
        entry = self._journal.get(*key)
        if entry is None:
            return write
        target = self._knobs.released(edit.role, current, before, entry.ours)
        if target is None or before == partial_properties.MIXED:
            why = "was not one value before" if target else f"another program wrote {current!r}"
            outcome.note("left", write, f"{why}; it stays")
            self._forget(key)
            return None
        return msgspec.structs.replace(write, target=target)

    def _may(self, write: ownership.Write, outcome: Outcome) -> bool:
        """Tell whether to write now: neither what just refused nor what others insist on."""
        held = self._refusals.held(write.key, self._now)
        if held is not None:
            outcome.note("failed", *held)
            return False
        return self._mine(write, self._now, outcome)

    def _mine(self, write: ownership.Write, monotonic: float, outcome: Outcome) -> bool:
        """Tell whether we may write: another program that insists on a file wins it."""
        known = self._quarrels.is_known(write, self.claims.owners)
        may, said, reason = self._quarrels.judge(write, monotonic, self.claims.owners)
        self.claims.observe(write.role, write.group, write.current, foreign=not known)
        if said:
            outcome.note(said, write, reason)
        if said == "given up":
            self._journal.drop(*write.key)
            self._taken.pop(write.key, None)
            self._quarrels.give_up(write)
        return may

    def _carry_out(self, writes: Sequence[ownership.Write], outcome: Outcome) -> None:
        steps = {write.key: self._steps(write) for write in writes}
        for write in writes:
            self.claims.announce(write, steps[write.key])
        for write in writes:
            self.claims.announce_effect(write)
        if not self._commit(outcome):
            return
        failed: set[journal.Key] = set()
        # Widen from the top so that a child never exceeds its parent, then tighten from below.
        for write in sorted(writes, key=lambda w: w.depth):
            wider, _ = steps[write.key]
            if wider is not None and not self._write(write, wider, outcome):
                failed.add(write.key)
        for write in sorted(writes, key=lambda w: (-w.depth, self._knobs.rank(w.role, w.target))):
            if write.key not in failed and self._finish(write, steps[write.key], outcome):
                outcome.note("put back" if write.release else "written", write)

    def _steps(self, write: ownership.Write) -> ownership.Steps:
        """Return the text to write on the way down the tree and the one on the way up."""
        wider = self._knobs.wider(write.role, write.current, write.target)
        return wider, None if wider == write.target else write.target

    def _finish(self, write: ownership.Write, steps: ownership.Steps, outcome: Outcome) -> bool:
        if steps[1] is not None and not self._write(write, steps[1], outcome):
            return False
        if write.release:
            self._forget(write.key)
            return True
        self._quarrels.written[write.key] = write.target
        return self._read_back(write, outcome)

    def _read_back(self, write: ownership.Write, outcome: Outcome) -> bool:
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
        self.claims.add(write, text)
        # At once, lest a crash makes it look like another program's text.
        self._commit(outcome)
        self._quarrels.written[write.key] = text
        if text == write.current:
            outcome.note("failed", write, f"the kernel kept {text!r}")
            return False
        self._taken[write.key] = (write.target, text)
        outcome.note("adjusted", write, f"the kernel made {text!r} of it")
        return False

    def _write(self, write: ownership.Write, text: str, outcome: Outcome) -> bool:
        try:
            self._knobs.write(write.role, write.group, text)
        except OSError as error:
            if error.errno in _GONE:
                self._forget(write.key)
            else:
                reason = f"{errno.errorcode.get(error.errno or 0)}: {error.strerror or error}"
                self._refusals.add(write, reason, self._now)
                outcome.note("failed", write, reason)
            return False
        self._refusals.forget(write.key)
        self._quarrels.written[write.key] = text
        self._note_effect(write)
        return True

    def _note_effect(self, write: ownership.Write) -> None:
        """Take what the kernel changed along with a write for what we last saw there."""
        effect = self._knobs.side_effect(write.role)
        if effect is None:
            return
        # What is gone has no value that somebody else could change.
        with contextlib.suppress(files.ReadingError):
            self._quarrels.written[effect[0], write.group] = self._knobs.read(
                effect[0], write.group
            )

    def _commit(self, outcome: Outcome) -> bool:
        try:
            self._journal.commit()
        except journal.JournalError as error:
            outcome.problem = str(error)
            return False
        return True

    def _forget(self, key: journal.Key) -> None:
        self._journal.drop(*key)
        self._taken.pop(key, None)
        self._quarrels.forget(key)
        self._refusals.forget(key)
