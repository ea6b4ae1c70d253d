"""What one agent has in its hands of a host: the journal, who writes by it, and how it ends.

A stop hands the journal over and leaves every value standing, so that neither an upgrade nor a
crash opens a limit; only what is switched off or uninstalled is put back.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agent.apply import deliveries, executor, journal, unwritten
from agent.apply.properties import partial_properties, property_files
from agent.host import files
from agent.model import cgroup_layout, edits, kubelet_cgroup_values, state

_logger = logging.getLogger(__name__)


class Enforcer:
    """Carries out what was decided, from the first look at a host to the end."""

    def __init__(
        self, folder: Path, *, writing: bool, read: partial_properties.Read = files.read
    ) -> None:
        """`read` reads properties that are whole files: from what is open, where that is so."""
        self.journal: journal.Journal | None = None
        self.adopted: tuple[journal.Key, ...] = ()
        """What an earlier agent had set when this one started."""
        self._folder = folder
        self._writing = writing
        self._read = read
        self._failing: unwritten.Failures = {}
        self._acting: executor.Executor | None = None
        self._watcher: executor.Executor | None = None
        self._followed: object = None
        self._arranged: cgroup_layout.Layout | None = None

    @property
    def started(self) -> bool:
        """Whether there is a journal to write by."""
        return self._acting is not None

    @property
    def entries(self) -> int:
        """How many files hold what an agent wrote."""
        return len(self.journal) if self.journal is not None else 0

    @property
    def given_up(self) -> Mapping[journal.Key, str]:
        """The files that another program kept writing, and the text that stays."""
        return self._acting.given_up if self._acting is not None else {}

    def yielded(self) -> str | None:
        """Name the files that other programs keep writing, None when there are none."""
        lost = self.given_up.items()
        return "; ".join(f"{role} of {group}: {text!r}" for (role, group), text in lost) or None

    @property
    def unwritten(self) -> Mapping[journal.Key, str]:
        """What stands otherwise than it was asked for, and why: files that refused or were lost."""
        found = {key: one.reason for key, one in self._failing.items() if not one.release}
        lost = dict.fromkeys(self.given_up, "another program keeps writing it")
        return found | lost

    @property
    def unreleased(self) -> bool:
        """Whether something could not be put back."""
        return any(one.release for one in self._failing.values())

    def start(self, arranged: cgroup_layout.Layout, boot_id: str) -> executor.Outcome:
        """Take over what an earlier agent left; one that may not write puts it back."""
        kept = journal.Journal(self._folder, boot_id)
        try:
            if self._writing:
                kept.hold()
            kept.load()
        except journal.JournalError as error:
            kept.close()
            return executor.Outcome(problem=str(error))
        acting = executor.Executor(self._knobs(arranged), kept, writing=self._writing)
        problem = _taken_over(acting, kept, self._folder, boot_id)
        if problem:
            kept.close()
            return executor.Outcome(problem=problem)
        outcome = executor.Outcome()
        if kept and not self._writing:
            outcome = acting.put_back("an earlier agent wrote it, and this one only observes")
        elif kept:
            _logger.info("what an earlier agent set is taken over files=%d", len(kept))
        if outcome.problem:
            kept.close()
            return outcome
        self.journal, self._acting, self._arranged = kept, acting, arranged
        self.adopted = tuple(entry.key for entry in kept.entries)
        self._watcher = self._watching(arranged)
        return outcome

    def move(self, arranged: cgroup_layout.Layout) -> executor.Outcome | None:
        """Go on where the cgroups of pods lie by now; None where they lie where they did.

        What lay elsewhere is put back as far as it is still there, and forgotten otherwise.
        """
        if self._acting is None or self.journal is None or arranged == self._arranged:
            return None
        outcome = self._acting.put_back(f"the cgroups of pods lie elsewhere by now: {arranged}")
        if outcome.problem:
            return outcome
        self._arranged, self._followed = arranged, None
        self._acting = executor.Executor(self._knobs(arranged), self.journal, writing=self._writing)
        self._watcher = self._watching(arranged)
        return outcome

    def _watching(self, arranged: cgroup_layout.Layout) -> executor.Executor:
        """Return who compares what is only observed, and never writes."""
        nothing = journal.Journal(self._folder, "")
        return executor.Executor(self._knobs(arranged), nothing, writing=False)

    def _knobs(self, arranged: cgroup_layout.Layout) -> property_files.Knobs:
        return property_files.Knobs(arranged, read=self._read)

    def follow(self, picture: state.NodeState, arranged: cgroup_layout.Layout) -> None:
        """Tell who else writes to the cgroups of pods, whenever something of that has changed."""
        depends = kubelet_cgroup_values.depends_on(picture)
        if self._acting is not None and depends != self._followed:
            self._followed = depends
            self._acting.follow(kubelet_cgroup_values.KubeletWrites(picture, arranged))

    def born(self, delivered: Sequence[deliveries.Delivered]) -> str:
        """Take into the journal what a runtime has set for us; return why that failed, or ""."""
        if self._acting is None or self.journal is None:
            return "there is no journal yet"
        return _noted(self._acting, self.journal, delivered)

    def apply(self, wanted: Iterable[edits.Edit], now: float) -> executor.Outcome:
        """Write what is wanted."""
        if self._acting is None or self.journal is None:
            return executor.Outcome()
        asked = tuple(wanted)
        outcome = self._acting.apply(asked, now)
        self._follow_failures(asked, outcome)
        return outcome

    def _follow_failures(self, asked: Sequence[edits.Edit], outcome: executor.Outcome) -> None:
        kept = self.journal

        def owed(key: journal.Key) -> bool:
            return kept is not None and kept.get(*key) is not None

        self._failing = unwritten.after(self._failing, asked, outcome.failed, owed)

    def observe(self, wanted: Iterable[edits.Edit], now: float) -> executor.Outcome:
        """Say what would be written."""
        return self._watcher.apply(wanted, now) if self._watcher is not None else executor.Outcome()

    def put_back(self, reason: str, now: float | None = None) -> executor.Outcome:
        """Put everything back; with a time, what just refused is left alone for a while."""
        if self._acting is None:
            return executor.Outcome()
        outcome = self._acting.put_back(reason, now)
        self._failing = {}
        self._follow_failures((), outcome)
        return outcome

    def close(self) -> None:
        """Hand the journal over to the next agent."""
        if self.journal is not None:
            self.journal.close()


def _noted(
    acting: executor.Executor, kept: journal.Journal, delivered: Sequence[deliveries.Delivered]
) -> str:
    for one in delivered:
        acting.claims.born(one)
    try:
        kept.commit()
    except journal.JournalError as error:
        return str(error)
    return ""


def _taken_over(
    acting: executor.Executor, kept: journal.Journal, folder: Path, boot_id: str
) -> str:
    """Take what an earlier agent delivered last into the journal; return why that failed, or ""."""
    found = deliveries.left(folder, boot_id)
    problem = _noted(acting, kept, found) if found else ""
    if not problem:
        deliveries.remove(folder)
    return problem
