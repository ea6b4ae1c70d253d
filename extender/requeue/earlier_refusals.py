"""Wakes pods that the extender refused before this process began, each once after its start.

Which pods wait for what is in memory only. Of those refused before, kube-scheduler keeps each
aside as unschedulable until it hears of an event that may help; what only the extender knows of
is no such event. Each is therefore tried once more, and is known from then on if it is refused
again. Those that kube-scheduler will try by itself do not have that condition: their calls failed
while there was no extender.
"""

import asyncio
import collections
import logging
from collections.abc import Iterable, Iterator
from typing import Final

from domain import fairness
from extender.requeue import requeue, writes
from extender.settings import NudgeSettings
from extender.state import records
from kube.informers import store
from process.runtime import series, token_bucket

logger = logging.getLogger(__name__)

_FLUSHED_SECONDS: Final = 330.0
"""After how long kube-scheduler has tried every pod again by itself: five minutes and the pause
between two looks at them."""
_FAILED_SECONDS: Final = 1.0
"""The pause after a write that failed."""


class EarlierRefusals:
    """The pods that the API server showed as unschedulable when this process began."""

    def __init__(
        self, parts: requeue.Parts, settings: NudgeSettings, nudges: series.Counter
    ) -> None:
        self._parts, self._settings, self._nudges = parts, settings, nudges
        self._writes = writes.Writes(parts.client, parts.clock, parts.pods, parts.waiting)
        self._refused: dict[str, records.PodRecord] = {}
        self._stop = parts.pods.listen(self._follow)

    def _follow(self, change: store.Change[records.PodRecord]) -> None:
        """Take in pods while the cluster is being listed."""
        if change.new is not None and change.new.unschedulable:
            self._refused[change.key] = change.new
        else:
            self._refused.pop(change.key, None)

    async def wake(self, loaded: asyncio.Event) -> None:
        """Wake them once the cluster has been listed, at the rate of other pods."""
        await loaded.wait()
        self._stop()
        clock = self._parts.clock
        until = clock.monotonic() + _FLUSHED_SECONDS
        left = collections.deque(_in_turn(self._refused.values()))
        self._refused = {}
        if not left or not self._settings.enabled:
            return
        logger.info("pods were refused before this process began pods=%d", len(left))
        rate = token_bucket.ClockedBucket(clock, self._settings.per_second, self._settings.burst)
        # Some are tried by themselves meanwhile.
        await clock.sleep(self._settings.pause_seconds)
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


def _in_turn(pods: Iterable[records.PodRecord]) -> Iterator[records.PodRecord]:
    """Yield a pod of each namespace in turn, the most important ones first.

    Members of gangs are left out, which are tried again as a whole.
    """
    by_namespace: dict[str, list[records.PodRecord]] = {}
    for pod in sorted(pods, key=lambda one: -one.requirements.priority):
        if pod.gang is None:
            by_namespace.setdefault(pod.namespace, []).append(pod)
    return fairness.in_turn(by_namespace)
