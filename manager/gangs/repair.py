"""Restarts gangs that ask for it: decides, says so and evicts, as the live switch allows."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from domain.gangs import declaration, status
from kube.controllers import controller
from manager.gangs import gang_book, gang_events, objects, quorum, restart_plan, restarts
from manager.reconcile import actions, apply
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics

logger = logging.getLogger(__name__)

SWITCH: Final = "gang-repair"
"""Its key among the live switches."""

Note = Callable[[objects.Observed], Awaitable[controller.Outcome]]
"""Writes down on the PodGroup of a gang that it is restarted; says when to try again."""


class Repairs:
    """The restarts of all gangs."""

    def __init__(
        self,
        book: gang_book.GangBook,
        live: switches.Switches,
        pace: restarts.Pace,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._book = book
        self._live = live
        self._clock = clock
        self._since = clock.monotonic()
        self._terms = 0
        """How many terms of leadership have ended."""
        self._said: dict[str, float] = {}
        """For which loss of a gang it was said why its pods stay."""
        self._restarts = restarts.Restarts(pace, clock, registry)

    def lead(self) -> None:
        """Take over from another leader, whose restarts are not known."""
        self._since = self._clock.monotonic()

    def follow(self) -> None:
        """Stop what is under way."""
        self._terms += 1
        self._restarts.drop()

    def forget(self, gang_id: str) -> None:
        """Forget a gang that is gone; when it was restarted last is kept."""
        self._said.pop(gang_id, None)
        self._restarts.forget(gang_id)

    def restarted_at(self, observed: objects.Observed) -> float | None:
        """Return when a gang was restarted last, in seconds since the epoch, as far as known."""
        here = self._restarts.last(observed.gang.id)
        found = None if observed.group is None else observed.group.condition(status.RESTARTED)
        noted = None if found is None else found.last_transition_time
        known = [moment for moment in (here, noted) if moment is not None]
        # A moment that is still to come was not written by this manager.
        return min(max(known), self._clock.now()) if known else None

    async def look(
        self,
        writer: apply.Writer,
        observed: objects.Observed,
        memory: quorum.Memory,
        note: Note,
    ) -> float | None:
        """Begin or go on with a restart of a gang; return after how long to look again."""
        gang_id = observed.gang.id
        if not self._live.asks:
            return None
        if self._restarts.is_under_way(gang_id):
            return await self._go_on(writer, observed, note) if self._live.enforces else None
        if observed.gang.repair is not declaration.Repair.RESTART:
            return None
        found = self._decided(observed, memory)
        match found:
            case None:
                return None
            case restart_plan.Later(seconds, why):
                await self._explain(writer, observed, memory, why)
                return seconds
            case restart_plan.Restart():
                if self._live.enforces:
                    return await self._restart(writer, observed, memory, found, note)
                await self._would_restart(writer, observed, memory, found)
                return None

    def _decided(
        self, observed: objects.Observed, memory: quorum.Memory
    ) -> restart_plan.Restart | restart_plan.Later | None:
        at = restart_plan.Now(self._clock.monotonic(), self._clock.now())
        together = restart_plan.related(observed, self._book.observed)
        moments = {one.gang.id: self.restarted_at(one) for one in together}
        last = {
            gang_id: moment - at.wall + at.monotonic
            for gang_id, moment in moments.items()
            if moment is not None
        }
        history = restart_plan.History(last, self._since)
        return restart_plan.decided(together, memory, history, at)

    async def _restart(
        self,
        writer: apply.Writer,
        observed: objects.Observed,
        memory: quorum.Memory,
        found: restart_plan.Restart,
        note: Note,
    ) -> float | None:
        term = self._terms
        if why := await self._restarts.refused(writer, found):
            await self._explain(writer, observed, memory, why)
            return restart_plan.LOOK_AGAIN_SECONDS
        if term != self._terms:
            return None  # Another replica leads by now.
        logger.info("gang is restarted gang=%s pods=%d", observed.gang.id, len(found.pods))
        self._restarts.start(observed.gang.id, found)
        return await self._go_on(writer, observed, note)

    async def _go_on(
        self, writer: apply.Writer, observed: objects.Observed, note: Note
    ) -> float | None:
        """Evict the pods, once it is noted that all of them start anew.

        The note limits restarts, and without it the first new pods are placed on their own.
        """
        found = self._restarts.unnoted(observed.gang.id)
        if found is not None:
            again = await self._noted(found, note)
            if again is not None:
                return again
            told = gang_events.restarted(observed, found)
            await writer.carry_out(actions.Plan("says that it restarts", told))
            if not self._restarts.noted(observed.gang.id):
                return None  # Another replica leads by now.
        progress = await self._restarts.go_on(writer, observed.gang.id)
        if progress.kept:
            told = gang_events.incomplete(observed, progress.kept)
            await writer.carry_out(actions.Plan("says that pods were kept", told))
        return progress.again_in

    async def _noted(self, found: restart_plan.Restart, note: Note) -> float | None:
        """Note a restart on every PodGroup; return after how long to try again, None when done."""
        for one in map(self._book.observed, found.gangs):
            outcome = None if one is None else await note(one)
            if outcome is not None and outcome.requeue_after is not None:
                return outcome.requeue_after
        return None

    async def _explain(
        self, writer: apply.Writer, observed: objects.Observed, memory: quorum.Memory, why: str
    ) -> None:
        """Say once for each loss why a gang is not restarted."""
        if why and self._is_news(observed, memory):
            self._restarts.results.labels("delayed").inc()
            told = gang_events.delayed(observed, why)
            await writer.carry_out(actions.Plan("says why it is not restarted", told))

    async def _would_restart(
        self,
        writer: apply.Writer,
        observed: objects.Observed,
        memory: quorum.Memory,
        found: restart_plan.Restart,
    ) -> None:
        if self._is_news(observed, memory):
            logger.info("gang would restart gang=%s pods=%d", observed.gang.id, len(found.pods))
            self._restarts.results.labels("would-restart").inc()
            told = gang_events.would_restart(observed, found)
            await writer.carry_out(actions.Plan("says that it would restart", told))

    def _is_news(self, observed: objects.Observed, memory: quorum.Memory) -> bool:
        loss = memory.settles_at if memory.left_at is None else memory.left_at
        if self._said.get(observed.gang.id) == loss:
            return False
        self._said[observed.gang.id] = loss
        return True
