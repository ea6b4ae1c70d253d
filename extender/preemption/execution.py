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
_EXHAUSTED: Final = "its disruption budget does not allow as many evictions at once"

Outcome = claiming.Outcome


class Execution:
    """Evicts; of every preemptor one plan at a time."""

    def __init__(
        self, parts: claiming.Parts, claims: claiming.Claims, settings: PreemptionSettings
    ) -> None:
        self._parts, self._claims, self._settings = parts, claims, settings
        self._refused: dict[str, float] = {}

    def refused(self, now: float) -> frozenset[str]:
        """Return the pods whose eviction was refused lately."""
        self._refused = {uid: until for uid, until in self._refused.items() if until > now}
        return frozenset(self._refused)

    async def carry_out(
        self, pod: records.PodRecord, mine: in_flight.Preemption, plan: planner.Plan
    ) -> Outcome:
        """Note it, then evict one victim after the other; stop where one cannot be evicted."""
        parts, monotonic = self._parts, self._parts.clock.monotonic
        said = await parts.writes.note(pod, mine.record)
        if said:
            # Another extender has noted its own, or the pod has changed: look at it as it is now.
            self._release_mine(mine)
            return Outcome(f"preemption could not be noted: {said}", AGAIN_SECONDS)
        parts.notices.planned(plan, enforced=True)
        window = writes.Window(parts.clock, monotonic() + WINDOW_SECONDS, lambda: self._still(mine))
        await parts.writes.nominate(pod, plan.node)
        # The least important first: where it has to stop, nobody more important has left.
        leaving = plan.found.victims[::-1]
        kept = await self._kept(leaving, window) if len(leaving) > 1 else None
        if kept is not None:
            return await self._stopped(pod, mine, *kept)
        for victim in leaving:
            result, why = await parts.writes.evict(victim, window)
            parts.notices.evicted(plan, victim, result)
            if result is writes.Evicted.REFUSED:
                return await self._stopped(pod, mine, victim, why)
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

    def _release_mine(self, mine: in_flight.Preemption) -> None:
        one = self._parts.preemptions.get(mine.uid)
        if one is not None and one.record.id == mine.record.id:
            self._claims.release(one)

    async def _stopped(
        self, pod: records.PodRecord, mine: in_flight.Preemption, victim: views.Claim, why: str
    ) -> Outcome:
        """Spare a pod whose eviction was refused; what was evicted already is waited for."""
        now = self._parts.clock.now()
        self._refused[victim.pod.uid] = now + self._settings.budget_seconds
        one = self._parts.preemptions.get(mine.uid)
        reason = f"{victim.pod.key} may not be evicted now: {why}"
        if one is None or not one.evicted:
            return await self._claims.give_up(pod, one or mine, reason)
        self._parts.notices.failed(pod, reason)
        left = msgspec.structs.replace(one.record, victims=tuple(sorted(one.evicted)))
        self._claims.claim(pod, dataclasses.replace(one, record=left))
        return Outcome(reason, AGAIN_SECONDS)
