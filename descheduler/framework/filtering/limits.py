"""Checks of the MigrationController that pass once other moves are done (retryable). Pure.

The arbitrator lets a job wait while one of them refuses; a round suggests the pod again later.
"""

import collections
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from descheduler.configuration.arguments import migration
from descheduler.framework import protocols
from descheduler.framework.filtering import pod_traits, workload_replicas
from descheduler.model import picture, podinfo

GLOBALLY: Final = "as many pods as may be are moving (maxMigratingGlobally)"
NODE: Final = "as many pods of its node as may be are moving (maxMigratingPerNode)"
NAMESPACE: Final = "as many pods of its namespace as may be are moving (maxMigratingPerNamespace)"
MIGRATING: Final = "as many pods of its workload as may be are moving (maxMigratingPerWorkload)"
UNAVAILABLE: Final = (
    "as many pods of its workload as may be are unavailable (maxUnavailablePerWorkload)"
)

Check = Callable[[podinfo.Pod], str]


class MigratingLimits:
    """What the arguments say about pods of one picture while others are being moved."""

    def __init__(
        self,
        arguments: migration.MigrationControllerArgs,
        seen: picture.Picture,
        migrating: protocols.Migrating,
    ) -> None:
        self._arguments, self._seen, self._migrating = arguments, seen, migrating
        self._checks: tuple[Check, ...] = tuple(self._enabled())
        self._families: Mapping[str, tuple[str, ...]] | None = None
        self._unavailable: dict[str, frozenset[str]] = {}
        self._unmoved: dict[str, str] = {}
        """What is said of a workload of which no pod is moving, by uid."""

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return why a pod must stay for the time being, empty where it may leave."""
        if pod_traits.is_forced(pod):
            return ""
        for check in self._checks:
            if reason := check(pod):
                return reason
        return ""

    def _enabled(self) -> Iterator[Check]:
        given, skips = self._arguments, self._arguments.skips
        if given.max_migrating_globally and not skips("MaxMigratingGlobally"):
            yield self._globally
        if given.max_migrating_per_node and not skips("MaxMigratingPerNode"):
            yield self._node
        if given.max_migrating_per_namespace and not skips("MaxMigratingPerNamespace"):
            yield self._namespace
        if not skips("MaxMigratingPerWorkload"):
            yield self._workload_migrating
        if not skips("MaxUnavailablePerWorkload"):
            yield self._workload_unavailable

    def _globally(self, pod: podinfo.Pod) -> str:
        most = self._arguments.max_migrating_globally or 0
        return GLOBALLY if self._migrating.count(pod) >= most else ""

    def _node(self, pod: podinfo.Pod) -> str:
        most = self._arguments.max_migrating_per_node or 0
        if not pod.node:
            return ""
        return NODE if self._migrating.count_on(pod.node, pod) >= most else ""

    def _namespace(self, pod: podinfo.Pod) -> str:
        most = self._arguments.max_migrating_per_namespace or 0
        return NAMESPACE if self._migrating.count_in(pod.namespace, pod) >= most else ""

    def _workload_migrating(self, pod: podinfo.Pod) -> str:
        controller = pod.controller
        if controller is None:
            return ""
        moving = len(self._migrating.pods_of(controller.uid, pod))
        if not moving:
            return ""
        most = self._limit(pod, self._arguments.max_migrating_per_workload)
        return MIGRATING if moving >= most else ""

    def _workload_unavailable(self, pod: podinfo.Pod) -> str:
        controller = pod.controller
        if controller is None:
            return ""
        moving = self._migrating.pods_of(controller.uid, pod)
        if moving:
            return self._too_few(pod, controller.uid, moving)
        found = self._unmoved.get(controller.uid)
        if found is None:
            found = self._unmoved[controller.uid] = self._too_few(pod, controller.uid, ())
        return found

    def _too_few(self, pod: podinfo.Pod, uid: str, moving: Collection[podinfo.Pod]) -> str:
        gone = self._unavailable_of(workload_replicas.family(uid, self._seen))
        count = len(gone) + sum(1 for one in moving if one.uid not in gone)
        most = self._limit(pod, self._arguments.max_unavailable_per_workload)
        return UNAVAILABLE if count >= most else ""

    def _limit(self, pod: podinfo.Pod, written: int | str | None) -> int:
        return workload_replicas.limit(workload_replicas.of(pod, self._seen) or 0, written)

    def _unavailable_of(self, family: str) -> frozenset[str]:
        """Return the pods of a workload that do not serve; of a Deployment of all ReplicaSets."""
        found = self._unavailable.get(family)
        if found is None:
            found = frozenset(
                pod.uid
                for uid in (family, *self._members().get(family, ()))
                for pod in self._seen.by_controller.get(uid, ())
                if not (pod.ready and pod.is_active)
            )
            self._unavailable[family] = found
        return found

    def _members(self) -> Mapping[str, tuple[str, ...]]:
        """Return the ReplicaSets of each Deployment."""
        if self._families is None:
            found: dict[str, list[str]] = collections.defaultdict(list)
            for one in self._seen.workloads.values():
                if one.owner:
                    found[one.owner].append(one.uid)
            self._families = {owner: tuple(members) for owner, members in found.items()}
        return self._families
