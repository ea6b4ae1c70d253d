"""Puts preemption together, and watches disruption budgets once any pod may preempt."""

import random
from collections.abc import Awaitable, Callable
from typing import Final

from api import resources
from domain.pods import disruption_budgets as disruption
from extender.framework import claim_index, pipeline
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
        self.settings, self._client, self._clock = settings, client, clock
        self._plugins, self._books = plugins, books
        self._members = informer_set.InformerSet(client, clock)
        self._listed: store.Store[disruption.Budget] = self._members.add(
            reflector.Projection(
                resources.POD_DISRUPTION_BUDGETS, disruption.WatchedBudget, disruption.project
            )
        )
        self._read: tuple[int, disruption.Budgets] | None = None
        index = claim_index.ClaimIndex(books.cluster.all_claims())
        books.cluster.followers.append(index.follow)
        self.preemptions = in_flight.Preemptions(index, self.budgets)
        self.switches = switches.Switches(SWITCH, switches.Mode(settings.mode))
        self.controller: controller.PreemptionController | None = None

    def unsynced(self) -> str:
        """Return why disruption budgets are not known yet; empty if they are."""
        return "" if self._listed.synced else "disruption budgets are still being listed"

    def budgets(self) -> disruption.Budgets:
        """Return the disruption budgets, as they are now."""
        if self._read is None or self._read[0] != self._listed.version:
            self._read = self._listed.version, disruption.Budgets(self._listed.values())
        return self._read[1]

    def warning(self) -> str | None:
        """Return why no pod is preempted although plug-ins could name victims."""
        return self._members.health() if self._wanted() else None

    def _wanted(self) -> bool:
        """Whether a plug-in names victims, or has whole gangs leave."""
        plugins = self._plugins
        return bool(plugins.selectors or plugins.cluster_selectors or plugins.companions)

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
            return self.unsynced() or await doubt()

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
            self.settings,
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
        while not self._wanted():
            await self._clock.sleep(_WAIT_SECONDS)
        self._members.start(supervisor)
        while True:
            await self._clock.sleep(3600.0)
