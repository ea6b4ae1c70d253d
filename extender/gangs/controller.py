"""Plans gangs one after another, in fair order, on a fork of the state; keeps what they find.

One group is planned at a time, in one place: of two gangs that exclude each other exactly one wins.
Planning yields to the loop every few milliseconds, so calls of kube-scheduler do not wait for it.
"""

import asyncio
import logging
import math
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from domain.gangs import sentences, table
from extender.framework import views
from extender.gangs import exchanges, in_force, interruptions, queue, rounds
from extender.gangs.planning import attempts, changed_nodes, groups, planner, planning_fork
from extender.gangs.preemption import preemptor
from extender.gangs.telling import sayings
from extender.settings import GangSettings
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

_TICK_SECONDS: Final = 1.0
_TOGETHER_SECONDS: Final = 0.02
"""How long changes are gathered: the members of a gang come one after the other."""
_LONGEST_TOGETHER_SECONDS: Final = 0.2
"""The same where a look at all gangs takes long."""
_DOUBT_SECONDS: Final = 1.0
_FORK_SECONDS: Final = 5.0
"""How long the fork of the state stays after the last plan that was made on it."""
_GROUPS: Final = 64
"""Gang groups that are looked at in one step."""
_TRIES: Final = 3
"""Plans of one group in a row, where another pod took what the first one found."""


_Since = changed_nodes.ChangedNodes


class _Seen(NamedTuple):
    """A group that is complete, as it was when it was looked at."""

    entries: sayings.Entries
    group: table.Group
    standing: queue.Waiting


