"""The receipts that are open, and what is known of the moves of each profile.

A plain object without I/O: the controller tells it what happens and writes what it returns.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from descheduler.framework.planning import history, profiles, round_plan
from descheduler.gain import measured_load
from descheduler.model import objects, picture
from descheduler.receipts import breaker, expectation, memory, receipt, settlement

Loads = Callable[[picture.Picture], measured_load.Loads]
_MOST: Final = 10_000
"""Jobs that are remembered as settled."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settled:
    """A move whose outcome has become known."""

    job: objects.Job
    receipt: receipt.Receipt
    halted: str = ""
    """Why its profile is halted by it; empty where it is not."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Open:
    job: objects.Job
    receipt: receipt.Receipt


class Ledger:
    """Follows jobs from the decision to their outcome."""

    def __init__(
        self,
        options: breaker.Options,
        settle_seconds: float,
        loads: Loads,
        configured: frozenset[str] = frozenset(),
    ) -> None:
        self._options, self._settle_seconds, self._loads = options, settle_seconds, loads
        self._configured = configured
        """Profiles that are remembered before all others."""
        self._open: dict[str, _Open] = {}
        """By uid of the job; a job that is deleted before its move has settled stays."""
        self._settled: dict[str, None] = {}
        self._breakers: dict[str, breaker.Breaker] = {}
        self._moves: history.History = history.NONE
        self._is_changed = False

    # -- what is remembered ------------------------------------------------------------------

    def restore(self, kept: memory.Memory) -> None:
        """Go on from what an earlier leader has remembered.

        It may have settled what was open when this replica led before.
        """
        self._open.clear()
        for profile, one in kept.breakers.items():
            mine = self._breakers.get(profile, breaker.NEW)
            # What could not be written at the end of a term is known here alone.
            self._breakers[profile] = mine if mine.latest > one.latest else one
        first = sorted(self._breakers, key=lambda profile: profile not in self._configured)
        self._breakers = {name: self._breakers[name] for name in first[: memory.MOST_PROFILES]}
        self._moves = {**kept.moves, **self._moves}

    def changes(self) -> memory.Memory | None:
        """Return what is to be remembered where it has changed since it was asked for last."""
        if not self._is_changed:
            return None
        self._is_changed = False
        return memory.Memory(self._breakers, self._moves)

    def keep_changed(self) -> None:
        """Return the changes once more the next time: they could not be written."""
        self._is_changed = True

    @property
    def moves(self) -> history.History:
        """Return the moves that are remembered."""
        return self._moves

    # -- rounds --------------------------------------------------------------------------------

    def halted(self, now: float) -> Mapping[str, str]:
        """Return by profile why it is halted at present."""
        return {
            profile: one.sentence(profile)
            for profile, one in sorted(self._breakers.items())
            if one.is_halted(now)
        }

    def permitted(
        self, configured: Sequence[profiles.Profile], now: float
    ) -> tuple[profiles.Profile, ...]:
        """Return the profiles; one that is halted only says what it would move."""
        halted = self.halted(now)
        return tuple(
            dataclasses.replace(one, dry_run=True) if one.name in halted else one
            for one in configured
        )

    def decided(
        self, plan: round_plan.RoundPlan, seen: picture.Picture
    ) -> Mapping[str, receipt.Receipt]:
        """Take in what a round decided; return the receipts of its moves by uid of the pod."""
        made = [move for move in plan.moves if not move.dry_run]
        if plan.memory.moves != self._moves:
            self._moves, self._is_changed = plan.memory.moves, True
        return expectation.receipts(made, seen, self._loads(seen)) if made else {}

    # -- outcomes --------------------------------------------------------------------------------

    def look(self, seen: picture.Picture) -> Iterator[Settled]:
        """Yield the moves whose outcome can be told now."""
        for job in seen.jobs.values():
            self._follow(job)
        due = [
            one
            for one in self._open.values()
            if settlement.is_due(one.job, seen.now, self._settle_seconds)
        ]
        if not due:
            return
        loads = self._loads(seen)
        for one in due:
            case = settlement.Case(one.receipt, one.job, seen, loads, self._settle_seconds)
            found = settlement.outcome(case)
            if found is not None:
                yield self._settle(one.job, settlement.settled(one.receipt, found), seen.now)

    def _follow(self, job: objects.Job) -> None:
        if job.uid in self._settled:
            return
        known = self._open.get(job.uid)
        if known is not None:
            self._open[job.uid] = _Open(job, known.receipt)
            return
        found = receipt.read(job)
        if found is None or not found.is_open:
            self._forget(job.uid)
            return
        self._open[job.uid] = _Open(job, found)

    def _settle(self, job: objects.Job, told: receipt.Receipt, now: float) -> Settled:
        self._forget(job.uid)
        if not self._has_place(told.profile):
            return Settled(job, told)
        before = self._breakers.get(told.profile, breaker.NEW)
        after = breaker.entered(before, told, self._options, now)
        if after is before:
            return Settled(job, told)
        self._breakers[told.profile] = after
        self._is_changed = True
        is_new = after.is_halted(now) and after.halted_at != before.halted_at
        return Settled(job, told, after.sentence(told.profile) if is_new else "")

    def _has_place(self, profile: str) -> bool:
        """Whether a profile is remembered; receipts name what they like, and so many are not.

        One that is configured takes the place of one that is not.
        """
        if profile in self._breakers or len(self._breakers) < memory.MOST_PROFILES:
            return True
        others = [name for name in self._breakers if name not in self._configured]
        if profile not in self._configured or not others:
            return False
        del self._breakers[min(others, key=lambda name: self._breakers[name].latest)]
        return True

    def _forget(self, uid: str) -> None:
        self._open.pop(uid, None)
        if len(self._settled) >= _MOST:
            del self._settled[next(iter(self._settled))]
        self._settled[uid] = None
