"""Looking after ScheduleExplanations during one term: what has expired goes."""

from collections.abc import Iterable
from typing import Any

from api import resources
from api.kubernetes import core
from kube.controllers import controller, workqueue
from kube.informers import informer_set, reflector, shared_store, store
from manager.explanation import controller as schedule_explanation
from manager.explanation import plan as plans
from manager.reconcile import apply
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


class Expiry:
    """The explanations on every replica, and their end on the leader."""

    def __init__(
        self,
        members: informer_set.InformerSet,
        pods: shared_store.SharedStore[core.Pod],
        placed: store.Store[Any],
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._explanations = members.add(
            reflector.Projection(resources.SCHEDULE_EXPLANATIONS, dict, plans.view)
        )
        self._about = store.Index(self._explanations, lambda found: (found.pod,))
        # Apart from the pods that are placed, of which only those that wait are needed here.
        self._pods = (pods.view(_waits), placed)
        self._clock = clock
        self._registry = registry

    async def run(self, writer: apply.Writer) -> None:
        """Work until cancelled."""
        reconcile = schedule_explanation.ScheduleExplanations(
            self._explanations, self._pods, writer, self._clock
        ).reconcile
        queue = workqueue.Queue(self._clock)
        member = controller.Controller(
            "scheduleexplanation", reconcile, queue, self._clock, registry=self._registry
        )
        stops = [member.watch(self._explanations)]
        stops += [member.watch(pods, self._left_behind) for pods in self._pods]
        try:
            async with supervise.Supervisor("explanations") as supervisor:
                member.start(supervisor)
                await supervisor.stopped()
        finally:
            for stop in stops:
                stop()

    def _left_behind(self, change: store.Change[Any]) -> Iterable[str]:
        """Return the explanations of a pod that went."""
        return sorted(self._about.keys(change.key)) if change.new is None else ()


def _waits(pod: core.Pod) -> bool | None:
    return None if pod.finished or pod.spec.node_name else True
