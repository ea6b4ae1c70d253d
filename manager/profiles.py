"""Following profiles during one term: the quotas of node groups, and pods that wait for a node.

Its stores are its own: what is lent does not wait for them.
"""

import dataclasses
import random

from api import resources
from api.koordinator import colocation
from api.kubernetes import core
from kube.client import client
from kube.controllers import controller, workqueue
from kube.informers import informer_set, reflector, store
from manager import admissions, apply, views
from manager.controllers import colocation_profile, quota_profile
from manager.plans import colocation_profile as waiting
from manager.plans import quota_profile as quotas
from process.configuration import features
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

GATE = features.Gate(
    "ColocationProfileController",
    default=False,
    stage=features.Stage.ALPHA,
    description="Apply profiles that ask for it to pods that exist already and wait for a node.",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Duties:
    """What the leader is to do."""

    keeps_quotas: bool
    pace: colocation_profile.Pace | None
    """How waiting pods are changed; None leaves them alone."""


class Profiles:
    """What this looks at, on every replica."""

    def __init__(
        self,
        members: informer_set.InformerSet,
        seen: admissions.Admissions,
        duties: Duties,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self.members = members
        self._seen = seen
        self._clock = clock
        self._registry = registry
        self._duties = duties
        if duties.keeps_quotas:
            self._quota_profiles = members.add(
                reflector.Projection(resources.ELASTIC_QUOTA_PROFILES, dict, quotas.profile)
            )
            self._quotas = members.add(
                reflector.Projection(resources.ELASTIC_QUOTAS, dict, quotas.present)
            )
        if duties.pace is not None:
            self._waiting = members.add(
                reflector.Projection(
                    resources.PODS, core.Pod, waiting.waiting, fields="spec.nodeName="
                )
            )

    async def run(
        self, nodes: store.Store[views.Node], writer: apply.Writer, reader: client.Client
    ) -> None:
        """Work until cancelled."""
        await self.members.synced()
        stops = []
        async with supervise.Supervisor("profiles") as supervisor:
            try:
                if self._duties.keeps_quotas:
                    keeping = self._controller("quotaprofile", self._quota_keeper(nodes, writer))
                    stops += [
                        keeping.watch(self._quota_profiles),
                        keeping.watch(self._quotas, quota_profile.profiles_of),
                    ]
                    keeping.start(supervisor)
                if self._duties.pace is not None:
                    follower = self._follower(self._duties.pace, writer, reader)
                    following = self._controller("colocationprofile", follower)
                    stops.append(following.watch(self._seen.profiles))
                    following.start(supervisor)
                await supervisor.stopped()
            finally:
                for stop in stops:
                    stop()

    def _quota_keeper(
        self, nodes: store.Store[views.Node], writer: apply.Writer
    ) -> controller.Reconcile:
        return quota_profile.QuotaProfiles(
            self._quota_profiles, self._quotas, nodes, writer
        ).reconcile

    def _follower(
        self, pace: colocation_profile.Pace, writer: apply.Writer, reader: client.Client
    ) -> controller.Reconcile:
        lots = random.Random()
        stores = colocation_profile.Stores(
            self._profile, self._seen.namespaces, self._waiting, lambda: lots.randrange(100)
        )
        return colocation_profile.ColocationProfiles(
            stores, reader, writer, pace, self._clock, self._registry
        ).reconcile

    def _profile(self, name: str) -> colocation.ClusterColocationProfile | None:
        found = self._seen.profiles.get(name)
        return None if found is None else found.profile

    def _controller(self, name: str, reconcile: controller.Reconcile) -> controller.Controller:
        queue = workqueue.Queue(self._clock)
        return controller.Controller(name, reconcile, queue, self._clock, registry=self._registry)
