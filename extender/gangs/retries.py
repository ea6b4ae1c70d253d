"""Requeues members that kube-scheduler does not retry by itself, or not on their planned nodes."""

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from extender.gangs import backlog, gates, renominations, rounds, writes
from extender.gangs.telling import notices
from extender.state import records
from kube.informers import store
from process.runtime import clock as clocks

_NUDGE_SECONDS: Final = backlog.ARRIVING_SECONDS
"""After how long a member that was not tried is nudged while no member of any plan arrives."""
_BUSY_NUDGE_SECONDS: Final = 20.0
"""The same while others arrive: kube-scheduler has many to try, and each nudge costs it more."""


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What members are helped on with."""

    pods: store.Store[records.PodRecord]
    clock: clocks.Clock
    writes: writes.Writes
    gates: gates.Gates
    notices: notices.Notices
    spawn: Callable[[str, Awaitable[None]], None]
    """Runs something beside."""


class Retries:
    """Nudges members, and nominates anew those that have lost their nomination."""

    def __init__(
        self, parts: Parts, renominated: renominations.Renominations, behind: backlog.Backlog
    ) -> None:
        self._parts, self._renominations, self._backlog = parts, renominated, behind
        self._asked: dict[str, float] = {}
        """By uid: when a member was opened, nominated or nudged last."""
        self._arrived: dict[str, int] = {}
        """By generation: how many members have arrived."""

    def __len__(self) -> int:
        """Return of how many members something is known."""
        return len(self._asked)

    def asked(self, uids: Iterable[str]) -> None:
        """Take in that members were changed, so that kube-scheduler tries them by itself."""
        self._asked.update(dict.fromkeys(uids, self._parts.clock.monotonic()))

    def forget(self, one: rounds.Round) -> None:
        """Forget the members of a plan that has ended."""
        self._arrived.pop(one.generation, None)
        for uid in one.slots:
            self._asked.pop(uid, None)
        self._renominations.forget(one.slots)

    async def help_on(
        self, one: rounds.Round, found: rounds.Look, in_force: Callable[[], bool]
    ) -> None:
        """Help on the members that wait; `in_force` says whether the plan has not ended yet."""
        waiting = [uid for uid, fate in found.fates.items() if fate is rounds.Fate.WAITING]
        if due := dict(self._renominations.due(one, waiting)):
            self._renominate(one, due, in_force)
        for uid in self._unasked(one, found, waiting):
            pod = self._parts.pods.get(one.slots[uid].pod.key)
            self.asked((uid,))
            if pod is not None and pod.gang is not None and not pod.gang.gated:
                await self._parts.writes.nudge(pod)

    def _unasked(self, one: rounds.Round, found: rounds.Look, waiting: list[str]) -> list[str]:
        """Return members that were not tried for long, a few at a time."""
        now = self._parts.clock.monotonic()
        arrived = found.count(rounds.Fate.ASSUMED, rounds.Fate.BOUND)
        if arrived > self._arrived.get(one.generation, 0):
            self._backlog.arrived()
        self._arrived[one.generation] = arrived
        pause = _BUSY_NUDGE_SECONDS if self._backlog.are_arriving else _NUDGE_SECONDS
        unasked = [uid for uid in waiting if now - self._asked.get(uid, now) >= pause]
        return unasked[: self._parts.gates.writers]

    def _renominate(
        self, one: rounds.Round, due: Mapping[str, bool], in_force: Callable[[], bool]
    ) -> None:
        """Nominate members anew, in turns with gates; nudge those of which that is said."""
        parts = self._parts
        for uid in due:
            self._renominations.tried(uid)
        self.asked(due)
        parts.notices.renominated(len(due))

        async def work(uid: str) -> None:
            slot = one.slots[uid]
            pod = parts.pods.get(slot.pod.key)
            if pod is None or pod.uid != uid or pod.node or not in_force():
                return
            if not await parts.writes.nominate(pod, slot.node) and due[uid]:
                await parts.writes.nudge(pod)

        parts.spawn(f"gang-{one.generation}", parts.gates.each(due, work))
