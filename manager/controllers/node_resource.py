"""Keeps what each node lends to batch pods in the node's status."""

from collections.abc import Callable, Iterable

from api import resources
from kube import controller, store
from manager import apply, cluster, demand, lent, plan, views
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


class Observer:
    """Puts together what decides about one node."""

    def __init__(
        self,
        stores: "Stores",
        settings: Callable[[], cluster.ClusterSettings | None],
        clock: clocks.Clock,
    ) -> None:
        self.stores = stores
        self._settings = settings
        self._clock = clock
        self._written_at: dict[str, float] = {}

    @property
    def settings(self) -> cluster.ClusterSettings | None:
        """Settings that may be decided by; None while there are none."""
        return cluster.usable(self._settings())

    def wrote(self, name: str) -> None:
        """Remember that a node was written now."""
        self._written_at[name] = self._clock.monotonic()

    def forget(self, name: str) -> None:
        """Forget a node that is gone."""
        self._written_at.pop(name, None)

    def seen(self, settings: cluster.ClusterSettings, node: views.Node) -> lent.Seen:
        """Return everything that decides about a node at this moment."""
        metric = self.stores.metrics.get(node.name)
        rules = settings.rules(node.labels, node.annotations)
        written_at = self._written_at.get(node.name)
        return lent.Seen(
            node=node,
            report=None if metric is None else metric.report,
            demand=self.stores.demands.of(node.name),
            rules=rules,
            enabled=settings.colocation_enabled and rules.enable,
            now=self._clock.now(),
            since_write=None if written_at is None else self._clock.monotonic() - written_at,
            normalization=settings.normalization(node.labels),
            amplification=settings.amplification(node.labels),
        )


class NodeResources:
    """Reconciles what nodes lend."""

    def __init__(self, observer: Observer, writer: apply.Writer) -> None:
        self._observer = observer
        self._writer = writer

    async def reconcile(self, name: str) -> controller.Outcome:
        """Bring the lent capacity of one node about."""
        settings = self._observer.settings
        if settings is None:
            return apply.WAITS
        nodes = self._observer.stores.nodes
        node = nodes.get(name)
        if node is None:
            self._observer.forget(name)
            return controller.Outcome("the node is gone", changed=False)
        unseen = self._writer.unseen(resources.NODES, name, nodes)
        if unseen is not None:
            return unseen
        wanted = node_resource.planned(self._observer.seen(settings, node))
        outcome = await self._writer.carry_out(wanted)
        if any(isinstance(step, plan.PatchStatus) for step in wanted.steps):
            self._observer.wrote(name)
        return outcome


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
