"""Puts preemption together, and watches disruption budgets once anybody may preempt."""

import random
from collections.abc import Awaitable, Callable
from typing import Final

from api import resources
from extender.framework import budgets, claim_index, pipeline
from extender.informers import event_handlers
from extender.preemption import claiming, controller, in_flight, notices, writes
from extender.requeue import unschedulable_pods
from extender.settings import PreemptionSettings
from extender.state import ledger
from kube.client import client as clients
from kube.controllers import recorder
from kube.informers import informer_set, reflector, store
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

SWITCH: Final = "preemption"
"""Key among the live switches."""
_WAIT_SECONDS: Final = 1.0


class Preemption:
    """Own preemption of the extender, wired."""

    def __init__(
        self,
        settings: PreemptionSettings,
        client: clients.Client,
        clock: clocks.Clock,
        plugins: pipeline.Pipeline,
        books: ledger.Ledger,
    ) -> None:
        self._settings, self._client, self._clock = settings, client, clock
        self._plugins, self._books = plugins, books
        self._members = informer_set.InformerSet(client, clock)
        self._budgets: store.Store[budgets.Budget] = self._members.add(
            reflector.Projection(
                resources.POD_DISRUPTION_BUDGETS, budgets.WatchedBudget, budgets.project
            )
        )
        self._read: tuple[int, budgets.Budgets] | None = None
        index = claim_index.ClaimIndex(books.cluster.all_claims())
        books.cluster.followers.append(index.follow)
        self.preemptions = in_flight.Preemptions(index, self._present)
        self.switches = switches.Switches(SWITCH, switches.Mode(settings.mode))
        self.controller: controller.PreemptionController | None = None

    def _present(self) -> budgets.Budgets:
        if self._read is None or self._read[0] != self._budgets.version:
            self._read = self._budgets.version, budgets.Budgets(self._budgets.values())
        return self._read[1]

    def warning(self) -> str | None:
        """Return why nobody is preempted although plug-ins could name victims."""
        wanted = self._plugins.selectors or self._plugins.cluster_selectors
        return self._members.health() if wanted else None

    def connect(
        self,
        watched: event_handlers.Informers,
        waiting: unschedulable_pods.UnschedulablePods,
        filtering: switches.Switches,
        *,
        doubt: Callable[[], Awaitable[str]],
        events: recorder.EventRecorder,
        registry: metrics.Registry,
    ) -> None:
        """Make the controller; the ledger has to listen to the pods before."""
        pods, live = watched.pods, self.switches
        watched.switches.listen(lambda change: live.take(change.new.data if change.new else None))
        rng = random.Random()

        async def untrusted() -> str:
            if not self._budgets.synced:
                return "disruption budgets are still being listed"
            return await doubt()

        self.controller = controller.PreemptionController(
            claiming.Parts(
                writes=writes.Writes(self._client, pods, self._clock),
                clock=self._clock,
                books=self._books,
                plugins=self._plugins,
                waiting=waiting,
                pods=pods,
                preemptions=self.preemptions,
                doubt=untrusted,
                filtering=filtering,
                preempting=self.switches,
                notices=notices.Notices(registry, events),
                new_id=lambda: f"{rng.getrandbits(128):032x}",
            ),
            self._settings,
            registry,
        )
        pods.listen(self.controller.follow)

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start the controller, and the watch of disruption budgets as soon as it is needed."""
        assert self.controller is not None
        self.controller.start(supervisor)
        supervisor.start("disruption-budgets", lambda: self._watch(supervisor))

    async def _watch(self, supervisor: supervise.Supervisor) -> None:
        """Watch from when a plug-in that names victims is enabled; there may never be one."""
        while not (self._plugins.selectors or self._plugins.cluster_selectors):
            await self._clock.sleep(_WAIT_SECONDS)
        self._members.start(supervisor)
        while True:
            await self._clock.sleep(3600.0)
