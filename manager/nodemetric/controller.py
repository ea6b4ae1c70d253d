"""Keeps one NodeMetric per node, and says in it how the agent is to measure."""

import dataclasses
from collections.abc import Callable, Iterable

from api import resources
from domain.cluster_settings import value_limits
from kube.controllers import controller
from kube.informers import store
from manager.cluster_settings import effective, strategy
from manager.model import projections
from manager.nodemetric import plan as node_metric
from manager.reconcile import apply, node_objects


def settings_changed(change: store.Change[projections.Metric]) -> Iterable[str]:
    """Return the key unless only the agent's figures changed, which are not ours."""
    before, after = change.old, change.new
    if before is None or after is None or before.present != after.present:
        yield change.key


@dataclasses.dataclass(frozen=True, slots=True)
class NodeMetrics:
    """What reconciling the NodeMetric of a node needs to see."""

    nodes: store.Store[projections.Node]
    metrics: store.Store[projections.Metric]
    settings: Callable[[], effective.ClusterSettings | None]
    writer: apply.Writer

    async def reconcile(self, name: str) -> controller.Outcome:
        """Bring the NodeMetric of one node about."""
        unseen = self.writer.unseen(resources.NODE_METRICS, name, self.metrics)
        if unseen is not None:
            return unseen
        metric = self.metrics.get(name)
        there = None if metric is None else metric.present
        there = node_objects.at_version(there, self.metrics.version_of(name))
        node = self.nodes.get(name)
        if node is None:
            return await self.writer.carry_out(
                node_objects.orphaned(resources.NODE_METRICS, name, there)
            )
        settings = effective.usable(self.settings())
        if settings is None and there is None:
            return apply.WAITS
        if settings is None:
            return await self.writer.carry_out(
                node_metric.planned(name, there, None, doubtful=True)
            )
        merged = settings.merged(node.labels, node.annotations)
        rules = None if value_limits.flaw(merged) else strategy.read(merged)
        return await self.writer.carry_out(
            node_metric.planned(name, there, rules, doubtful=settings.doubtful)
        )
