"""Preempts for gang groups: search, keep the places, note, evict all or none, plan again.

The places are counted in the ledger before anything is written, and the record of all victims is on
a member before the first eviction. When the victims have left the group is planned as any
other, on what is kept for it. One group is searched for at a time.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, cast

from domain import wording
from domain.gangs import table
from domain.pods import disruption_budgets as disruption
from extender.gangs import in_force
from extender.gangs.planning import groups, planner
from extender.gangs.preemption import (
    candidates,
    execution,
    notices,
    places,
    record,
    search,
)
from extender.preemption import in_flight
from extender.preemption import planner as preemption_planner
from extender.settings import PreemptionSettings
from extender.state import cluster_state
from process.configuration import switches
from process.runtime import token_bucket

logger = logging.getLogger(__name__)

_ORPHAN_SECONDS: Final = 5.0
"""After how long a preemption of another process counts as left behind."""
_TRIES: Final = 3
"""Searches in a row, where nodes have changed during the last one."""
_ROWS: Final = 512
"""Nodes that are copied at once for a fork."""
_TOO_LARGE: Final = (
    f"the record of more than {record.MOST_PLACES} places, or of such long names, has no room"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What preemption for gangs works on, beside the parts of the controller of gangs."""

    settings: PreemptionSettings
    mode: Callable[[], switches.Mode]
    """How far anything may go."""
    doubt: Callable[[], Awaitable[str]]
    """Why the view or the disruption budgets cannot be trusted now; empty if they can."""
    budgets: Callable[[], disruption.Budgets]
    preemptions: in_flight.Preemptions
    """Those of single pods: what leaves for them is no victim of a gang."""
    places: places.Places
    execution: execution.Execution
    notices: notices.Notices


