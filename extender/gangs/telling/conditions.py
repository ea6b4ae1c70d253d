"""Conditions of members: what each one's gang waits for, written at a bounded rate.

A condition is written again when its meaning has changed. For new figures alone it is written twice
a minute at most, of a large gang less often: such writes are no more than one per second and gang.
"""

import asyncio
import dataclasses
import re
from collections.abc import Iterable
from typing import Final

from domain.gangs import sentences
from extender.gangs import writes
from extender.state import records
from kube.informers import store
from process.runtime import clock as clocks
from process.runtime import token_bucket

_SINCE: Final = re.compile(r", for \S+ now")
_FIGURES: Final = re.compile(r"(\d+(\.\d+)?(h|ms?|s)?)+")
_TOGETHER: Final = 8
_AGAIN_SECONDS: Final = 5.0
"""How long a condition stands at least."""
_REFRESH_SECONDS: Final = 30.0
"""After how long new figures are written, and ..."""
_REFRESH_SECONDS_PER_MEMBER: Final = 1.0
"""... the least for each member of the gang."""
_READY_SECONDS: Final = 10.0
"""How long that a member has a place may wait for its binding: a write before that would compete
with opening gates, and change a pod that is being bound."""
_LONGEST_PATIENCE_SECONDS: Final = 10.0
"""How long a member says nothing at most, while what it would say keeps changing."""
_TICK_SECONDS: Final = 0.5
_FORGET_SECONDS: Final = 30.0
"""How often what was said is forgotten of pods that are gone."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Wish:
    key: str
    said: sentences.Said
    ready: bool
    since: float
    patience: float
    refresh: float
    at: float
    """When it was said."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Told:
    said: sentences.Said
    ready: bool
    at: float


class Telling:
    """Writes the conditions."""

    def __init__(
        self,
        parts: writes.Writes,
        pods: store.Store[records.PodRecord],
        clock: clocks.Clock,
        *,
        per_second: float,
        burst: int,
    ) -> None:
        self._writes, self._pods, self._clock = parts, pods, clock
        self._bucket = token_bucket.Bucket(per_second, burst, clock.monotonic())
        self._wishes: dict[str, _Wish] = {}
        self._told: dict[str, _Told] = {}
        self._nap = clocks.Nap(clock)
        self._looked_at = clock.monotonic()

    def say(
        self,
        members: Iterable[tuple[str, str]],
        said: sentences.Said,
        *,
        ready: bool = False,
        patience: float = 0.0,
    ) -> None:
        """Have members, given by uid and namespace/name, say something.

        `patience` is how long they say nothing after they had something else to say, as while more
        members come: most gangs are placed before. That a gang is ready is written only on a member
        that said something else.
        """
        now, all_of_them = self._clock.monotonic(), list(members)
        refresh = max(_REFRESH_SECONDS, _REFRESH_SECONDS_PER_MEMBER * len(all_of_them))
        for uid, key in all_of_them:
            before = self._wishes.get(uid)
            since = before.since if before is not None else now
            self._wishes[uid] = _Wish(key, said, ready, since, patience, refresh, now)
        self._nap.wake()

    def placed(self, uid: str) -> None:
        """Say no more about a member that is bound, but for what it has said last if that is over.

        A pod that runs must not say that its gang waits.
        """
        told, wish = self._told.get(uid), self._wishes.get(uid)
        if told is None or told.ready or wish is None or not wish.ready:
            self.forget(uid)

    def forget(self, uid: str) -> None:
        """Say no more about a pod that is bound or gone."""
        self._wishes.pop(uid, None)
        self._told.pop(uid, None)

    def __len__(self) -> int:
        """Return how many members say something."""
        return len(self._told)

    async def run(self) -> None:
        """Write what is due, for ever."""
        while True:
            self._forget_gone(self._clock.monotonic())
            due = self._due(self._clock.monotonic())
            for start in range(0, len(due), _TOGETHER):
                await asyncio.gather(*(self._tell(uid) for uid in due[start : start + _TOGETHER]))
            if self._wishes:
                await self._clock.sleep(_TICK_SECONDS)
            else:
                await self._nap.rest(None)

    def _forget_gone(self, now: float) -> None:
        """Forget pods that are gone: one that has said everything is never due again."""
        if now - self._looked_at < _FORGET_SECONDS:
            return
        self._looked_at = now
        for uid, wish in list(self._wishes.items()):
            pod = self._pods.get(wish.key)
            # A pod may be heard of here before the watch shows it.
            if (pod is None or pod.uid != uid) and now - wish.at >= _FORGET_SECONDS:
                self.forget(uid)

    def _due(self, now: float) -> list[str]:
        found = []
        for uid, wish in self._wishes.items():
            if self._is_due(self._told.get(uid), wish, now):
                if not self._bucket.take(now):
                    break
                found.append(uid)
        return found

    def _is_due(self, told: _Told | None, wish: _Wish, now: float) -> bool:
        if told is None:
            longest = max(wish.patience, _LONGEST_PATIENCE_SECONDS)
            is_due = now - wish.at >= wish.patience or now - wish.since >= longest
            return not wish.ready and is_due
        if told.said == wish.said and told.ready is wish.ready:
            return False
        if told.ready is not wish.ready or _meaning(told.said) != _meaning(wish.said):
            if wish.ready:
                pod = self._pods.get(wish.key)
                return pod is None or bool(pod.node) or now - wish.at >= _READY_SECONDS
            return now - told.at >= _AGAIN_SECONDS
        return now - told.at >= wish.refresh

    async def _tell(self, uid: str) -> None:
        wish = self._wishes.get(uid)
        pod = self._pods.get(wish.key) if wish is not None else None
        is_over = pod is not None and bool(pod.node) and wish is not None and not wish.ready
        if wish is None or pod is None or pod.uid != uid or is_over:
            self.forget(uid)
            return
        failure = await self._writes.tell(pod, wish.said, ready=wish.ready)
        if not failure and pod.node:
            self.forget(uid)
        elif not failure:
            self._told[uid] = _Told(wish.said, wish.ready, self._clock.monotonic())


def _meaning(said: sentences.Said) -> tuple[str, str]:
    """Return what a condition says besides its figures."""
    return said.reason, _FIGURES.sub("#", _SINCE.sub("", said.message))
