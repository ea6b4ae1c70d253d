"""Gangs in every replica and during one term of leadership: what is watched, and who writes."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator
from typing import Final

from api import names, resources
from api.kubernetes import core
from kube.controllers import controller, workqueue
from kube.informers import informer_set, reflector, shared_store, store
from manager.gangs import controller as gangs
from manager.gangs import gang_book, objects, repair
from manager.reconcile import apply
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

_TOGETHER_SECONDS: Final = 0.25
"""Changes of one gang within this time are looked at together."""


@dataclasses.dataclass(frozen=True, slots=True)
class Duties:
    """What the leader is to do."""

    namespace: str
    """Where the live switches are."""
    mode: switches.Mode
    """Of restarts, where no live switch says otherwise."""
    pace: gangs.Pace
    workers: int = 1


class Gangs:
    """What this looks at, on every replica; overcommit does not wait for it."""

    def __init__(
        self,
        members: informer_set.InformerSet,
        native: informer_set.InformerSet,
        pods: shared_store.SharedStore[core.Pod],
        duties: Duties,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self.members = members
        self._native = native
        self._duties = duties
        self._clock = clock
        self._registry = registry
        self._queue = workqueue.Queue(clock)
        groups = members.add(reflector.Projection(resources.POD_GROUPS, dict, objects.pod_group))
        # Most clusters do not serve these, which takes a while to be sure of: nothing waits for it.
        others = [
            native.add(
                reflector.Projection(
                    resource,
                    dict,
                    functools.partial(objects.native_pod_group, resource),
                    optional=True,
                )
            )
            for resource in resources.NATIVE_POD_GROUPS
        ]
        self._book = gang_book.GangBook(pods.view(objects.gang_pod), groups, others)
        live = switches.Switches(repair.SWITCH, duties.mode)
        self._gangs = gangs.Gangs(self._book, live, duties.pace, clock, registry)
        switched = members.add(reflector.config_map(names.CONFIG_MAP_SWITCHES, duties.namespace))
        switched.listen(lambda change: live.take(change.new.data if change.new else None))

    def pod_groups(self) -> Iterator[objects.Group]:
        """Yield the PodGroups of scheduling.sigs.k8s.io and of Kubernetes itself."""
        for seen in self._book.groups:
            yield from seen

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to list and watch."""
        self.members.start(supervisor)
        self._native.start(supervisor)

    async def tell(self) -> None:
        """Follow all gangs, on every replica; pods are listed before. Work until cancelled."""
        await self.members.synced()
        keeping = controller.Controller(
            gangs.NAME,
            self._gangs.reconcile,
            self._queue,
            self._clock,
            workers=self._duties.workers,
            registry=self._registry,
        )
        stops = [self._book.pods.listen(self._later)]
        stops += [seen.listen(self._later) for seen in self._book.groups]
        try:
            async with supervise.Supervisor("gangs") as supervisor:
                keeping.start(supervisor)
                await supervisor.stopped()
        finally:
            for stop in stops:
                stop()

    async def run(self, writer: apply.Writer) -> None:
        """Let what follows gangs write, until cancelled."""
        await self.members.synced()
        self._gangs.lead(writer)
        try:
            for gang_id in set(self._book.ids()):
                self._queue.add(gang_id)
            async with supervise.Supervisor("gangs-lead") as supervisor:
                await supervisor.stopped()
        finally:
            self._gangs.follow()

    def _later(self, change: store.Change[objects.GangPod] | store.Change[objects.Group]) -> None:
        """Look at the gangs of a changed object soon, together with what else changes."""
        for gang_id in _gangs_of(change):
            self._queue.add_after(gang_id, _TOGETHER_SECONDS)


def _gangs_of(
    change: store.Change[objects.GangPod] | store.Change[objects.Group],
) -> Iterable[str]:
    return {one.gang_id for one in (change.old, change.new) if one is not None}
