"""Puts the controller of gangs together."""

import random
from collections.abc import Awaitable, Callable, Collection, Iterable

from extender.framework import pipeline
from extender.gangs import controller, in_force, queue, renominations, writes
from extender.gangs.preemption import assembly as preempting_gangs
from extender.gangs.telling import announcement, conditions, notices
from extender.preemption import assembly as preemption
from extender.settings import GangSettings
from extender.state import ledger, records
from kube.client import client as clients
from kube.controllers import recorder
from kube.informers import store
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


class Gangs:
    """The controller of gangs, wired."""

    def __init__(
        self,
        settings: GangSettings,
        client: clients.Client,
        clock: clocks.Clock,
        plugins: pipeline.Pipeline,
        books: ledger.Ledger,
        preempting: preemption.Preemption,
    ) -> None:
        self._preempting = preempting
        self._settings, self._client, self._clock = settings, client, clock
        self._plugins, self._books = plugins, books
        self._supervisor: supervise.Supervisor | None = None
        self.controller: controller.GangController | None = None
        self._telling: conditions.Telling | None = None
        self._announcement: announcement.Announcement | None = None

    def announce(self, namespace: str, instance: str) -> None:
        """Tell admission of a backlog of members, by a Lease that this replica holds."""
        assert self.controller is not None
        self._announcement = announcement.Announcement(
            self._client, self._clock, self.controller.plans.backlog, namespace, instance
        )

    def connect(
        self,
        pods: store.Store[records.PodRecord],
        live: switches.Switches,
        *,
        doubt: Callable[[], Awaitable[str]],
        wake: Callable[[Iterable[str]], None],
        sampling: renominations.Sampling,
        told: tuple[metrics.Registry, recorder.EventRecorder],
    ) -> None:
        """Make the controller; the ledger has to listen to the pods before."""
        rng, chosen = random.Random(), self._settings
        written = writes.Writes(self._client, self._clock)
        self._telling = conditions.Telling(
            written,
            pods,
            self._clock,
            per_second=chosen.conditions_per_second,
            burst=chosen.conditions_burst,
        )
        parts = in_force.Parts(
            books=self._books,
            plugins=self._plugins,
            pods=pods,
            clock=self._clock,
            writes=written,
            telling=self._telling,
            notices=notices.Notices(*told),
            queue=queue.Queue(chosen.back_off_seconds, chosen.look_again_seconds),
            new_id=lambda: f"{rng.getrandbits(64):016x}",
            doubt=doubt,
            enforces=lambda: live.enforces,
            wake=wake,
            sampling=sampling,
            spawn=self._spawn,
        )
        preemptor = preempting_gangs.built(parts, self._preempting, chosen, self._client, told)
        self.controller = controller.GangController(parts, chosen, preemptor)
        self._books.cluster.followers.append(self.controller.follow)

    def offered(self, uid: str, nodes: Collection[str], is_bound_by_volumes: bool) -> str:
        """Take in at which nodes kube-scheduler looks for a member; return where it is placed."""
        assert self.controller is not None
        return self.controller.offered(uid, nodes, is_bound_by_volumes)

    def _spawn(self, name: str, work: Awaitable[None]) -> None:
        assert self._supervisor is not None

        async def run() -> None:
            await work

        self._supervisor.spawn(name, run())

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to plan."""
        assert self.controller is not None
        assert self._telling is not None
        self._supervisor = supervisor
        supervisor.start("gangs", self.controller.run)
        supervisor.start("gang-conditions", self._telling.run)
        if self._announcement is not None:
            supervisor.start("gang-backlog", self._announcement.run)
