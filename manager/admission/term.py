"""Looking after admission during one term: who is called, and what slipped through."""

import dataclasses

from kube.controllers import controller, workqueue
from kube.informers import store
from manager.admission import controller as admission
from manager.admission import informers as admissions
from manager.admission import registration_controller as registration
from manager.model import projections
from manager.reconcile import apply
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

_LONGEST_PAUSE = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Duties:
    """What the leader is to do."""

    configuration: str
    """Name of both webhook configurations."""
    withdraws: bool
    """Whether the webhook is probed."""
    tells: bool
    """Whether pods that slipped through are named."""
    rules: registration.Rules


@dataclasses.dataclass(frozen=True, slots=True)
class Guard:
    """What this looks at, on every replica."""

    duties: Duties
    seen: admissions.Admissions
    pods: store.Store[projections.Pod]
    ask: registration.Ask
    clock: clocks.Clock
    registry: metrics.Registry

    async def run(self, writer: apply.Writer) -> None:
        """Work until cancelled."""
        stops = []
        async with supervise.Supervisor("admission") as supervisor:
            try:
                if self.duties.tells:
                    telling = self._controller(
                        "admission", admission.Missed(self.pods, writer).reconcile
                    )
                    stops.append(telling.watch(self.pods, admission.faults_changed))
                    telling.start(supervisor)
                if self.duties.withdraws:
                    keeping = self._controller("registration", self._registrations(writer))
                    keeping.queue.add(self.duties.configuration)
                    keeping.start(supervisor)
                await supervisor.stopped()
            finally:
                for stop in stops:
                    stop()

    def _registrations(self, writer: apply.Writer) -> controller.Reconcile:
        return registration.Registrations(
            self.seen.registered,
            self.ask,
            self.duties.rules,
            writer,
            self.clock,
            self.registry,
        ).reconcile

    def _controller(self, name: str, reconcile: controller.Reconcile) -> controller.Controller:
        queue = workqueue.Queue(self.clock, longest_pause_seconds=_LONGEST_PAUSE)
        return controller.Controller(name, reconcile, queue, self.clock, registry=self.registry)
