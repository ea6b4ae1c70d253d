"""Writes the status of PodGroups, at a rate, and not again and again where it is not kept."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from kube.controllers import controller
from manager.gangs import objects, status_plan
from manager.reconcile import actions, apply
from process.runtime import clock as clocks
from process.runtime import token_bucket

_UNKEPT_SECONDS: Final = 3600.0
"""When a write is repeated that the API server dropped, as the CRD of another installation does."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How often is written, of all PodGroups together."""

    per_second: float = 20.0
    burst: int = 200


class Statuses:
    """The status of all PodGroups."""

    def __init__(self, pace: Pace, clock: clocks.Clock) -> None:
        self._clock = clock
        self._bucket = token_bucket.ClockedBucket(clock, pace.per_second, pace.burst)
        self._written: dict[str, tuple[tuple[str, Mapping[str, Any]], float]] = {}
        """By gang: what was written last on which PodGroup, by its uid, and until when it is not
        written again."""

    def forget(self, gang_id: str) -> None:
        """Forget a gang that is gone."""
        self._written.pop(gang_id, None)

    async def write(
        self,
        writer: apply.Writer,
        observed: objects.Observed,
        group: objects.Group,
        facts: status_plan.Facts,
    ) -> controller.Outcome:
        """Bring the status of a PodGroup up to date."""
        changed, gang_id = status_plan.planned(observed, group, facts), observed.gang.id
        if not changed:
            self._written.pop(gang_id, None)
            return controller.Outcome("its status is true", changed=False)
        before, writing = self._written.get(gang_id), (group.uid, changed)
        now = self._clock.monotonic()
        if before is not None and before[0] == writing and now < before[1]:
            return controller.Outcome(
                "its status is not kept", requeue_after=before[1] - now, changed=False
            )
        await self._bucket.wait()
        outcome = await writer.carry_out(
            actions.Plan(f"writes {', '.join(changed)}", (status_plan.written(group, changed),))
        )
        self._written[gang_id] = writing, now + _UNKEPT_SECONDS
        return outcome
