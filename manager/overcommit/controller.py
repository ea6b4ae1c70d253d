"""Keeps what each node lends to batch pods in the node's status."""

import dataclasses
from collections.abc import Callable, Iterable

from api import resources
from kube.controllers import controller
from kube.informers import store
from manager.cluster_settings import effective
from manager.model import projections
from manager.overcommit import calculation, sweep, zones_plan
from manager.overcommit import plan as node_resource
from manager.reconcile import actions, apply
from process.runtime import clock as clocks


def figures_changed(change: store.Change[projections.Metric]) -> Iterable[str]:
    """Return the key when the agent's figures changed or are gone."""
    before = None if change.old is None else change.old.report
    after = None if change.new is None else change.new.report
    if before != after:
        yield change.key


def nodes_of(change: store.Change[projections.Pod]) -> Iterable[str]:
    """Return the nodes on which what is held has changed."""
    yield from {view.node for view in (change.old, change.new) if view is not None and view.node}


class Observer:
    """Puts together what decides about one node."""

    def __init__(
        self,
        stores: "Stores",
        settings: Callable[[], effective.ClusterSettings | None],
        clock: clocks.Clock,
    ) -> None:
        self.stores = stores
        self._settings = settings
        self._clock = clock
        self._written_at: dict[tuple[str, bool], float] = {}

    @property
    def settings(self) -> effective.ClusterSettings | None:
        """Settings that may be decided by; None while there are none."""
        return effective.usable(self._settings())

    def wrote(self, name: str, *, zones: bool = False) -> None:
        """Remember that a node, or its zones, were written now."""
        self._written_at[name, zones] = self._clock.monotonic()

    def since(self, name: str, *, zones: bool = False) -> float | None:
        """Return how many seconds ago that was; None if it never happened."""
        at = self._written_at.get((name, zones))
        return None if at is None else self._clock.monotonic() - at

    def forget(self, name: str) -> None:
        """Forget a node that is gone."""
        for zones in (False, True):
            self._written_at.pop((name, zones), None)

    def seen(self, settings: effective.ClusterSettings, node: projections.Node) -> calculation.Seen:
        """Return everything that decides about a node at this moment."""
        metric, topology = (
            self.stores.metrics.get(node.name),
            self.stores.topologies.get(node.name),
        )
        rules = settings.rules(node.labels, node.annotations)
        return calculation.Seen(
            node=node,
            report=None if metric is None else metric.report,
            demand=self.stores.demands.of(node.name),
            rules=rules,
            enabled=settings.colocation_enabled and rules.enable,
            now=self._clock.now(),
            since_write=self.since(node.name),
            normalization=settings.normalization(node.labels),
            amplification=settings.amplification(node.labels),
            processors=None if topology is None else topology.processors,
            devices=self.stores.devices.get(node.name),
            slices=self.stores.slices,
        )

    def look(self) -> sweep.Looks | None:
        """Look at all nodes at once; None while nothing may be decided."""
        settings = self.settings
        if settings is None:
            return None
        return self.stores.sweep.look(settings, self._clock.now(), self.since)


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
        seen = self._observer.seen(settings, node)
        wanted = node_resource.planned(seen)
        outcome = await self._writer.carry_out(wanted)
        if any(isinstance(step, actions.PatchStatus) for step in wanted.steps):
            self._observer.wrote(name)
        return _both(outcome, await self._zones(seen))

    async def _zones(self, seen: calculation.Seen) -> controller.Outcome | None:
        """Bring about what the NUMA zones of a node offer."""
        name, stores = seen.node.name, self._observer.stores
        there = stores.topologies.get(name)
        if there is None or not there.zones:
            return None
        unseen = self._writer.unseen(resources.NODE_RESOURCE_TOPOLOGIES, name, stores.topologies)
        if unseen is not None:
            return unseen
        mine = dataclasses.replace(seen, since_write=self._observer.since(name, zones=True))
        version = stores.topologies.version_of(name)
        wanted = zones_plan.planned(mine, there, stores.demands.held(name), version)
        outcome = await self._writer.carry_out(wanted)
        if wanted.steps:
            self._observer.wrote(name, zones=True)
        return outcome


def _both(one: controller.Outcome, other: controller.Outcome | None) -> controller.Outcome:
    if other is None:
        return one
    times = [o.requeue_after for o in (one, other) if o.requeue_after is not None]
    return controller.Outcome(
        f"{one.message}; {other.message}",
        requeue_after=min(times, default=None),
        changed=one.changed or other.changed,
    )


class Stores:
    """The stores that decide about lending, with the sums over them.

    With ``slices``, nodes offer slices of their GPUs.
    """

    def __init__(self, seen: sweep.Sources, slices: bool) -> None:
        self.slices = slices
        self.nodes = seen.nodes
        self.metrics = seen.metrics
        self.topologies = seen.topologies
        self.devices = seen.devices
        self.sweep = sweep.Sweep(seen)
        self.demands = self.sweep.demands
