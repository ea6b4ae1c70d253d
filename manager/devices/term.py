"""Devices during one term of leadership: what is watched, and who writes their status."""

import dataclasses

from api import resources
from kube.controllers import controller, workqueue
from kube.informers import informer_set, reflector, store
from manager.devices import device_book, device_metrics, device_objects, status_controller
from manager.model import projections
from manager.reconcile import apply
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


@dataclasses.dataclass(frozen=True, slots=True)
class Duties:
    """What the leader is to do."""

    writes_status: bool
    """Whether the status of Devices is written."""
    pace: status_controller.Pace
    """How often it is written."""


class Devices:
    """What this looks at, on every replica; overcommit does not wait for it."""

    def __init__(
        self,
        members: informer_set.InformerSet,
        pods: store.Store[projections.Pod],
        duties: Duties,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self.members = members
        self._duties = duties
        self._clock = clock
        self._registry = registry
        self._seen = members.add(
            reflector.Projection(resources.DEVICES, dict, device_objects.projected)
        )
        self.book = device_book.DeviceBook(self._seen, pods)

    async def tell(self) -> None:
        """Export metrics of devices, on every replica; work until cancelled."""
        await self.members.synced()
        await device_metrics.DeviceMetrics(self.book, self._clock, self._registry).run()

    async def run(self, writer: apply.Writer) -> None:
        """Work until cancelled; pods are listed before."""
        await self.members.synced()
        queue = workqueue.Queue(self._clock)
        reconcile = status_controller.DeviceStatuses(
            self._seen, self.book.holdings, writer, self._duties.pace, self._clock
        ).reconcile
        keeping = controller.Controller(
            status_controller.NAME, reconcile, queue, self._clock, registry=self._registry
        )

        def follow(nodes: object) -> None:
            assert isinstance(nodes, tuple)
            for node in nodes:
                queue.add(node)

        stops = [keeping.watch(self._seen), self.book.listen(follow)]
        try:
            async with supervise.Supervisor("devices") as supervisor:
                if self._duties.writes_status:
                    keeping.start(supervisor)
                await supervisor.stopped()
        finally:
            for stop in stops:
                stop()
