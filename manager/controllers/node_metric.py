"""Keeps one NodeMetric per node, and says in it how the agent is to measure."""

from collections.abc import Callable, Iterable

from api import resources
from kube import controller, store
from manager import apply, cluster, owned, strategy, views
from manager.plans import node_metric

_WAITS = controller.Outcome("waits for readable cluster settings", changed=False)


def settings_changed(change: store.Change[views.Metric]) -> Iterable[str]:
    """Return the key unless only the agent's figures changed, which are not ours."""
    before, after = change.old, change.new
    if before is None or after is None or before.present != after.present:
        yield change.key


class NodeMetrics:
    """What reconciling the NodeMetric of a node needs to see."""

    def __init__(
        self,
        nodes: store.Store[views.Node],
        metrics: store.Store[views.Metric],
        settings: Callable[[], cluster.ClusterSettings | None],
        writer: apply.Writer,
    ) -> None:
        self._nodes = nodes
        self._metrics = metrics
        self._settings = settings
        self._writer = writer

    async def reconcile(self, name: str) -> controller.Outcome:
        """Bring the NodeMetric of one node about."""
        settings = self._settings()
        if settings is None or not settings.available:
            return _WAITS
        unseen = self._writer.unseen(resources.NODE_METRICS, name, self._metrics)
        if unseen is not None:
            return unseen
        metric = self._metrics.get(name)
        there = None if metric is None else metric.present
        node = self._nodes.get(name)
        if node is None:
            return await self._writer.carry_out(owned.orphaned(resources.NODE_METRICS, name, there))
        merged = settings.merged(node.labels, node.annotations)
        rules = None if strategy.flaw(merged) else strategy.read(merged)
        return await self._writer.carry_out(
            node_metric.planned(name, there, rules, doubtful=settings.doubtful)
        )