class GangPreemptor:
    """Looks for victims of gangs that have no room."""

    def __init__(self, gangs: in_force.Parts, parts: Parts) -> None:
        self._gangs, self._parts = gangs, parts
        chosen = parts.settings
        self._cool = in_flight.CoolDown(chosen.cool_down_seconds, chosen.longest_cool_down_seconds)
        self._bucket = token_bucket.Bucket(chosen.per_second, chosen.burst, gangs.clock.monotonic())
        self._refused: dict[str, float] = {}
        """By uid: until when a pod whose eviction was refused is no victim."""
        self.underway: dict[str, places.Underway] = {}
        """By group."""

    def enabled(self) -> bool:
        """Whether the arguments of the plug-in allow it, and anything may be said or done."""
        guards = self._gangs.plugins.guards
        plugin = next((one for one in guards if one.name == in_force.PLUGIN), None)
        return bool(getattr(plugin, "preempts", False)) and self._mode() is not switches.Mode.OFF

    def _mode(self) -> switches.Mode:
        return self._parts.mode()

    def waiting(self) -> Collection[str]:
        """Return the groups whose victims are terminating; until then they are not planned."""
        return {group for group, one in self.underway.items() if not one.settled}

    # -- what is under way -------------------------------------------------------------------

    def adopt(self, waiting: Mapping[str, table.Group]) -> None:
        """Keep the places that records on members name, of an earlier life or another process."""
        for group in waiting.values():
            if group.id not in self.underway and self.enabled():
                self._adopt(groups.wanted(group, self._gangs.pods.get))

    def _adopt(self, wanted: groups.Wanted) -> bool:
        now, chosen = self._gangs.clock.now(), self._parts.settings
        longest = chosen.longest_seconds + chosen.hold_seconds
        uids = {member.pod.uid for member in wanted.members}
        for member in wanted.members:
            text = places.noted(member.pod)
            read = record.decode(text, now, longest) if text else None
            if read is None or read.group != wanted.id or not read.places.keys() <= uids:
                continue
            known = self.underway.get(wanted.id)
            if known is not None and known.record.at >= read.at:
                continue
            one = places.Underway(read, member.pod, now, own=False)
            if known is not None:
                self._parts.places.release(known.record.places)
            self.underway[wanted.id] = one
            self._parts.places.keep(one, wanted.members)
            return True
        return False

    async def tend(self, waiting: Mapping[str, table.Group]) -> None:
        """Look at what is under way: victims have left, were not evicted, or it takes too long."""
        now = self._gangs.clock.now()
        for group, one in list(self.underway.items()):
            if group not in waiting:
                await self._end(group, "")
            elif self._mode() is not switches.Mode.ENFORCE or not self.enabled():
                await self._end(group, "preemption was switched off")
            elif in_flight.is_over(one.record.until, one.since, now):
                await self._end(group, "its victims did not leave in time, or others took the room")
            elif not one.settled and self._is_settled(one, now):
                self.underway[group] = dataclasses.replace(one, settled=True)
                self._gangs.queue.forget(group)

    def _is_settled(self, one: places.Underway, now: float) -> bool:
        """Whether the group is to be planned again."""
        there = in_flight.present(one.record.victims, self._gangs.books.cluster)
        if not there:
            return True
        staying = any(not leaves and uid not in one.evicted for uid, leaves in there.items())
        wait = execution.WINDOW_SECONDS if one.own else _ORPHAN_SECONDS
        return staying and now - one.since >= wait

    async def _end(self, group: str, why: str) -> None:
        """Keep nothing for a group any longer; `why` is said where it came to nothing."""
        one = self.underway.pop(group)
        self._parts.places.release(one.record.places)
        if why:
            self._cool.failed(group, self._gangs.clock.monotonic())
            self._parts.notices.failed(one.lead, why)
        await self._parts.places.clear(one)

    async def placed(self, group: str) -> None:
        """Take in that a group has a plan: what is kept beyond it is released."""
        self._cool.forget(group)
        one = self.underway.pop(group, None)
        if one is not None:
            self._parts.places.release(one.record.places)
            if one.own:
                self._parts.notices.placed(self._gangs.clock.now() - one.since)
            await self._parts.places.clear(one)

    # -- begin -------------------------------------------------------------------------------

    async def consider(
        self, wanted: groups.Wanted, refused: planner.Refused, make: search.Make
    ) -> bool:
        """Preempt for a group that has no room, if pods may leave for it; return whether."""
        if not self.enabled() or not await self._may_begin(wanted):
            return wanted.id in self.underway
        found = await self._searched(wanted, make)
        if isinstance(found, search.NoVictims):
            await self._no_victims(wanted, found)
            return False
        lead = min(wanted.members, key=lambda one: one.pod.key).pod
        priority = min(one.pod.requirements.priority for one in wanted.members)
        why = notices.Why(wanted.id, lead, priority, refused.told)
        if self._mode() is switches.Mode.OBSERVE:
            self._cool.failed(wanted.id, self._gangs.clock.monotonic())
            self._parts.notices.planned(why, found, enforced=False)
            self._parts.notices.count("observed")
            return False
        await self._carry_out(wanted, why, found)
        return wanted.id in self.underway

    async def _may_begin(self, wanted: groups.Wanted) -> bool:
        if wanted.blocked or self._adopt(wanted):
            return False
        one = self.underway.get(wanted.id)
        if one is not None and not one.settled:
            return False
        if one is None and self._cool.left(wanted.id, self._gangs.clock.monotonic()):
            return False
        if await self._parts.doubt():
            return False
        return self._bucket.take(self._gangs.clock.monotonic())

    async def _searched(
        self, wanted: groups.Wanted, make: search.Make
    ) -> search.Victims | search.NoVictims:
        """Search on what is known; again where nodes have changed meanwhile."""
        for _ in range(_TRIES):
            fork = await self._forked()
            case = search.Case(
                wanted.members, sum(wanted.needed.values()), self._terms(wanted.id),
                self._gangs.clock.now(),
            )  # fmt: skip
            made = search.Search(self._gangs.judging(), fork, case, make)
            for _ in made.steps():
                await asyncio.sleep(0)
            assert made.result is not None
            found = made.result
            if isinstance(found, search.NoVictims):
                return found
            if self._parts.places.unchanged(found, fork):
                return found
        return search.NoVictims("nodes changed while victims were sought")

    async def _forked(self) -> cluster_state.ClusterState:
        """Fork the state in slices, so that other calls are answered in between."""
        cluster = self._gangs.books.cluster
        cluster.view()
        slices = cluster.forking(_ROWS)
        while True:
            try:
                next(slices)
            except StopIteration as end:
                return cast(cluster_state.ClusterState, end.value)
            await asyncio.sleep(0)

    def _terms(self, group: str) -> candidates.Terms:
        now, elapsed = self._gangs.clock.now(), self._gangs.clock.monotonic()
        self._refused = {uid: until for uid, until in self._refused.items() if until > elapsed}
        one = self.underway.get(group)
        others = (uid for key, each in self.underway.items() if key != group
                  for uid in each.record.victims)  # fmt: skip
        elsewhere = self._parts.preemptions.going("")
        return candidates.Terms(
            self._parts.budgets(),
            now + self._parts.settings.longest_seconds,
            frozenset((*self._refused, *others, *elsewhere)),
            one.evicted if one is not None else frozenset(),
        )

    async def _no_victims(self, wanted: groups.Wanted, found: search.NoVictims) -> None:
        logger.info("no pod is preempted for a gang group=%s reason=%s", wanted.id, found.reason)
        if wanted.id in self.underway:
            await self._end(wanted.id, found.reason)
            return
        self._cool.failed(wanted.id, self._gangs.clock.monotonic())
        self._parts.notices.count("no_victims")

    # -- carry out -----------------------------------------------------------------------------

    async def _carry_out(
        self, wanted: groups.Wanted, why: notices.Why, found: search.Victims
    ) -> None:
        """Keep the places, note them, and evict all victims; or give everything back."""
        parts, now = self._parts, self._gangs.clock.now()
        if not found.found.victims and not found.found.leaving:
            # There is room by now.
            self._gangs.queue.forget(wanted.id)
            return
        made = places.made(found, wanted.id, self._gangs.new_id(), now, parts.settings.hold_seconds)
        if not record.fits(made):
            # A restart could not read it: pods would have left, and their places would be lost.
            await self._no_victims(wanted, search.NoVictims(_TOO_LARGE))
            return
        earlier = self.underway.get(wanted.id)
        if earlier is not None:
            parts.places.release(earlier.record.places)
        evicted = earlier.evicted if earlier is not None else frozenset()
        one = places.Underway(made, why.lead, now, own=True, evicted=evicted)
        self.underway[wanted.id] = one
        parts.places.keep(one, wanted.members, found.placements)
        said = await parts.places.note(one)
        if said:
            self.underway.pop(wanted.id, None)
            parts.places.release(made.places)
            logger.info("preemption could not be noted group=%s reason=%s", wanted.id, said)
            return
        parts.notices.planned(why, found, enforced=True)
        members = [(each.pod.uid, each.pod.key) for each in found.placements]
        self._gangs.telling.say(members, notices.said(found))
        leaving = found.found.victims[::-1]
        outcome = await parts.execution.evict(leaving, why, lambda: self._still(wanted.id, made.id))
        await self._evicted(wanted.id, made.id, outcome)

    def _still(self, group: str, ident: str) -> bool:
        one = self.underway.get(group)
        same = one is not None and one.record.id == ident
        return same and self._mode() is switches.Mode.ENFORCE

    async def _evicted(self, group: str, ident: str, outcome: execution.Outcome) -> None:
        one = self.underway.get(group)
        if one is None or one.record.id != ident:
            return
        self.underway[group] = dataclasses.replace(one, evicted=one.evicted | outcome.accepted)
        if outcome.refused is None:
            return
        until = self._gangs.clock.monotonic() + self._parts.settings.budget_seconds
        self._refused[outcome.refused.pod.uid] = until
        gone = wording.count(len(outcome.accepted), "pod was", "pods were")
        already = f"; {gone} evicted before it" if outcome.accepted else ""
        victim = outcome.refused.pod
        key = preemption_planner.shown(victim.key, victim.uid, one.lead.namespace)
        await self._end(group, f"{key} may not be evicted now: {outcome.why}{already}")
