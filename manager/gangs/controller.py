"""Keeps the status of PodGroups, and reports and repairs gangs that fall below their minimum.

Every replica follows all gangs, so that a new leader knows which of them were complete; only the
leader writes.
"""

import dataclasses
import logging
from typing import Final

from kube.controllers import controller
from manager.gangs import (
    gang_book,
    gang_events,
    objects,
    quorum,
    repair,
    restarts,
    status_plan,
    status_writes,
)
from manager.reconcile import actions, apply
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics

logger = logging.getLogger(__name__)

NAME: Final = "podgroup"
_STATUS: Final = status_writes.Pace()
_RESTARTS: Final = restarts.Pace()


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How often is written, of all gangs together."""

    status: status_writes.Pace = _STATUS
    evictions: restarts.Pace = _RESTARTS


class Gangs:
    """All gangs, for as long as the process runs; `lead` and `follow` change what it may write."""

    def __init__(
        self,
        book: gang_book.GangBook,
        live: switches.Switches,
        pace: Pace,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._book = book
        self._clock = clock
        self._writer: apply.Writer | None = None
        self._memories: dict[str, quorum.Memory] = {}
        self._told: dict[str, float] = {}
        """By gang: for which loss it was said that it is below its minimum."""
        self._statuses = status_writes.Statuses(pace.status, clock)
        self._repairs = repair.Repairs(book, live, pace.evictions, clock, registry)
        self._lost: set[str] = set()
        self._below = registry.gauge(
            "koord_gangs_below_quorum",
            "Gangs that were complete and have fewer pods with a node than they need at least.",
        )

    def lead(self, writer: apply.Writer) -> None:
        """Write from now on."""
        self._writer = writer
        self._repairs.lead()

    def follow(self) -> None:
        """Write nothing from now on."""
        self._writer = None
        self._repairs.follow()
        self._told.clear()

    async def reconcile(self, gang_id: str) -> controller.Outcome:
        """Bring one gang up to date."""
        observed, writer = self._book.observed(gang_id), self._writer
        if observed is None:
            self._forget(gang_id)
            return await self._unreadable(gang_id)
        now = self._clock.monotonic()
        memory = quorum.followed(self._memories.get(gang_id), observed, now)
        self._remember(gang_id, memory, now)
        settles = _settles(memory, now)
        if writer is None:
            return controller.Outcome("follows", settles, changed=False)
        told = self._events(observed, memory, now)
        if told:
            await writer.carry_out(actions.Plan("says how the gang stands", told))
        again = await self._repairs.look(writer, observed, memory, self._write_status)
        outcome = await self._write_status(observed)
        return _within(outcome, settles, again)

    # --- What is known --------------------------------------------------------------------------

    def _remember(self, gang_id: str, memory: quorum.Memory, now: float) -> None:
        self._memories[gang_id] = memory
        if memory.lost(now):
            self._lost.add(gang_id)
        else:
            self._lost.discard(gang_id)
        self._below.set(len(self._lost))

    def _forget(self, gang_id: str) -> None:
        self._memories.pop(gang_id, None)
        self._told.pop(gang_id, None)
        self._statuses.forget(gang_id)
        self._repairs.forget(gang_id)
        self._lost.discard(gang_id)
        self._below.set(len(self._lost))

    # --- What is written ------------------------------------------------------------------------

    async def _unreadable(self, gang_id: str) -> controller.Outcome:
        group, writer = self._book.group(gang_id), self._writer
        if group is None or writer is None or not group.fault:
            return controller.Outcome("no gang", changed=False)
        return await writer.carry_out(actions.Plan(group.fault, gang_events.unreadable(group)))

    def _events(
        self, observed: objects.Observed, memory: quorum.Memory, now: float
    ) -> tuple[actions.Step, ...]:
        """Return what to say about a gang that has lost its minimum, or has it again."""
        gang_id, loss = observed.gang.id, memory.lost_at
        standing = quorum.standing(observed, memory)
        if loss is not None and memory.lost(now) and self._told.get(gang_id) != loss:
            self._told[gang_id] = loss
            logger.info("gang is below its minimum gang=%s %s", gang_id, quorum.sentence(standing))
            return gang_events.lost(observed, standing)
        if loss is None and self._told.pop(gang_id, None) is not None and standing.met:
            return gang_events.restored(observed, standing)
        return ()

    async def _write_status(self, observed: objects.Observed) -> controller.Outcome:
        group, writer = observed.group, self._writer
        memory = self._memories.get(observed.gang.id)
        if writer is None or group is None or group.native or group.deleting or memory is None:
            return controller.Outcome("its status is not written", changed=False)
        unseen = writer.unseen(group.resource, group.name, self._book.written, group.namespace)
        if unseen is not None:
            return unseen
        facts = status_plan.Facts(
            standing=quorum.standing(observed, memory),
            lost=memory.lost(self._clock.monotonic()),
            complete=memory.complete,
            unsure=memory.unsure,
            restarted_at=self._repairs.restarted_at(observed),
            now=self._clock.now(),
        )
        return await self._statuses.write(writer, observed, group, facts)


def _settles(memory: quorum.Memory, now: float) -> float | None:
    """Return after how long a loss counts."""
    waits = memory.lost_at is not None and now < memory.settles_at
    return memory.settles_at - now if waits else None


def _within(outcome: controller.Outcome, *seconds: float | None) -> controller.Outcome:
    known = [one for one in (outcome.requeue_after, *seconds) if one is not None]
    return dataclasses.replace(outcome, requeue_after=min(known, default=None))