class GangController:
    """Reconciles all gangs whenever something has changed that concerns them."""

    def __init__(
        self,
        parts: in_force.Parts,
        settings: GangSettings,
        preempting: preemptor.GangPreemptor | None = None,
    ) -> None:
        """Without `preempting` no pod leaves for a gang."""
        self._parts, self._settings, self._preempting = parts, settings, preempting
        self.plans = in_force.PlansInForce(parts, settings)
        self._fork = planning_fork.PlanningFork(parts.books.cluster, frozenset({in_force.PLUGIN}))
        self._attempts = attempts.Attempts(parts, self._fork)
        self._nap = clocks.Nap(parts.clock)
        self._seen: dict[tuple[str, ...], _Seen] = {}
        self._groups: dict[str, table.Group] = {}
        self._since: dict[str, float] = {}
        """By group: since when it has no plan."""
        self._sayings = sayings.Sayings(parts)
        self._exchanges = exchanges.Exchanges(parts, self.plans)
        self._interruptions = interruptions.Interruptions(parts, self.plans, settings)
        self._freed, self._told_at, self._look_seconds = False, -math.inf, 0.0
        self._elapsed = parts.clock.monotonic  # of the queue, also where the other one is set back
        parts.notices.watch(parts.queue, self.plans, self.plans.backlog)

    # -- what happens ------------------------------------------------------------------------

    def follow(self, delta: views.Delta) -> None:
        """Take in a change of the state: a member came or went, or capacity was freed."""
        self.plans.follow(delta)
        match delta:
            case views.ClaimDelta(_, before, after):
                if before is None or (after is not None and after.node == before.node):
                    return
                self._freed = True
            case views.NodeDelta():
                self._freed = True
            case views.ObjectDelta(kind) if kind == views.GANG_PLAN:
                return
            case views.ObjectDelta(kind, _, before, _) if kind != views.UNSCHEDULED_POD:
                self._freed = self._freed or before is not None
        if self._parts.queue or self.plans or _is_gang(delta):
            self._nap.wake()

    def offered(self, uid: str, nodes: Collection[str], is_bound_by_volumes: bool) -> str:
        """Take in at which nodes kube-scheduler looks for a member; return where it is placed."""
        freed = self._freed
        node = self._exchanges.offered(uid, nodes, is_bound_by_volumes=is_bound_by_volumes)
        # Members that have exchanged their places keep what they kept together.
        self._freed = freed
        return node

    # -- the loop ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Plan what is due, for ever."""
        while True:
            await self._nap.rest(self._pause())
            # However many gangs and members there are, looking at them takes a fourth of the time.
            pause = min(max(_TOGETHER_SECONDS, 3 * self._look_seconds), _LONGEST_TOGETHER_SECONDS)
            await self._parts.clock.sleep(pause)
            await self.step()

    def _pause(self) -> float:
        due, now = self._parts.queue.due(self._busy()), self._elapsed()
        if due is None or (due <= now and not self._next()):
            return _TICK_SECONDS
        return max(0.0, min(_TICK_SECONDS, due - now))

    def _busy(self) -> set[str]:
        """Return the groups that have a plan, and those for which pods are leaving."""
        leaving = self._preempting.waiting() if self._preempting is not None else ()
        return {*self.plans.by_group, *leaving}

    def _now(self) -> float:
        return self._parts.clock.now()

    async def step(self) -> None:
        """Look at all gangs once; plan every group that is due."""
        parts = self._parts
        found = self._attempts.table()
        if found is None:
            return
        if not self._interruptions.recovered:
            if await parts.doubt():
                return
            found = await self._recover(found)
        await self._observe(found)
        if self._freed:
            self._freed = False
            parts.queue.freed(self._elapsed())
        await self._tend()
        while group := self._next():
            if await parts.doubt():
                await parts.clock.sleep(_DOUBT_SECONDS)
                return
            if parts.enforces():
                await self._plan(group)
            else:
                await self._open_all(group)
            await self.plans.tend()
        self._fork.close_idle(self._now(), _FORK_SECONDS)
        if self._elapsed() - self._told_at >= _TICK_SECONDS:
            # Once a second: it looks at every group there is.
            self._told_at = self._elapsed()
            planned = self.plans.by_group.keys() | parts.queue.failing()
            await _in_steps(self._sayings.in_line(parts.queue.line(), self._groups, planned))
            present = self._attempts.table() or found
            await _in_steps(self._sayings.incomplete(present, self._seen.keys()))
            self.plans.forget_gone(lambda group: tuple(group.split(",")) in present.groups)

    async def _recover(self, found: table.Table) -> table.Table:
        """Keep what an earlier life of this process kept."""
        await self._interruptions.recover(found)
        found = self._attempts.table() or found
        await self._observe(found)
        if self._preempting is not None:
            self._preempting.adopt(self._groups)
        return found

    async def _tend(self) -> None:
        """Look at plans in force, at preemptions under way, and at what was bound in part."""
        await self.plans.tend()
        if self._preempting is not None:
            await self._preempting.tend(self._groups)
        await self._interruptions.end_partials(self._attempts.table)

    def _next(self) -> str:
        """Return the group to be planned now: first what an interruption left bound in part."""
        busy, now = self._busy(), self._elapsed()
        partial = self._interruptions.due(self._groups.keys() - busy, now)
        return partial or self.plans.gates.next(self._parts.queue, now, busy)

    async def _observe(self, found: table.Table) -> None:
        """Take in which groups wait; a group that has not changed is not looked at again."""
        began, seen = self._elapsed(), dict[tuple[str, ...], _Seen]()
        for number, listed in enumerate(found.waiting, start=1):
            if number % _GROUPS == 0:
                await asyncio.sleep(0)
            entries = tuple(map(found.entries.get, listed))
            known = self._seen.get(listed)
            if known is not None and known.entries == entries:
                seen[listed] = known
                continue
            group = found.group(listed)
            if group is None or not group.gathered:
                continue
            seen[listed] = _Seen(entries, group, groups.standing(group))
            if known is not None and _children(known.group) != _children(group):
                self._parts.queue.forget(group.id)
            self._interruptions.look(group)
        self._seen = seen
        self._groups = {one.group.id: one.group for one in seen.values()}
        for gone in self._since.keys() - self._groups.keys():
            del self._since[gone]
        self._parts.queue.take(one.standing for one in seen.values())
        self._look_seconds = self._elapsed() - began

    # -- planning ------------------------------------------------------------------------------

    async def _plan(self, ident: str) -> None:
        """Plan one group and keep its places, or say why there are none."""
        group, parts = self._groups[ident], self._parts
        self._since.setdefault(ident, self._now())
        why = ""
        for _ in range(_TRIES):
            whole = ident in self._interruptions.partial
            wanted = groups.wanted(group, parts.pods.get, whole=whole)
            if not wanted.members:
                parts.queue.failed(ident, self._elapsed())
                return
            with changed_nodes.following(parts.books.cluster) as since:
                began = parts.clock.monotonic()
                found = await self._attempts.made(group, wanted, self.plans.avoided())
                parts.notices.planned(parts.clock.monotonic() - began)
                if isinstance(found, planner.Refused):
                    await self._refused(group, wanted, found)
                    return
                if not found.placements:
                    parts.queue.failed(ident, self._elapsed())
                    return
                why = await self._kept(wanted, found, since)
            if not why:
                return
        pause = parts.queue.failed(ident, self._elapsed())
        self._sayings.say(group, sentences.failed(why, retry_seconds=pause))

    async def _kept(self, wanted: groups.Wanted, plan: planner.Plan, since: _Since) -> str:
        """Keep the places of a plan, all or none; return why they could not be kept."""
        parts, now = self._parts, self._now()
        until = now + self.plans.lasting(len(plan.placements))
        gone = [one.pod.key for one in plan.placements if not _is_there(parts, one)]
        if gone:
            return f"{gone[0]} was deleted meanwhile"
        uids = [one.pod.uid for one in plan.placements]
        # What an earlier plan kept for members that have no place in this one.
        self.plans.holding.release(
            member.pod.uid for member in wanted.members if member.pod.uid not in set(uids)
        )
        for why in self.plans.holding.place(plan.placements, until, since, now):
            if why:
                self.plans.holding.release(uids)
                parts.notices.count("contested")
                return why
            await asyncio.sleep(0)
        names = wanted.id, parts.new_id()
        one = rounds.of_plan(plan, wanted.needed, names, (self._since.pop(wanted.id, now), until))
        one = self._interruptions.completing(one, self._groups.get(wanted.id))
        members = [(one.pod.uid, one.pod.key) for one in plan.placements]
        parts.telling.say(members, sentences.planned(0, len(members)), ready=True)
        parts.notices.count("planned")
        self.plans.begin(one)
        if self._preempting is not None:
            await self._preempting.placed(wanted.id)
        return ""

    async def _refused(
        self, group: table.Group, wanted: groups.Wanted, found: planner.Refused
    ) -> None:
        parts, now = self._parts, self._now()
        self.plans.backlog.refused(again=group.id in parts.queue.failing())
        parts.queue.failed(group.id, self._elapsed())
        self._fork.forget_sorts()
        self.plans.holding.release(member.pod.uid for member in wanted.members)
        if self._preempting is not None and await self._preempting.consider(
            wanted, found, self._attempts.maker(group, wanted, self.plans.avoided())
        ):
            return
        said = sentences.no_room(
            found.told,
            member=found.member,
            blocked=wanted.blocked,
            placed=found.placed,
            wanted=found.needed,
            waiting_seconds=now - self._since.get(group.id, now),
        )
        self._sayings.say(group, said)
        parts.notices.refused(parts.pods.get(found.member) or wanted.members[0].pod, found.sentence)

    async def _open_all(self, ident: str) -> None:
        """Open the gates of a complete group without a plan: nothing is enforced."""
        parts = self._parts
        wanted = groups.wanted(self._groups[ident], parts.pods.get)
        gated = [m.pod for m in wanted.members if m.pod.gang is not None and m.pod.gang.gated]
        for start in range(0, len(gated), self._settings.writers):
            several = gated[start : start + self._settings.writers]
            await asyncio.gather(*(parts.writes.open(pod, None) for pod in several))
        parts.queue.failed(ident, self._elapsed())
        parts.notices.count("observed")


def _children(group: table.Group) -> int:
    return sum(entry.counts.children for entry in group.gangs)


def _is_there(parts: in_force.Parts, one: planner.Placement) -> bool:
    pod = parts.pods.get(one.pod.key)
    return pod is not None and pod.uid == one.pod.uid and not pod.node and pod.leaves_at < 0


def _is_gang(delta: views.Delta) -> bool:
    if isinstance(delta, views.ObjectDelta):
        pod = delta.after or delta.before
        return delta.kind != views.UNSCHEDULED_POD or getattr(pod, "gang", None) is not None
    return False


async def _in_steps(work: Iterator[None]) -> None:
    for number, _ in enumerate(work, start=1):
        if number % _GROUPS == 0:
            await asyncio.sleep(0)
