"""Keeps the status of every Device true: what pods hold, whether it can be read, what is sick."""

import dataclasses
from typing import Final

from api import resources
from domain.devices import device_report
from kube.client import errors
from kube.controllers import controller
from kube.informers import store
from manager.devices import device_objects, node_holdings, status_plan
from manager.reconcile import actions, apply
from process.runtime import clock as clocks
from process.runtime import token_bucket

NAME: Final = "devicestatus"
_RETRY_SECONDS: Final = 300.0
"""Pause before a status is written again that the API server has not kept."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How often is written."""

    per_second: float = 10.0
    """Writes per second after the first burst, of all nodes together."""
    burst: int = 100
    rest_seconds: float = 1.0
    """Pause between two writes of one object; what happens meanwhile goes into one write."""


class DeviceStatuses:
    """The status of all Devices during one term of leadership."""

    def __init__(
        self,
        seen: store.Store[device_objects.DeviceObject],
        holdings: node_holdings.NodeHoldings,
        writer: apply.Writer,
        pace: Pace,
        clock: clocks.Clock,
    ) -> None:
        self._seen = seen
        self._holdings = holdings
        self._writer = writer
        self._pace = pace
        self._clock = clock
        self._bucket = token_bucket.ClockedBucket(clock, pace.per_second, pace.burst)
        self._next_at: dict[str, float] = {}
        self._sent: dict[str, tuple[object, ...]] = {}
        """What was written last of an object, until the watch has shown it."""
        self._subresource: bool | None = None
        """Whether the CRD has the status as a subresource; None: nothing speaks for it."""

    async def reconcile(self, name: str) -> controller.Outcome:
        """Write who holds the devices of one node, where the status says something else."""
        found = self._seen.get(name)
        if found is None:
            self._next_at.pop(name, None)
            self._sent.pop(name, None)
            return controller.Outcome("the Device is gone", changed=False)
        unseen = self._writer.unseen(resources.DEVICES, name, self._seen)
        if unseen is not None:
            return unseen
        rest = self._next_at.get(name, 0.0) - self._clock.monotonic()
        if rest > 0:
            return controller.Outcome("written just now", requeue_after=rest, changed=False)
        if found.listed is None:
            return await self._write(found, None)
        allocations = status_plan.wanted(device_report.rows(found.listed, self._holdings.of(name)))
        return await self._write(found, allocations)

    async def _write(
        self, found: device_objects.DeviceObject, allocations: status_plan.Allocations | None
    ) -> controller.Outcome:
        now = self._clock.now()
        plan = status_plan.planned(found, allocations, now)
        if all(isinstance(step, actions.Tell) for step in plan.steps):
            self._sent.pop(found.name, None)
            return await self._writer.carry_out(plan)
        sent = (found.uid, allocations, status_plan.judged(found))
        if self._sent.get(found.name) == sent:
            # The same was written and did not stay.
            if self._subresource is not None:
                del self._sent[found.name]
                note = "the API server does not keep all of the status; its CRD is another one"
                return controller.Outcome(note, requeue_after=_RETRY_SECONDS, changed=False)
            # A CRD of another author may have the status as a subresource.
            self._subresource = True
        await self._bucket.wait()
        by_subresource = bool(self._subresource)
        plan = status_plan.planned(found, allocations, now, by_subresource=by_subresource)
        # What could not be written has not been dropped by a CRD, and is tried again with back-off.
        self._sent.pop(found.name, None)
        try:
            outcome = await self._writer.carry_out(plan)
        except errors.NotFound:
            if self._subresource:
                self._subresource = False
            raise
        self._next_at[found.name] = self._clock.monotonic() + self._pace.rest_seconds
        self._sent[found.name] = sent
        return outcome
