"""Keeps what each node lends to batch pods in the node's status."""

from collections.abc import Callable, Iterable

from api import resources
from kube import controller, store
from manager import apply, cluster, demand, plan, views
from manager.plans import node_resource
from process import clock as clocks


def figures_changed(change: store.Change[views.Metric]) -> Iterable[str]:
    """Return the key when the agent's figures changed or are gone."""
    before = None if change.old is None else change.old.report
    after = None if change.new is None else change.new.report
    if before != after:
        yield change.key


def nodes_of(change: store.Change[views.Pod]) -> Iterable[str]:
    """Return the nodes on which what is held has changed."""
    yield from {view.node for view in (change.old, change.new) if view is not None and view.node}


class NodeResources:
    """What reconciling the lent capacity of a node needs to see."""

    def __init__(
        self,
        seen: "Stores",
        settings: Callable[[], cluster.ClusterSettings | None],
        writer: apply.Writer,
        clock: clocks.Clock,
    ) -> None:
        self._seen = seen
        self._settings = settings
        self._writer = writer
        self._clock = clock
        self._written_at: dict[str, float] = {}

    async def reconcile(self, name: str) -> controller.Outcome:
        """Bring the lent capacity of one node about."""
        settings = cluster.usable(self._settings())
        if settings is None:
            return apply.WAITS
        node = self._seen.nodes.get(name)
        if node is None:
            self._written_at.pop(name, None)
            return controller.Outcome("the node is gone", changed=False)
        unseen = self._writer.unseen(resources.NODES, name, self._seen.nodes)
        if unseen is not None:
            return unseen
        wanted = node_resource.planned(self._observe(settings, node))
        outcome = await self._writer.carry_out(wanted)
        if any(isinstance(step, plan.PatchStatus) for step in wanted.steps):
            self._written_at[name] = self._clock.monotonic()
        return outcome

    def _observe(self, settings: cluster.ClusterSettings, node: views.Node) -> node_resource.Seen:
        metric = self._seen.metrics.get(node.name)
        rules = settings.rules(node.labels, node.annotations)
        written_at = self._written_at.get(node.name)
        return node_resource.Seen(
            node=node,
            report=None if metric is None else metric.report,
            demand=self._seen.demands.of(node.name),
            rules=rules,
            enabled=settings.colocation_enabled and rules.enable,
            now=self._clock.now(),
            since_write=None if written_at is None else self._clock.monotonic() - written_at,
        )


class Stores:
    """The stores that decide about lending, with the sums over them."""

    def __init__(
        self,
        nodes: store.Store[views.Node],
        metrics: store.Store[views.Metric],
        pods: store.Store[views.Pod],
    ) -> None:
        self.nodes = nodes
        self.metrics = metrics
        self.demands = demand.Demands(pods, metrics)
