"""What the leader does during one term: its stores, its controllers, and who follows what."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from api import resources
from api.kubernetes import core
from kube.controllers import controller, workqueue
from kube.informers import informer_set, pod_informer, reflector, shared_store, store
from manager.admission import plan as admission
from manager.cluster_settings import controller as cluster_settings
from manager.cluster_settings import effective
from manager.cluster_settings import plan as readings
from manager.model import projections
from manager.nodemetric import controller as node_metric
from manager.nodeslo import controller as node_slo
from manager.overcommit import controller as node_resource
from manager.overcommit import inventory, sweep
from manager.reconcile import apply, node_objects
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


@dataclasses.dataclass(frozen=True, slots=True)
class Duties:
    """What the leader is to do."""

    config_namespace: str
    config_name: str
    controllers: tuple[str, ...]
    """Names of the controllers that run, each with one object per node."""
    workers: int
    """Workers of each controller."""
    slices: bool = False
    """Whether nodes offer slices of GPUs."""

    @property
    def key(self) -> str:
        """Return where the configuration map is found."""
        return f"{self.config_namespace}/{self.config_name}"


class Watched:
    """Every store of the manager, in sync on all replicas, so that a new leader starts warm."""

    def __init__(
        self, members: informer_set.InformerSet, duties: Duties, judge: admission.Judge
    ) -> None:
        self.nodes = members.add(reflector.Projection(resources.NODES, core.Node, projections.node))
        self.all_pods = pod_informer.shared(members, core.Pod)
        """Of which every capability that needs pods takes its view."""
        self.pods: store.Store[projections.Pod] = self.all_pods.view(
            lambda pod: admission.view(pod, judge)
        )
        self.asked: set[str] = set()
        """Namespaces of whose pods the use is kept by container."""
        self.metrics = members.add(
            reflector.Projection(
                resources.NODE_METRICS, dict, lambda raw: projections.metric(raw, self.asked)
            )
        )
        self.slos = members.add(
            reflector.Projection(resources.NODE_SLOS, dict, node_objects.present)
        )
        self.maps = members.add(
            reflector.Projection(
                resources.CONFIG_MAPS,
                core.ConfigMap,
                cluster_settings.view,
                fields=f"metadata.name={duties.config_name}",
                namespace=duties.config_namespace,
                from_cache=False,
            )
        )
        self.all_topologies: shared_store.SharedStore[Mapping[str, Any]] = (
            shared_store.SharedStore()
        )
        """Of which every capability that needs NodeResourceTopologies takes its view."""
        members.add(
            reflector.Projection(
                resources.NODE_RESOURCE_TOPOLOGIES, dict, self.all_topologies.project
            ),
            self.all_topologies,
        )
        self.topologies: store.Store[inventory.Topology] = self.all_topologies.view(
            inventory.read_topology
        )
        self.devices = members.add(
            reflector.Projection(resources.DEVICES, dict, inventory.read_devices, grants=True)
        )
        self.lending = node_resource.Stores(
            sweep.Sources(self.nodes, self.metrics, self.pods, self.topologies, self.devices),
            duties.slices,
        )
        self._key = duties.key

    def settings(self) -> effective.ClusterSettings:
        """Return what the configuration map says now, for replicas that do not lead."""
        found = self.maps.get(self._key)
        return readings.read(None, None if found is None else found.data).settings


class Term:
    """The controllers of one term of leadership."""

    def __init__(
        self,
        duties: Duties,
        watched: Watched,
        writer: apply.Writer,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._duties = duties
        self._watched = watched
        self._clock = clock
        self._registry = registry
        self._stops: list[Callable[[], None]] = []
        self.cluster = cluster_settings.Settings(watched.maps, writer, registry, self._look_at_all)
        slos = node_slo.NodeSLOs(watched.nodes, watched.slos, self.cluster.current, writer)
        measured = node_metric.NodeMetrics(
            watched.nodes, watched.metrics, self.cluster.current, writer
        )
        self.observer = node_resource.Observer(watched.lending, self.cluster.current, clock)
        lent = node_resource.NodeResources(self.observer, writer)
        self._config = self._controller("settings", self.cluster.reconcile, workers=1)
        functions = {
            "nodemetric": measured.reconcile,
            "nodeslo": slos.reconcile,
            "noderesource": lent.reconcile,
        }
        self._by_node = {
            name: self._controller(name, functions[name], workers=duties.workers)
            for name in duties.controllers
        }

    def _controller(
        self, name: str, reconcile: controller.Reconcile, *, workers: int
    ) -> controller.Controller:
        queue = workqueue.Queue(self._clock)
        return controller.Controller(
            name, reconcile, queue, self._clock, workers=workers, registry=self._registry
        )

    def _look_at_all(self) -> None:
        for kind, member in self._by_node.items():
            if kind == "noderesource":
                self._sweep(member.queue)
                continue
            for name in self._watched.nodes.keys():  # noqa: SIM118 - a store iterates over values
                member.queue.add(name)

    def _sweep(self, queue: workqueue.Queue) -> None:
        """Queue the nodes that lend otherwise now, and all others for when that may change."""
        looks = self.observer.look()
        if looks is None:
            return
        for name in looks.now:
            queue.add(name)
        for name, seconds in looks.later:
            queue.add_after(name, seconds)

    async def run(self) -> None:
        """Work until cancelled."""
        # Nothing is decided before the settings were read.
        await self._config.once(self._duties.key)
        try:
            self._follow()
            async with supervise.Supervisor("controllers") as supervisor:
                for member in (self._config, *self._by_node.values()):
                    member.start(supervisor)
                await supervisor.stopped()
        finally:
            for stop in self._stops:
                stop()

    def _follow(self) -> None:
        watched = self._watched
        self._watch(self._config, watched.maps)
        lending = self._by_node.get("noderesource")
        if lending is not None:
            self._follow_lending(lending)
            # What there is already is looked at in one go, and every change by itself.
            self._sweep(lending.queue)
        for name, member in self._by_node.items():
            match name:
                case "nodeslo":
                    self._watch(member, watched.nodes)
                    self._watch(member, watched.slos)
                case "nodemetric":
                    self._watch(member, watched.nodes)
                    self._watch(member, watched.metrics, node_metric.settings_changed)

    def _follow_lending(self, member: controller.Controller) -> None:
        watched = self._watched
        self._watch_changes(member, watched.nodes, _key)
        self._watch_changes(member, watched.metrics, node_resource.figures_changed)
        self._watch_changes(member, watched.pods, node_resource.nodes_of)
        self._watch_changes(member, watched.topologies, _key)
        self._watch_changes(member, watched.devices, _key)

    def _watch_changes(
        self,
        member: controller.Controller,
        seen: store.Store[Any],
        keys: Callable[[store.Change[Any]], Iterable[str]],
    ) -> None:
        """Follow a store, but not what it holds already."""
        known = True

        def changed(change: store.Change[Any]) -> Iterable[str]:
            return () if known else keys(change)

        self._watch(member, seen, changed)
        known = False

    def _watch(
        self, member: controller.Controller, seen: store.Store[Any], keys: Any = None
    ) -> None:
        self._stops.append(member.watch(seen, keys))


def _key(change: store.Change[Any]) -> Iterable[str]:
    yield change.key
