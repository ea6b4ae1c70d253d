"""Keeping a place for a pod while its victims leave: the claim, and the record of it."""

import dataclasses
from collections.abc import Awaitable, Callable

from extender.framework import pipeline, views
from extender.framework.eviction import victims
from extender.preemption import in_flight, notices, planner, preemption_record, writes
from extender.requeue import unschedulable_pods
from extender.settings import PreemptionSettings
from extender.state import allocations, ledger, records
from kube.controllers import controller
from kube.informers import store
from process.configuration import switches
from process.runtime import clock as clocks

Outcome = controller.Outcome


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What the controller works on."""

    writes: writes.Writes
    clock: clocks.Clock
    books: ledger.Ledger
    plugins: pipeline.Pipeline
    waiting: unschedulable_pods.UnschedulablePods
    pods: store.Store[records.PodRecord]
    preemptions: in_flight.Preemptions
    doubt: Callable[[], Awaitable[str]]
    """Why the view cannot be trusted now; empty if it can."""
    filtering: switches.Switches
    preempting: switches.Switches
    notices: notices.Notices
    new_id: Callable[[], str]


class Claims:
    """Makes, adopts and ends the claims of pods that preempt."""

    def __init__(self, parts: Parts, settings: PreemptionSettings) -> None:
        self._parts, self._settings = parts, settings
        self.cool = in_flight.CoolDown(
            settings.cool_down_seconds, settings.longest_cool_down_seconds
        )

    def mode(self) -> switches.Mode:
        """Return how far anything may go: the stricter of both switches."""
        modes = (self._parts.filtering.mode, self._parts.preempting.mode)
        ordered = (switches.Mode.OFF, switches.Mode.OBSERVE)
        return next((mode for mode in ordered if mode in modes), switches.Mode.ENFORCE)

    def claim(self, pod: records.PodRecord, one: in_flight.Preemption) -> None:
        """Nominate the preemptor in the ledger, and remember the victims it waits for."""
        # Of another process's record no more counts than a binding could have granted.
        granted, _ = allocations.read(
            self._parts.plugins.codecs, one.record.granted, pod.requirements
        )
        self._parts.books.nominate(
            pod,
            one.record.node,
            evidence=victims.EVIDENCE,
            expires_at=one.record.until,
            granted=granted,
        )
        self._parts.preemptions.put(one)

    def release(self, one: in_flight.Preemption) -> None:
        """Keep nothing for it any longer."""
        self._parts.preemptions.drop(one.uid)
        claim = self._parts.books.nominations.get(one.uid)
        if claim is not None and claim.evidence == victims.EVIDENCE:
            self._parts.books.withdraw(one.uid)

    async def give_up(self, pod: records.PodRecord, one: in_flight.Preemption, why: str) -> Outcome:
        """Keep nothing for a pod any longer, and leave it alone for a while."""
        self.release(one)
        pause = self.cool.failed(pod.uid, self._parts.clock.monotonic())
        if one.own:
            self._parts.notices.count("failed")
            self._parts.notices.failed(pod, why)
            await self._parts.writes.clear(pod, one.record.node)
        return Outcome(f"preemption was given up: {why}", pause)

    def noted(self, pod: records.PodRecord) -> bool:
        """Keep the place that another process, or an earlier life of this one, has claimed.

        Return whether there is such a claim now.
        """
        now = self._parts.clock.now()
        present = self._parts.preemptions.get(pod.uid)
        lasting = self._settings.longest_seconds + self._settings.hold_seconds
        read = preemption_record.decode(pod.preemption, now, lasting)
        if read is None:
            if present is not None and not present.own:
                self.release(present)
            return False
        if present is not None and (present.record.id == read.id or present.record.at >= read.at):
            return False
        self.claim(pod, in_flight.Preemption(pod.key, pod.uid, read, now, own=False))
        return True

    def record(self, found: planner.Plan, now: float) -> preemption_record.Record:
        """Return what is noted of a plan on its pod."""
        leave = [now + claim.pod.requirements.grace_seconds for claim in found.found.victims]
        leave += [
            now + claim.pod.requirements.grace_seconds
            if claim.pod.leaves_at < 0
            else claim.pod.leaves_at
            for claim in found.found.leaving
        ]
        return preemption_record.Record(
            id=self._parts.new_id(),
            node=found.node,
            victims=tuple(c.pod.uid for c in (*found.found.victims, *found.found.leaving)),
            at=now,
            until=max(now, *leave) + self._settings.hold_seconds,
            granted=allocations.written(self._parts.plugins.codecs, found.granted),
        )

    def take_over(self, claim: views.Claim) -> str:
        """End what was kept for a preemptor of lower priority; return its key, empty if none."""
        other = self._parts.preemptions.get(claim.usable_by)
        if other is None:
            return ""
        self.release(other)
        self._parts.notices.count("taken_over")
        return other.key
