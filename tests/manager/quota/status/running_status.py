"""The status controller of quotas beside a cluster that is fed by hand."""

from api import resources
from kube.controllers import controller
from kube.informers import store
from manager.quota import objects
from manager.quota.status import status_controller
from manager.reconcile import actions
from process.runtime import metrics
from process.runtime.clock import ManualClock
from tests.manager.quota.conftest import Cluster

QUOTAS = resources.ELASTIC_QUOTAS


def used(world, name, group=QUOTAS):
    found = world.stored(group, name)
    return found and found.get("status", {}).get("used", {}).get("cpu")


class Recording:
    """A writer that keeps what it should write, and answers as an API server would."""

    def __init__(self, cluster: Cluster, clock: ManualClock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.at: list[float] = []
        self.names: list[str] = []
        self.fails: list[Exception] = []

    def unseen(self, *_args):
        return None

    async def carry_out(self, plan):
        for step in plan.steps:
            if isinstance(step, actions.Merge):
                if self.fails:
                    raise self.fails.pop(0)
                self.at.append(self.clock.monotonic())
                self.names.append(step.name)
                self._store(step)
        return controller.Outcome(plan.message)

    def _store(self, step):
        seen = self.cluster.stores.quotas[step.resource]
        key = f"{step.namespace}/{step.name}"
        there = seen.get(key)
        meta = step.body["metadata"]
        assert meta["resourceVersion"] == there.version
        self.cluster.version += 1
        status = dict(there.status)
        for field, value in step.body.get("status", {}).items():
            if isinstance(value, dict):
                value = {**status.get(field, {}), **value}
                value = {name: text for name, text in value.items() if text is not None}
            status[field] = value
        after = objects.QuotaObject(
            there.quota,
            str(self.cluster.version),
            {**there.annotations, **meta.get("annotations", {})},
            status,
        )
        seen.put(store.Meta(key, there.quota.uid, self.cluster.version), after)


class Running:
    """The status controller beside a cluster that is fed by hand."""

    def __init__(self, cluster: Cluster, pace: status_controller.Pace) -> None:
        self.clock = ManualClock(turns=6)
        self.writer = Recording(cluster, self.clock)
        self.statuses = status_controller.Statuses(
            cluster.book, self.writer, pace, self.clock, metrics.Registry()
        )
