"""What a preemption writes: its record, the nominated node, evictions, and a nudge."""

import dataclasses
import enum
import logging
import math
from collections.abc import Callable
from typing import Any, Final

from api import names, resources
from api.wire import durations
from extender.framework import views
from extender.preemption import preemption_record
from extender.state import records
from kube.client import client as clients
from kube.client import errors
from kube.informers import store
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

_LATE: Final = "too much time passed between the plan and the eviction"


class Evicted(enum.StrEnum):
    """What became of an eviction."""

    ACCEPTED = "evicted"
    GONE = "gone"
    """It has left already, or another pod has its name."""
    REFUSED = "refused"
    """A disruption budget, or the account's permission, does not allow it now."""
    UNKNOWN = "unknown"
    """Unknown: it is looked at again, and evicting the same pod twice is evicting it once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """Until when what was planned may still be written; also asked as the bytes leave."""

    clock: clocks.Clock
    end: float
    holds: Callable[[], bool]
    """Whether the plan still counts: switches, and the claim of this very plan."""

    def is_open(self) -> bool:
        """Whether anything may still be written."""
        return self.clock.monotonic() < self.end and self.holds()

    def check(self) -> None:
        """Raise Deposed when the write must not leave any more."""
        if not self.is_open():
            raise errors.Deposed(_LATE)

    def remaining(self) -> float:
        """A write that has left may take its time."""
        return math.inf


class Writes:
    """The only place where preemption changes anything outside this process."""

    def __init__(
        self,
        client: clients.Client,
        pods: store.Store[records.PodRecord],
        clock: clocks.Clock,
    ) -> None:
        self._client, self._pods, self._clock = client, pods, clock

    async def note(self, pod: records.PodRecord, record: preemption_record.Record) -> str:
        """Write the record of a preemption on its pod; an empty answer is success.

        It holds for the pod as the watch showed it: of two extenders that plan at once for one pod,
        one succeeds, and the other learns of its record by the watch.
        """
        metadata = {
            "uid": pod.uid,
            "resourceVersion": str(self._pods.version_of(pod.key)),
            "annotations": {names.ANNOTATION_PREEMPTION: preemption_record.encode(record)},
        }
        return await self._patch(pod, {"metadata": metadata})

    async def clear(self, pod: records.PodRecord, node: str) -> str:
        """Take the record and the nomination off a pod."""
        notes = {names.ANNOTATION_PREEMPTION: None}
        body = {"metadata": {"uid": pod.uid, "annotations": notes}}
        said, answer = await self._patched(pod, body)
        # The answer, not the watch: that may not yet have shown the nomination of this process.
        if answer.get("status", {}).get("nominatedNodeName") == node:
            await self.nominate(pod, "")
        return said

    async def nominate(self, pod: records.PodRecord, node: str) -> str:
        """Tell the scheduler where a pod is expected: a hint that it may clear at any time."""
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node or None}}
        return await self._patch(pod, body, "status")

    async def nudge(self, pod: records.PodRecord) -> str:
        """Change an annotation of a pod, so that the scheduler tries it again."""
        notes = {names.ANNOTATION_NUDGE: durations.precise_moment(self._clock.now())}
        return await self._patch(pod, {"metadata": {"uid": pod.uid, "annotations": notes}})

    async def _patch(self, pod: records.PodRecord, body: dict[str, Any], part: str = "") -> str:
        return (await self._patched(pod, body, part))[0]

    async def _patched(
        self, pod: records.PodRecord, body: dict[str, Any], part: str = ""
    ) -> tuple[str, dict[str, Any]]:
        """Return why a pod could not be changed, and how it is afterwards."""
        try:
            answer = await self._client.patch(
                resources.PODS, pod.name, body, namespace=pod.namespace, subresource=part
            )
        except errors.KubeError as error:
            logger.info("pod was not changed for preemption pod=%s error=%s", pod.key, error)
            return str(error) or type(error).__name__, {}
        return "", answer

    async def evict(
        self, victim: views.Claim, window: Window, *, dry_run: bool = False
    ) -> tuple[Evicted, str]:
        """Evict exactly this pod; return the outcome, and the reason of a refusal."""
        pod = victim.pod
        try:
            await self._client.evict(
                pod.namespace, pod.name, uid=pod.uid, dry_run=dry_run, guard=window
            )
        except (errors.NotFound, errors.Conflict):
            return Evicted.GONE, ""
        except (errors.Unreachable, errors.Malformed, errors.Deposed) as error:
            return Evicted.UNKNOWN, str(error)
        except errors.KubeError as error:
            # Also of a pod with two budgets, which the API server answers as a failure of its own.
            return Evicted.REFUSED, str(error)
        return Evicted.ACCEPTED, ""
