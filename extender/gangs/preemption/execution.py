"""Evicts the victims of a gang: all of them, or none where one of them may not leave."""

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

from domain.pods import disruption_budgets as budgets
from extender.framework import views
from extender.gangs.preemption import notices
from extender.preemption import writes
from process.runtime import clock as clocks

WINDOW_SECONDS: Final = 10.0
"""How long a search may lead to evictions: less than the lease of a scheduler."""
_EXHAUSTED: Final = "its disruption budget does not allow as many evictions at once"


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the evictions."""

    accepted: frozenset[str]
    """Uids of the pods that leave."""
    refused: views.Claim | None = None
    """The first pod that may not leave, and ..."""
    why: str = ""
    """... why; or why it is not known whether all of them leave."""


@dataclasses.dataclass(frozen=True, slots=True)
class Execution:
    """Evicts the victims of one plan."""

    writing: writes.Writes
    clock: clocks.Clock
    present: Callable[[], budgets.Budgets]
    """Returns the disruption budgets as they are now."""
    told: notices.Notices
    writers: int

    async def evict(
        self, leaving: Sequence[views.Claim], why: notices.Why, holds: Callable[[], bool]
    ) -> Outcome:
        """Evict pods, the least important first; a dry run of all of them comes before.

        `holds` says whether the plan still counts; it is asked as every eviction leaves.
        """
        window = writes.Window(self.clock, self.clock.monotonic() + WINDOW_SECONDS, holds)
        stays = await self._stays(leaving, window)
        if stays is not None:
            return Outcome(frozenset(), *stays)
        accepted: set[str] = set()
        unknown = ""
        for start in range(0, len(leaving), self.writers):
            several = leaving[start : start + self.writers]
            answers = await asyncio.gather(*(self.writing.evict(one, window) for one in several))
            refused: tuple[views.Claim, str] | None = None
            for victim, (result, said) in zip(several, answers, strict=True):
                self.told.evicted(why, victim, result)
                if result in (writes.Evicted.ACCEPTED, writes.Evicted.GONE):
                    accepted.add(victim.pod.uid)
                elif result is writes.Evicted.REFUSED:
                    refused = refused or (victim, said)
                else:
                    unknown = said
            if refused is not None:
                return Outcome(frozenset(accepted), *refused)
        return Outcome(frozenset(accepted), None, unknown)

    async def _stays(
        self, leaving: Sequence[views.Claim], window: writes.Window
    ) -> tuple[views.Claim, str] | None:
        """Return a victim that would stay after others have left, and why; None: all leave."""
        exhausted = self.present().violating(leaving)
        for victim in leaving:
            if victim.id in exhausted:
                return victim, _EXHAUSTED
        for start in range(0, len(leaving), self.writers):
            several = leaving[start : start + self.writers]
            answers = await asyncio.gather(
                *(self.writing.evict(one, window, dry_run=True) for one in several)
            )
            for victim, (result, said) in zip(several, answers, strict=True):
                # Without an answer, others would leave while it is not known whether this one may.
                if result in (writes.Evicted.REFUSED, writes.Evicted.UNKNOWN):
                    return victim, said
        return None
