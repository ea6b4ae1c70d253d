"""Elastic quota during one term of leadership: its informers, and the controllers of the leader.

Its informers are its own: what is lent does not wait for them.
"""

import dataclasses

from api import resources
from domain.quota import model
from kube.controllers import controller, workqueue
from kube.informers import informer_set, reflector, store
from manager.model import projections
from manager.quota import book, informers, profile_controller, profile_plan
from manager.reconcile import apply
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


@dataclasses.dataclass(frozen=True, slots=True)
class Duties:
    """What the leader is to do."""

    keeps_profiles: bool
    """Whether the root quota of each ElasticQuotaProfile follows the nodes that it selects."""


class Quotas:
    """What this looks at, on every replica."""

    def __init__(
        self,
        members: informer_set.InformerSet,
        nodes: store.Store[projections.Node],
        duties: Duties,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self.members = members
        self._clock = clock
        self._registry = registry
        self._duties = duties
        self._nodes = nodes
        self.book = book.Book(informers.added(members, nodes), model.Rules())
        if duties.keeps_profiles:
            self._profiles = members.add(
                reflector.Projection(resources.ELASTIC_QUOTA_PROFILES, dict, profile_plan.profile)
            )
            self._kept = members.add(
                reflector.Projection(resources.ELASTIC_QUOTAS, dict, profile_plan.present)
            )

    async def run(self, writer: apply.Writer) -> None:
        """Work until cancelled; nodes are listed before."""
        await self.members.synced()
        self.book.synced()
        stops = []
        async with supervise.Supervisor("quotas") as supervisor:
            try:
                if self._duties.keeps_profiles:
                    keeping = self._controller("quotaprofile", self._keeper(writer))
                    stops += [
                        keeping.watch(self._profiles),
                        keeping.watch(self._kept, profile_controller.profiles_of),
                    ]
                    keeping.start(supervisor)
                await supervisor.stopped()
            finally:
                for stop in stops:
                    stop()

    def _keeper(self, writer: apply.Writer) -> controller.Reconcile:
        return profile_controller.QuotaProfiles(
            self._profiles, self._kept, self._nodes, writer
        ).reconcile

    def _controller(self, name: str, reconcile: controller.Reconcile) -> controller.Controller:
        queue = workqueue.Queue(self._clock)
        return controller.Controller(name, reconcile, queue, self._clock, registry=self._registry)
