"""Looking after profiles during one term: their status, and pods that wait for a node.

Its stores are its own: overcommit does not wait for them.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from api import resources
from api.koordinator import colocation
from api.kubernetes import core
from kube.client import client
from kube.controllers import controller, workqueue
from kube.informers import informer_set, reflector, shared_store, store
from manager.profiles import controller as colocation_profile
from manager.profiles import plan as waiting
from manager.profiles import status_controller, status_plan
from manager.reconcile import apply
from process.configuration import features
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

GATE = features.Gate(
    "ColocationProfileController",
    default=False,
    stage=features.Stage.ALPHA,
    description="Apply profiles that ask for it to pods that exist already and wait for a node.",
)


class Seen(Protocol):
    """The stores of profiles and namespaces, which admission watches as well."""

    @property
    def profiles(self) -> store.Store[Any]:
        """Return the profiles, each with its spec as ``profile``."""
        ...

    @property
    def written(self) -> shared_store.SharedStore[Mapping[str, Any]]:
        """Return what views of the profiles are taken of."""
        ...

    @property
    def namespaces(self) -> store.Store[Any]:
        """Return the labels of each namespace."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Duties:
    """What the leader is to do."""

    writes_status: bool
    pace: colocation_profile.Pace | None
    """How waiting pods are changed; None leaves them alone."""


class Profiles:
    """What this looks at, on every replica."""

    def __init__(
        self,
        members: informer_set.InformerSet,
        seen: Seen,
        pods: shared_store.SharedStore[core.Pod],
        duties: Duties,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self.members = members
        self._seen = seen
        self._clock = clock
        self._registry = registry
        self._duties = duties
        if duties.pace is not None:
            self._waiting: store.Store[waiting.Waiting] = pods.view(waiting.waiting)
        if duties.writes_status:
            self._judged = seen.written.view(status_plan.projected)
            self._classes = members.add(
                reflector.Projection(
                    resources.PRIORITY_CLASSES, dict, status_controller.priority_class
                )
            )

    async def run(self, writer: apply.Writer, reader: client.Client) -> None:
        """Work until cancelled."""
        await self.members.synced()
        stops: list[Callable[[], None]] = []
        async with supervise.Supervisor("profiles") as supervisor:
            try:
                if self._duties.pace is not None:
                    follower = self._follower(self._duties.pace, writer, reader)
                    following = self._controller("colocationprofile", follower)
                    stops.append(following.watch(self._seen.profiles))
                    following.start(supervisor)
                if self._duties.writes_status:
                    stops += self._keep_status(writer, supervisor)
                await supervisor.stopped()
            finally:
                for stop in stops:
                    stop()

    def _keep_status(
        self, writer: apply.Writer, supervisor: supervise.Supervisor
    ) -> Iterator[Callable[[], None]]:
        status = status_controller.ProfileStatus(self._judged, self._classes, writer, self._clock)
        keeping = self._controller(status_controller.NAME, status.reconcile)
        yield keeping.watch(self._judged, status.judged_anew)
        yield keeping.watch(self._classes, status.naming)
        keeping.start(supervisor)

    def _follower(
        self, pace: colocation_profile.Pace, writer: apply.Writer, reader: client.Client
    ) -> controller.Reconcile:
        stores = colocation_profile.Stores(self._profile, self._seen.namespaces, self._waiting)
        return colocation_profile.ColocationProfiles(
            stores, reader, writer, pace, self._clock, self._registry
        ).reconcile

    def _profile(self, name: str) -> colocation.ClusterColocationProfile | None:
        found = self._seen.profiles.get(name)
        return None if found is None else found.profile

    def _controller(self, name: str, reconcile: controller.Reconcile) -> controller.Controller:
        queue = workqueue.Queue(self._clock)
        return controller.Controller(name, reconcile, queue, self._clock, registry=self._registry)
