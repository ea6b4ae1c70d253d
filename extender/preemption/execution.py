"""Carries a plan out: note it on the pod, then evict one victim after the other."""

import dataclasses
from collections.abc import Sequence
from typing import Final

import msgspec

from extender.framework import views
from extender.preemption import claiming, in_flight, planner, writes
from extender.settings import PreemptionSettings
from extender.state import records
from process.configuration import switches

WINDOW_SECONDS: Final = 5.0
"""How long a plan may lead to evictions: less than the lease of a scheduler."""
AGAIN_SECONDS: Final = 0.5
_TRIES: Final = 4
"""How often a budget is asked again while what others have left is kept for a pod."""
_EXHAUSTED: Final = "its disruption budget does not allow as many evictions at once"

Outcome = claiming.Outcome


class Execution:
    """Evicts; of every preemptor one plan at a time."""

    def __init__(
        self, parts: claiming.Parts, claims: claiming.Claims, settings: PreemptionSettings
    ) -> None:
        self._parts, self._claims, self._settings = parts, claims, settings
        self._refused: dict[str, float] = {}

    def refused(self) -> frozenset[str]:
        """Return the pods whose eviction was refused lately."""
        elapsed = self._parts.clock.monotonic()
        self._refused = {uid: until for uid, until in self._refused.items() if until > elapsed}
        return frozenset(self._refused)

    async def carry_out(
        self,
        pod: records.PodRecord,
        mine: in_flight.Preemption,
        plan: planner.Plan,
        earlier: in_flight.Preemption | None = None,
    ) -> Outcome:
        """Note it, then evict one victim after the other; stop where one cannot be evicted.

        `earlier` is the preemption for the same pod that this plan continues, if there is one.
        """
        parts, monotonic = self._parts, self._parts.clock.monotonic
        said = await parts.writes.note(pod, mine.record)
        if said:
            # Another extender has noted its own, or the pod has changed: look at it as it is now.
            self._take_back(pod, mine, earlier)
            return Outcome(f"preemption could not be noted: {said}", AGAIN_SECONDS)
        parts.notices.planned(plan, enforced=True)
        window = writes.Window(parts.clock, monotonic() + WINDOW_SECONDS, lambda: self._still(mine))
        await parts.writes.nominate(pod, plan.node)
        # The least important first: where it has to stop, no more important pod has left.
        leaving = plan.found.victims[::-1]
        kept = await self._kept(leaving, window) if len(leaving) > 1 else None
        if kept is not None:
            return await self._stopped(pod, mine, earlier, *kept)
        for victim in leaving:
            result, why = await parts.writes.evict(victim, window)
            parts.notices.evicted(plan, victim, result)
            if result is writes.Evicted.REFUSED:
                return await self._stopped(pod, mine, earlier, victim, why)
            if result is writes.Evicted.UNKNOWN:
                return Outcome(f"an eviction has no known outcome: {why}", AGAIN_SECONDS)
            if result is writes.Evicted.ACCEPTED:
                self._accepted(mine.uid, victim)
        return Outcome(plan.sentence(), AGAIN_SECONDS)

    async def _kept(
        self, leaving: Sequence[views.Claim], window: writes.Window
    ) -> tuple[views.Claim, str] | None:
        """Return a victim that would stay after others have left, and why; None: all leave."""
        for victim in leaving:
            result, why = await self._parts.writes.evict(victim, window, dry_run=True)
            if result is writes.Evicted.REFUSED:
                return victim, why
        exhausted = self._parts.preemptions.budgets().exhausted_by(leaving)
        found = next((victim for victim in leaving if victim.id in exhausted), None)
        return None if found is None else (found, _EXHAUSTED)

    def _accepted(self, uid: str, victim: views.Claim) -> None:
        one = self._parts.preemptions.get(uid)
        if one is not None:
            one = dataclasses.replace(one, evicted=one.evicted | {victim.pod.uid})
            self._parts.preemptions.put(one)

    def _still(self, mine: in_flight.Preemption) -> bool:
        """Whether the claim of this very plan stands and preemption is not switched off."""
        one = self._parts.preemptions.get(mine.uid)
        same = one is not None and one.record.id == mine.record.id
        return same and self._claims.mode() is switches.Mode.ENFORCE

    def _take_back(
        self,
        pod: records.PodRecord,
        mine: in_flight.Preemption,
        earlier: in_flight.Preemption | None,
    ) -> None:
        """Withdraw the claim of a plan that could not be noted, and restore what it replaced.

        Victims of the earlier preemption may have left by now. Without its claim, the next pod that
        the scheduler tries would take what they have freed.
        """
        one = self._parts.preemptions.get(mine.uid)
        if one is None or one.record.id != mine.record.id:
            return
        if earlier is None:
            self._claims.release(one)
        else:
            self._claims.claim(pod, earlier)
        # While the withdrawn claim stood, records of another extender were not taken in.
        present = self._parts.pods.get(pod.key)
        if present is not None and present.uid == pod.uid and present.preemption != pod.preemption:
            self._claims.noted(present)

    async def _stopped(
        self,
        pod: records.PodRecord,
        mine: in_flight.Preemption,
        earlier: in_flight.Preemption | None,
        victim: views.Claim,
        why: str,
    ) -> Outcome:
        """Spare a pod whose eviction was refused.

        What others have left for the pod stays kept for it, also where an earlier process has
        evicted them: else they would have left in vain. It is planned anew until that time is over.
        """
        parts, settings, elapsed = self._parts, self._settings, self._parts.clock.monotonic()
        one = parts.preemptions.get(mine.uid) or mine
        reason = f"{victim.pod.key} may not be evicted now: {why}"
        gone = one.evicted
        if earlier is not None:
            gone |= in_flight.begun(earlier, parts.books.cluster)
        if not gone:
            self._refused[victim.pod.uid] = elapsed + settings.budget_seconds
            return await self._claims.give_up(pod, one, reason)
        pause = min(settings.budget_seconds, settings.hold_seconds / _TRIES)
        self._refused[victim.pod.uid] = elapsed + pause
        parts.notices.failed(pod, reason)
        since = earlier or one
        until = since.record.until if since.freed_at else one.record.until
        left = msgspec.structs.replace(one.record, victims=tuple(sorted(gone)), until=until)
        kept = dataclasses.replace(
            one, record=left, evicted=gone, freed_at=since.freed_at, spared=True
        )
        self._claims.claim(pod, kept)
        return Outcome(reason, AGAIN_SECONDS)
