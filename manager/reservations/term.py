"""Reservations during one term of leadership: what is watched, and who places and ends them."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from api import names, resources
from api.kubernetes import core
from kube.client import client
from kube.controllers import controller, workqueue
from kube.informers import informer_set, reflector, shared_store, store
from manager.model import projections
from manager.reconcile import apply
from manager.reservations import (
    arguments,
    objects,
    placement_plan,
    priorities,
    reservation_metrics,
    running_pods,
    status_plan,
)
from manager.reservations import controller as reservations
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


@dataclasses.dataclass(frozen=True, slots=True)
class Duties:
    """What the leader is to do."""

    rules: placement_plan.Rules
    pace: reservations.Pace
    workers: int


class Reservations:
    """The informers of Reservations, on every replica; overcommit does not wait for them."""

    def __init__(
        self,
        members: informer_set.InformerSet,
        pods: shared_store.SharedStore[core.Pod],
        nodes: store.Store[projections.Node],
        duties: Duties,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self.members = members
        self._duties = duties
        self._clock = clock
        self._registry = registry
        self._arguments = arguments.Arguments()
        self._configured = members.add(
            reflector.config_map(names.CONFIG_MAP_SCHEDULER, duties.rules.namespace)
        )
        self.written: shared_store.SharedStore[Mapping[str, Any]] = shared_store.SharedStore()
        """Of which every capability that needs Reservations takes its view."""
        members.add(
            reflector.Projection(resources.RESERVATIONS, dict, self.written.project), self.written
        )
        self._stores = reservations.Stores(
            self.written.view(objects.reservation),
            pods.view(objects.stand_in),
            members.add(
                reflector.Projection(resources.PRIORITY_CLASSES, dict, priorities.priority_class)
            ),
            pods.view(objects.user),
            nodes,
            pods.view(objects.leaving),
        )

    async def tell(self) -> None:
        """Export metrics of Reservations, on every replica; work until cancelled."""
        await self.members.synced()
        seen = self._stores.reservations
        await reservation_metrics.ReservationMetrics(seen, self._clock, self._registry).run()

    async def run(self, writer: apply.Writer, reader: client.Client) -> None:
        """Work until cancelled; pods and nodes are listed before."""
        await self.members.synced()
        queue = workqueue.Queue(self._clock)
        stores = self._stores
        running = running_pods.RunningPods(
            reader,
            stores.reservations,
            stores.stand_ins,
            stores.nodes,
            lambda: self._arguments.pre_allocation,
        )
        plans = reservations.Plans(self._rules, self._collection)
        reconcile = reservations.Reservations(
            stores, writer, running, plans, self._duties.pace, self._clock
        ).reconcile
        keeping = controller.Controller(
            reservations.NAME,
            reconcile,
            queue,
            self._clock,
            workers=self._duties.workers,
            registry=self._registry,
        )
        stops = [
            self._configured.listen(lambda change: self._configure(change.new, queue)),
            keeping.watch(stores.reservations),
            keeping.watch(stores.stand_ins, _stood_in),
            keeping.watch(stores.users, self._used),
            keeping.watch(stores.nodes, self._left),
            keeping.watch(stores.leaving, self._ended),
            keeping.watch(stores.classes, self._waiting),
        ]
        try:
            async with supervise.Supervisor("reservations") as supervisor:
                keeping.start(supervisor)
                await supervisor.stopped()
        finally:
            for stop in stops:
                stop()

    def _rules(self) -> placement_plan.Rules:
        rules, found = self._duties.rules, self._arguments
        return rules._replace(
            schedulers=rules.schedulers or found.schedulers or (names.SCHEDULER,),
            preempts=found.present.enable_preemption,
        )

    def _collection(self) -> status_plan.Collection:
        present = self._arguments.present
        return status_plan.Collection(
            present.gc_duration_seconds, present.disable_garbage_collection
        )

    def _configure(self, written: core.ConfigMap | None, queue: workqueue.Queue) -> None:
        before = (self._arguments.present, self._arguments.schedulers)
        self._arguments.take(written)
        if (self._arguments.present, self._arguments.schedulers) != before:
            for name in self._stores.reservations.keys():  # noqa: SIM118 - iterates over values
                queue.add(name)

    def _used(self, change: store.Change[objects.User]) -> Iterable[str]:
        """Return the Reservations whose owners a change of a pod concerns."""
        used = {one.reservation for one in (change.old, change.new) if one is not None}
        return sorted(name for uid in used for name in self._stores.named(uid))

    def _ended(self, change: store.Change[objects.Leaving]) -> Iterable[str]:
        """Return the Reservations that wait until a pod has ended."""
        ended = {one.uid for one in (change.old, change.new) if one is not None}
        return sorted(name for uid in ended for name in self._stores.waiting_for(uid))

    def _left(self, change: store.Change[projections.Node]) -> Iterable[str]:
        """Return the Reservations on a node that is gone."""
        return sorted(self._stores.on_node(change.key)) if change.new is None else ()

    def _waiting(self, change: store.Change[Any]) -> Iterable[str]:
        """Return the Reservations that wait, when a PriorityClass has come or changed."""
        if change.new is None:
            return ()
        return sorted(one.name for one in self._stores.reservations if not one.node)


def _stood_in(change: store.Change[objects.StandIn]) -> Iterable[str]:
    return {reservations.key_of(one) for one in (change.old, change.new) if one is not None}
