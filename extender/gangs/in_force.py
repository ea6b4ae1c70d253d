"""Plans in force: gates are opened, members are followed to their nodes, failures release all."""

import asyncio
import dataclasses
import functools
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from domain import persistent
from domain.gangs import sentences
from extender.framework import pipeline, views
from extender.gangs import (
    backlog,
    gates,
    holding,
    queue,
    renominations,
    retries,
    rounds,
    writes,
)
from extender.gangs.telling import conditions, notices
from extender.settings import GangSettings
from extender.state import allocations, gang_facts, ledger, records
from kube.informers import store
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

PLUGIN: Final = "Coscheduling"
"""The plug-in that keeps the table of gangs, and lets no member pass that has no plan."""
_LOOK_SECONDS: Final = 1.0
"""How often every plan is looked at; those whose members change are looked at sooner."""
_AVOID_SECONDS: Final = 60.0
"""How long a member is not planned on a node on which kube-scheduler did not place it."""
_TRIES: Final = 4
_FIRST_PAUSE: Final = 0.25


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What the controller of gangs works on."""

    books: ledger.Ledger
    plugins: pipeline.Pipeline
    pods: store.Store[records.PodRecord]
    clock: clocks.Clock
    writes: writes.Writes
    telling: conditions.Telling
    notices: notices.Notices
    queue: queue.Queue
    new_id: Callable[[], str]
    doubt: Callable[[], Awaitable[str]]
    """Why the view cannot be trusted now; empty if it can."""
    enforces: Callable[[], bool]
    """Whether plans count; otherwise gates are opened as soon as a gang is complete."""
    wake: Callable[[Iterable[str]], None]
    """Lets members that wait at Permit look again, by the id of their group."""
    sampling: renominations.Sampling
    spawn: Callable[[str, Awaitable[None]], None]
    """Runs something beside."""

    def judging(self) -> pipeline.Pipeline:
        """Return the plug-ins that judge a member that has no plan yet."""
        return pipeline.without(self.plugins, PLUGIN)


class PlansInForce:
    """The plans whose members are on their way to their nodes."""

    def __init__(self, parts: Parts, settings: GangSettings) -> None:
        self._parts, self._settings = parts, settings
        self.holding = holding.Holding(parts.books, parts.judging)
        self.by_group: dict[str, rounds.Round] = {}
        self._failed_writes: dict[str, str] = {}
        """By generation: why a gate could not be opened."""
        self._avoided: dict[str, dict[str, float]] = {}
        """By uid: until when which node is not planned for a member."""
        self._groups: dict[str, str] = {}
        """By uid of the members of all plans."""
        self._changed: set[str] = set()
        """Groups with members that have changed since their plans were looked at."""
        self._looked_at = -math.inf
        self.backlog = backlog.Backlog(parts.clock, settings.backlog_members)
        self.gates = gates.Gates(settings.writers, self.backlog)
        self.opening: set[str] = set()
        """Uids of the members whose places are being written."""
        self._renominations = renominations.Renominations(
            parts.books.cluster, parts.pods, parts.sampling, parts.clock
        )
        self._retries = retries.Retries(
            retries.Parts(
                parts.pods, parts.clock, parts.writes, self.gates, parts.notices, parts.spawn
            ),
            self._renominations,
            self.backlog,
        )
        self._given_up: set[str] = set()
        """Groups of which plug-ins know why their last plan was given up."""

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.by_group)

    def avoided(self) -> Mapping[str, tuple[str, ...]]:
        """Return by uid the nodes on which kube-scheduler has not placed a member."""
        now = self._parts.clock.monotonic()
        kept = {
            uid: {node: until for node, until in nodes.items() if until > now}
            for uid, nodes in self._avoided.items()
        }
        self._avoided = {uid: nodes for uid, nodes in kept.items() if nodes}
        return {uid: tuple(sorted(nodes)) for uid, nodes in self._avoided.items()}

    def lasting(self, members: int) -> float:
        """Return for how many seconds the places of so many members are kept."""
        return self._settings.plan_seconds + self._settings.member_seconds * members

    # -- begin and end -----------------------------------------------------------------------

    def begin(self, one: rounds.Round) -> None:
        """Take in a plan whose claims are placed: plug-ins see it, and gates are opened."""
        self._take(_prepared(one, self._parts, self.holding))
        one = self.by_group[one.group]
        self._parts.queue.placed(one.group)
        first = one.probes or tuple(one.slots)
        if not one.probes:
            self.by_group[one.group] = one = dataclasses.replace(one, opened=True)
        self._parts.spawn(f"gang-{one.generation}", self._open(one, first))

    def resume(self, one: rounds.Round) -> None:
        """Take in a plan of an earlier life of this process: its gates are open already."""
        named = frozenset(uid for uid, slot in one.slots.items() if slot.pod.nominated)
        one = dataclasses.replace(one, nominated=named)
        self._take(one)
        self._retries.asked(one.slots)
        self._parts.notices.count("resumed")

    def _take(self, one: rounds.Round) -> None:
        """Show a plan to plug-ins, with the members that are bound and that it completes."""
        ends_at = self._parts.clock.monotonic() + one.until - self._parts.clock.now()
        one = rounds.with_members(dataclasses.replace(one, ends_at=ends_at))
        self.by_group[one.group] = one
        self._groups.update(dict.fromkeys(one.slots, one.group))
        priority = max(slot.pod.requirements.priority for slot in one.slots.values())
        self.backlog.wait(one.group, len(one.slots), ungated=priority if one.unwritten else None)
        self._changed.add(one.group)
        self._given_up.discard(one.group)
        nodes = {**one.bound, **{uid: slot.node for uid, slot in one.slots.items()}}
        self.holding.tell(
            one.group,
            gang_facts.GangPlan(
                one.group,
                one.generation,
                one.until,
                persistent.Map(nodes.items()),
                rounds.binding_record(one),
            ),
        )

    def of(self, uid: str) -> rounds.Round | None:
        """Return the plan in force that has a place for a pod."""
        return self.by_group.get(self._groups.get(uid, ""))

    def change(self, one: rounds.Round) -> None:
        """Take in that a plan is carried out in another way; plug-ins have been told."""
        self.by_group[one.group] = one
        self._changed.add(one.group)

    def follow(self, delta: views.Delta) -> None:
        """Take in a change of the state: the plan of a member that it concerns is looked at."""
        match delta:
            case views.ClaimDelta(_, before, after):
                claim = after or before
                uid = claim.pod.uid if claim is not None else ""
            case views.ObjectDelta(views.UNSCHEDULED_POD, _, gone, come):
                uid = getattr(come or gone, "uid", "")
            case views.NodeDelta(_, _, None):
                self._changed.update(self.by_group)
                return
            case _:
                return
        if group := self._groups.get(uid):
            self._changed.add(group)

    def _finish(self, one: rounds.Round) -> None:
        parts = self._parts
        del self.by_group[one.group]
        self.backlog.arrived()
        self._forget(one)
        for uid in one.slots:
            parts.telling.placed(uid)
        self.holding.tell(one.group, None)
        parts.notices.bound(parts.clock.now() - one.began)
        parts.wake((one.group,))

    def give_up(self, one: rounds.Round, why: str, found: rounds.Look | None = None) -> None:
        """Release every place that is kept, answer waiting binds, and plan again later."""
        parts = self._parts
        self.by_group.pop(one.group, None)
        fates = found.fates if found is not None else {}
        bound = {uid for uid, fate in fates.items() if fate is rounds.Fate.BOUND}
        self.holding.release(uid for uid in one.slots if uid not in bound)
        self.holding.tell(
            one.group,
            gang_facts.GangPlan(one.group, one.generation, one.until, refusal=why),
        )
        self._given_up.add(one.group)
        if found is not None and found.unschedulable:
            self._avoid(one, found.unschedulable)
        self._forget(one)
        pause = parts.queue.failed(one.group, parts.clock.monotonic())
        parts.wake((one.group,))
        slot = next(iter(one.slots.values()))
        parts.notices.failed(slot.pod, why)
        members = [(uid, slot.pod.key) for uid, slot in one.slots.items() if uid not in bound]
        parts.telling.say(members, sentences.failed(why, retry_seconds=pause))
        logger.info("plan of a gang was given up group=%s reason=%s", one.group, why)

    def forget_gone(self, exists: Callable[[str], bool]) -> None:
        """Forget why plans were given up whose groups do not exist any more."""
        for group in [name for name in self._given_up if not exists(name)]:
            self._given_up.discard(group)
            self.holding.tell(group, None)

    def _avoid(self, one: rounds.Round, uid: str) -> None:
        """Leave the node out for all members that ask for the same."""
        failed, until = one.slots[uid], self._parts.clock.monotonic() + _AVOID_SECONDS
        for other, slot in one.slots.items():
            if slot.pod.requirements == failed.pod.requirements:
                self._avoided.setdefault(other, {})[failed.node] = until

    def _forget(self, one: rounds.Round) -> None:
        self.backlog.forget(one.group)
        self._failed_writes.pop(one.generation, None)
        self._retries.forget(one)
        for uid in one.slots:
            self._groups.pop(uid, None)

    # -- once a second, and after changes -----------------------------------------------------

    async def tend(self) -> None:
        """Look at plans in force; complete each, give it up, or help it on.

        Plans whose members have changed are looked at, and all of them once a second.
        """
        now = self._parts.clock.monotonic()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            self._changed.update(self.by_group)
        changed, self._changed = self._changed, set()
        for group in [name for name in self.by_group if name in changed]:
            one = self.by_group.get(group)
            if one is None:
                continue
            found = rounds.look(one, _facts(self._parts, self.holding, self._renominations))
            failure = self._failed_writes.get(one.generation, "")
            self.backlog.wait(group, found.count(rounds.Fate.WAITING))
            if found.done:
                self._finish(one)
            elif found.problem or failure:
                self.give_up(one, found.problem or failure, found)
            elif not one.opened and rounds.arrived(one, found):
                rest = tuple(uid for uid in one.slots if uid not in one.probes)
                self.by_group[one.group] = dataclasses.replace(one, opened=True)
                self._parts.spawn(f"gang-{one.generation}", self._open(one, rest))
            else:
                await self._retries.help_on(one, found, functools.partial(self._is_in_force, one))
            await asyncio.sleep(0)
        self.backlog.look(enforced=self._parts.enforces())

    # -- gates -------------------------------------------------------------------------------

    async def _open(self, one: rounds.Round, uids: Iterable[str]) -> None:
        """Open the gates of members, each with its record."""
        self._retries.asked(one.unwritten)

        async def work(uid: str) -> None:
            if self._is_in_force(one):
                self.opening.add(uid)
                try:
                    await self._open_one(one, uid)
                finally:
                    self.opening.discard(uid)

        await self.gates.each((uid for uid in uids if uid not in one.unwritten), work)

    async def _open_one(self, one: rounds.Round, uid: str) -> None:
        parts, slot = self._parts, self.by_group[one.group].slots[uid]
        granted = allocations.written(parts.plugins.codecs, slot.granted)
        record = rounds.gate_record(self.by_group[one.group], uid, granted)
        why, pause = "", 0.0
        for _ in range(_TRIES):
            await parts.clock.sleep(pause)
            pause = 2 * pause or _FIRST_PAUSE
            pod = parts.pods.get(slot.pod.key)
            if pod is None or pod.uid != uid or pod.node or not self._is_in_force(one):
                return
            is_nominated = uid in self.by_group[one.group].nominated
            why = await parts.writes.nominate(pod, slot.node) if is_nominated else ""
            why = why or await parts.writes.open(pod, record)
            if not why:
                break
        # The plan may have ended during the write: nothing is kept of it then.
        if not self._is_in_force(one):
            return
        if why:
            self._changed.add(one.group)
            why = f"the gate of {slot.pod.key} was not opened: {why}"
            self._failed_writes[one.generation] = why
        else:
            self._retries.asked((uid,))

    def _is_in_force(self, one: rounds.Round) -> bool:
        """Whether a plan has neither been completed nor given up."""
        present = self.by_group.get(one.group)
        return present is not None and present.generation == one.generation


def _prepared(one: rounds.Round, parts: Parts, keeping: holding.Holding) -> rounds.Round:
    """Say which members are nominated, and on which nothing has to be written."""
    one = _with_nominated(one, parts, keeping)
    return dataclasses.replace(one, unwritten=rounds.unwritten(one))


def _with_nominated(one: rounds.Round, parts: Parts, keeping: holding.Holding) -> rounds.Round:
    """Say which members are nominated: those that may not find a place where they are tried."""
    looks_at = parts.sampling.looks_at()
    if looks_at is None:
        return one
    if one.refusing is not None:
        own, now = {slot.node for slot in one.slots.values()}, parts.clock.now()
        sorts = {slot.pod.requirements: slot.pod for slot in one.slots.values()}
        kept = max(keeping.crowded(pod, own, now) for pod in sorts.values())
        one = dataclasses.replace(one, refusing=one.refusing + kept)
    return dataclasses.replace(one, nominated=rounds.nominated(one, looks_at))


def _facts(
    parts: Parts, keeping: holding.Holding, nominating: renominations.Renominations
) -> rounds.Facts:
    """Return what the members of a plan are judged by."""
    books = parts.books
    return rounds.Facts(
        parts.pods.get,
        lambda uid: uid in books.assumptions,
        keeping.kept,
        lambda name: books.cluster.node(name) is not None,
        parts.clock.now(),
        nominating.excuses,
        parts.clock.monotonic(),
    )
