"""Wakes pods whose refusal no longer counts: another process gave it, or refusing is switched off.

kube-scheduler keeps a pod that was refused aside until it hears of an event that may help; what
only the extender knows of is no such event. Which pods wait for what is in memory only, so each one
that was refused before this process began is tried once more, and is known from then on if it is
refused again. Those that kube-scheduler will try by itself do not have that condition: their calls
failed while there was no extender.
"""

import asyncio
import collections
import logging
from collections.abc import Iterable, Iterator
from typing import Final

from domain import fairness
from extender.requeue import requeue, unschedulable_pods, writes
from extender.settings import NudgeSettings
from extender.state import records
from kube.informers import store
from process.configuration import switches
from process.runtime import series, token_bucket

logger = logging.getLogger(__name__)

_FLUSHED_SECONDS: Final = 330.0
"""After how long kube-scheduler has tried every pod again by itself: five minutes and the pause
between two looks at them."""
_FAILED_SECONDS: Final = 1.0
"""The pause after a write that failed."""
_LOOK_SECONDS: Final = 1.0
"""How often is looked whether refusing is switched off."""


class EarlierRefusals:
    """Those of the processes before this one, and those before the live switch was thrown."""

    def __init__(
        self,
        parts: requeue.Parts,
        live: switches.Switches,
        settings: NudgeSettings,
        nudges: series.Counter,
    ) -> None:
        self._parts, self._live, self._settings, self._nudges = parts, live, settings, nudges
        self._writes = writes.Writes(parts.client, parts.clock, parts.pods, parts.waiting)
        self._refused: dict[str, records.PodRecord] = {}
        self._stop = parts.pods.listen(self._follow)

    def _follow(self, change: store.Change[records.PodRecord]) -> None:
        """Take in pods while the cluster is being listed."""
        if change.new is not None and change.new.unschedulable:
            self._refused[change.key] = change.new
        else:
            self._refused.pop(change.key, None)

    # -- after a start ---------------------------------------------------------------------

    async def after_start(self, loaded: asyncio.Event) -> None:
        """Wake them once the cluster has been listed, at the rate of other pods."""
        await loaded.wait()
        self._stop()
        clock, settings = self._parts.clock, self._settings
        until = clock.monotonic() + _FLUSHED_SECONDS
        left = collections.deque(_in_turn(self._refused.values()))
        self._refused = {}
        if not left or not settings.enabled:
            return
        logger.info("pods were refused before this process began pods=%d", len(left))
        rate = token_bucket.ClockedBucket(clock, settings.per_second, settings.burst)
        # Some are tried by themselves meanwhile.
        await clock.sleep(settings.pause_seconds)
        while left and clock.monotonic() < until:
            pod = left.popleft()
            if not self._is_left(pod):
                continue
            await rate.wait()
            if not self._is_left(pod):
                continue
            because = "it was refused before this process began"
            if await self._writes.wake(pod.key, pod.uid, clock.now(), because):
                self._nudges.labels("restart").inc()
            else:
                left.append(pod)
                await clock.sleep(_FAILED_SECONDS)

    def _is_left(self, pod: records.PodRecord) -> bool:
        """Whether a pod still waits, and nothing has been heard of it since."""
        parts, uid = self._parts, pod.uid
        now = parts.pods.get(pod.key)
        # Pods for which others leave are woken when those have left.
        if now is None or now.uid != uid or not now.unschedulable or now.preemption:
            return False
        if parts.waiting.get(pod.key) is not None or parts.waiting.preemptor(pod.key) is not None:
            return False
        return parts.books.cluster.claim(uid) is None

    # -- while nothing is refused ----------------------------------------------------------

    async def while_off(self) -> None:
        """Wake those that wait whenever refusing is switched off; for ever."""
        clock, settings = self._parts.clock, self._settings
        # As fast as pods for which quota is freed: somebody waits for them.
        rate = token_bucket.ClockedBucket(
            clock, settings.in_line_per_second, settings.in_line_burst
        )
        while True:
            await clock.sleep(_LOOK_SECONDS)
            if not settings.enabled or self._live.enforces:
                continue
            for waiter in self._parts.waiting:
                if waiter.woken():
                    continue
                await rate.wait()
                if not await self._let_try(waiter):
                    break

    async def _let_try(self, waiter: unschedulable_pods.UnschedulablePod) -> bool:
        """Wake a pod unless it was tried or woken meanwhile; return whether the next has its turn.

        Not where the write failed, or the switch is back.
        """
        if self._live.enforces:
            return False
        parts, request = self._parts, waiter.request
        pod = parts.pods.get(request.key)
        if parts.waiting.get(request.key) is not waiter or pod is None or pod.uid != request.uid:
            return True
        because = f"the extender refuses nothing now: {self._live.mode}"
        if not await self._writes.wake(request.key, request.uid, waiter.tried_at, because):
            return False
        parts.waiting.woken(waiter, parts.clock.now())
        parts.waiting.served(request.key)
        self._nudges.labels("switch").inc()
        return True


def _in_turn(pods: Iterable[records.PodRecord]) -> Iterator[records.PodRecord]:
    """Yield a pod of each namespace in turn, the most important ones first.

    Members of gangs are left out, which are tried again as a whole.
    """
    by_namespace: dict[str, list[records.PodRecord]] = {}
    for pod in sorted(pods, key=lambda one: -one.requirements.priority):
        if pod.gang is None:
            by_namespace.setdefault(pod.namespace, []).append(pod)
    return fairness.in_turn(by_namespace)
