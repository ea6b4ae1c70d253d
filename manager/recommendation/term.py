"""Recommendations during one term: their stores, on every replica, and who keeps them."""

from api import resources
from api.kubernetes import core
from kube.controllers import controller, workqueue
from kube.informers import informer_set, reflector, store
from manager.model import projections
from manager.recommendation import controller as recommendation
from manager.recommendation import plan as plans
from manager.reconcile import apply
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


class Recommending:
    """The informers of Recommendations and of everything they are made of.

    The recommendations themselves are listed before anything else: which figures of a report are
    kept depends on them.
    """

    def __init__(
        self, first: informer_set.InformerSet, members: informer_set.InformerSet, rules: plans.Rules
    ) -> None:
        self.members = members
        self._rules = rules
        self._wanted = first.add(reflector.raw(resources.RECOMMENDATIONS))
        self._owners = {
            resource.kind: members.add(
                reflector.Projection(resource, core.Pod, recommendation.owner)
            )
            for resource in (resources.REPLICA_SETS, resources.JOBS)
        }
        self._stores: recommendation.Stores | None = None

    def follow(
        self,
        namespaces: set[str],
        pods: store.Store[projections.Pod],
        measured: store.Store[projections.Metric],
    ) -> None:
        """Connect with what others watch; to be called before the start."""
        asked = recommendation.Asked(namespaces, pods)
        self._wanted.listen(asked.follow)
        self._stores = recommendation.Stores(self._wanted, measured, self._owners, asked)

    async def run(
        self, writer: apply.Writer, clock: clocks.Clock, registry: metrics.Registry
    ) -> None:
        """Work until cancelled."""
        assert self._stores is not None
        await self.members.synced()
        keeping = recommendation.Recommendations(self._stores, writer, clock, self._rules)
        queue = workqueue.Queue(clock)
        member = controller.Controller(
            "recommendation", keeping.reconcile, queue, clock, registry=registry
        )
        stop = member.watch(self._wanted, recommendation.wish_changed)
        try:
            async with supervise.Supervisor("recommendations") as supervisor:
                member.start(supervisor)
                await supervisor.stopped()
        finally:
            stop()
