"""After a restart, or a burst of Bindings that was interrupted: plans are kept or completed."""

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Collection, Iterator
from typing import Final

from domain.gangs import table
from extender.gangs import in_force, recovery, rounds
from extender.gangs.planning import changed_nodes
from extender.settings import GangSettings
from extender.state import records

logger = logging.getLogger(__name__)

_EVICT_SECONDS: Final = 5.0
"""After how long an eviction that was refused is tried again."""
_GROWING_SECONDS: Final = 2.0
"""How long a gang that is being completed is left alone, and then again if more are bound."""


class Interruptions:
    """Finds plans, and bursts of Bindings, that a restart has interrupted."""

    def __init__(
        self, parts: in_force.Parts, plans: in_force.PlansInForce, settings: GangSettings
    ) -> None:
        self._parts, self._plans, self._settings = parts, plans, settings
        self.recovered = False
        self.partial: dict[str, tuple[float, int]] = {}
        """By group: when bound members are evicted, unless more are bound than so many by then; on
        the monotonic clock."""

    async def recover(self, found: table.Table) -> None:
        """Keep the places of plans that an earlier life of this process has made."""
        parts, now = self._parts, self._parts.clock.now()
        self.recovered = True
        longest = self._plans.lasting(1 << 16)
        unknown = changed_nodes.ChangedNodes(None)
        for one in recovery.plans(found.gathered(), parts.pods.get, now, longest):
            why = ""
            for why in self._plans.holding.place(one.places, one.until, unknown, now):
                await asyncio.sleep(0)
                if why:
                    break
            if why or not one.complete:
                # Planned anew; until then no other pod takes what is kept.
                logger.info("plan is made anew group=%s reason=%s", one.group, why or "incomplete")
                continue
            slots = {
                place.pod.uid: rounds.Slot(place.pod, place.gang, place.node)
                for place in one.places
            }
            resumed = rounds.Round(one.group, one.generation, now, one.until, slots, {})
            group = found.group(tuple(one.group.split(",")))
            resumed = self._with_bound(dataclasses.replace(resumed, opened=True), group)
            self._plans.resume(resumed)
        for listed in found.groups:
            # Also those that an eviction has left with too few members to be planned.
            if (group := found.group(listed)) is not None:
                self.look(group)

    def look(self, group: table.Group) -> None:
        """Take in a group that has changed: it may be bound in part."""
        found = recovery.partials(group, self._parts.pods.get)
        if found and group.id not in self.partial:
            self.partial[group.id] = self._deadline(found)

    def _deadline(self, found: list[recovery.Partial]) -> tuple[float, int]:
        seconds = self._settings.partial_seconds
        return self._parts.clock.monotonic() + seconds, sum(len(one.bound) for one in found)

    def completing(self, one: rounds.Round, group: table.Group | None) -> rounds.Round:
        """Return a plan with what it completes, where an interruption left others bound."""
        return self._with_bound(one, group) if one.group in self.partial else one

    def _with_bound(self, one: rounds.Round, group: table.Group | None) -> rounds.Round:
        if group is None:
            return one
        origin, bound = recovery.completed(group, self._parts.pods.get)
        return dataclasses.replace(one, completes=origin, bound=bound)

    def due(self, groups: Collection[str], now: float) -> str:
        """Return the first of some groups that is bound in part and may be planned now, or ""."""
        is_due = self._parts.queue.is_due
        return min((one for one in self.partial if one in groups and is_due(one, now)), default="")

    async def end_partials(self, known: Callable[[], table.Table | None]) -> None:
        """Evict what was bound of groups that could not be completed in time."""
        parts = self._parts
        for ident, (deadline, bound) in list(self.partial.items()):
            is_due = parts.clock.monotonic() >= deadline and parts.enforces()
            if is_due and await parts.doubt():
                # Another extender may have bound the others long since.
                return
            found = self._found(ident, known())
            if not found:
                del self.partial[ident]
                continue
            held = sum(len(one.bound) for one in found)
            if is_due and held > bound and ident in self._plans.by_group:
                self.partial[ident] = parts.clock.monotonic() + _GROWING_SECONDS, held
            elif is_due:
                await self._evict(ident, found)

    def _found(self, ident: str, known: table.Table | None) -> list[recovery.Partial]:
        """Return what is bound of a group, which may have too few members left to be planned."""
        group = known.group(tuple(ident.split(","))) if known is not None else None
        return recovery.partials(group, self._parts.pods.get) if group is not None else []

    async def _evict(self, ident: str, found: list[recovery.Partial]) -> None:
        held = sum(len(part.bound) for part in found)
        self.partial[ident] = self._parts.clock.monotonic() + _EVICT_SECONDS, held
        one = self._plans.by_group.get(ident)
        if one is not None:
            self._plans.give_up(one, "its members were not completed after an interruption")
        for pod in _leaving(found):
            failure = await self._parts.writes.evict(pod)
            self._parts.notices.evicted(pod, ident, failure)


def _leaving(found: list[recovery.Partial]) -> Iterator[records.PodRecord]:
    return (pod for one in found for pod in one.bound if pod.leaves_at < 0)
