"""Elastic quota during one term of leadership: its informers, and the controllers of the leader.

It has informers of its own, but for nodes and pods: overcommit does not wait for them.
"""

import contextlib
import dataclasses
from collections.abc import Iterator

from api import resources
from api.kubernetes import core
from domain.quota import model
from kube.client import client as clients
from kube.controllers import controller, workqueue
from kube.informers import informer_set, reflector, shared_store, store
from manager.model import projections
from manager.quota import book, enforcement, informers
from manager.quota.profiles import profile_controller, profile_plan
from manager.quota.status import defaults, status_controller, team_metrics
from manager.reconcile import apply
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


@dataclasses.dataclass(frozen=True, slots=True)
class Duties:
    """What the leader is to do."""

    keeps_profiles: bool
    """Whether the root quota of each ElasticQuotaProfile follows the nodes that it selects."""
    writes_status: bool
    """Whether the status of quotas is written."""
    keeps_defaults: bool
    """Whether the reserved quotas are made when they are absent."""
    namespace: str
    """Where the configuration is, and the reserved quotas are made."""
    pace: status_controller.Pace
    enforces: enforcement.Duties
    """Who is let in, and who gives back."""


class Quotas:
    """The informers of elastic quota, on every replica."""

    def __init__(
        self,
        members: informer_set.InformerSet,
        nodes: store.Store[projections.Node],
        pods: shared_store.SharedStore[core.Pod],
        duties: Duties,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self.members = members
        self._clock = clock
        self._registry = registry
        self._duties = duties
        self._nodes = nodes
        self._elastic = informers.shared(members, resources.ELASTIC_QUOTAS)
        stores = informers.added(members, nodes, pods, self._elastic)
        self.book = book.Book(stores, model.Rules())
        self.enforcement = enforcement.Enforcement(
            members, self.book, duties.enforces, clock, registry
        )
        if duties.keeps_profiles:
            self._profiles = members.add(
                reflector.Projection(resources.ELASTIC_QUOTA_PROFILES, dict, profile_plan.profile)
            )
            self._kept = self._elastic.view(profile_plan.present)

    async def tell(self) -> None:
        """Keep the gauges of all quotas, on every replica; work until cancelled.

        Nodes and pods are listed before.
        """
        await self.members.synced()
        await team_metrics.TeamMetrics(self.book, self._clock, self._registry).run()

    async def run(self, writer: apply.Writer, reader: clients.Client) -> None:
        """Work until cancelled; nodes and pods are listed before."""
        await self.members.synced()
        self.book.synced()
        with contextlib.ExitStack() as stops:
            async with supervise.Supervisor("quotas") as supervisor:
                if self._duties.keeps_profiles:
                    stops.enter_context(self._keeping_profiles(supervisor, writer))
                if self._duties.keeps_defaults:
                    stops.enter_context(self._keeping_defaults(supervisor, writer))
                if self._duties.writes_status:
                    statuses = status_controller.Statuses(
                        self.book, writer, self._duties.pace, self._clock, self._registry
                    )
                    supervisor.start(status_controller.NAME, statuses.run)
                supervisor.start("quota-enforcement", lambda: self.enforcement.run(writer, reader))
                await supervisor.stopped()

    @contextlib.contextmanager
    def _keeping_profiles(
        self, supervisor: supervise.Supervisor, writer: apply.Writer
    ) -> Iterator[None]:
        quotas = profile_controller.QuotaProfiles(
            self._profiles, self._kept, self._nodes, writer, self._clock
        )
        keeping = self._controller("quotaprofile", quotas.reconcile)

        def follow(change: store.Change[projections.Node]) -> None:
            for key, seconds in quotas.due(change):
                keeping.queue.add_after(key, seconds)

        stops = (
            keeping.watch(self._profiles),
            keeping.watch(self._kept, profile_controller.profiles_of),
            self._nodes.listen(follow),
        )
        keeping.start(supervisor)
        try:
            yield
        finally:
            for stop in stops:
                stop()

    @contextlib.contextmanager
    def _keeping_defaults(
        self, supervisor: supervise.Supervisor, writer: apply.Writer
    ) -> Iterator[None]:
        seen = self.members.of(self._elastic)
        reconcile = defaults.Defaults(
            self.book,
            lambda: self.enforcement.arguments.namespace(self._duties.namespace),
            lambda: not seen.contact.missing,
            writer,
        ).reconcile
        keeping = self._controller(defaults.NAME, reconcile)

        def follow(change: book.Changed) -> None:
            for name in defaults.reserved(change):
                keeping.queue.add(name)

        stop = self.book.listen(follow)
        for name in defaults.RESERVED:
            keeping.queue.add(name)
        keeping.start(supervisor)
        try:
            yield
        finally:
            stop()

    def _controller(self, name: str, reconcile: controller.Reconcile) -> controller.Controller:
        queue = workqueue.Queue(self._clock)
        return controller.Controller(name, reconcile, queue, self._clock, registry=self._registry)
