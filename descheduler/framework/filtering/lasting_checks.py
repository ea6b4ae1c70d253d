"""Checks of the MigrationController that do not pass by themselves (non-retryable). Pure.

The arbitrator fails a job whose pod one of them refuses, and a round suggests none of these pods.
"""

from collections.abc import Iterator
from typing import Final

from descheduler.configuration.arguments import migration
from descheduler.framework.filtering import pod_checks, pod_traits, workload_replicas
from descheduler.model import picture, podinfo

NAMESPACE: Final = "its namespace is excluded (namespaces)"
NEVER: Final = "its eviction cost forbids it"
CLAIM: Final = "it has a PersistentVolumeClaim (ignorePvcPods)"
UNKNOWN_WORKLOAD: Final = "the replicas of its workload are not known"
TOO_FEW: Final = "its workload has too few replicas"


class LastingChecks:
    """What the arguments say about the pods of one picture; each pod and workload is asked once."""

    def __init__(self, arguments: migration.MigrationControllerArgs, seen: picture.Picture) -> None:
        self._arguments, self._seen = arguments, seen
        self._replicas: dict[str, str] = {}
        self._threshold = pod_traits.threshold(arguments.priority_threshold, seen.priorities)
        self._checks: tuple[pod_checks.Check, ...] = tuple(self._enabled())
        self._known: dict[str, str] = {}

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return why a pod must stay, empty where it may leave."""
        found = self._known.get(pod.uid)
        if found is None:
            found = self._known[pod.uid] = pod_checks.first_refusal(self._checks, pod)
        return found

    def _enabled(self) -> Iterator[pod_checks.Check]:
        """Yield the checks in the order of the reference, without those that can refuse nothing."""
        given, skips = self._arguments, self._arguments.skips
        if given.namespaces is not None and not skips("Namespaces"):
            yield self._namespace
        yield _always
        if not given.evict_all_bare_pods and not skips("BarePods"):
            failed = given.evict_failed_bare_pods
            yield pod_checks.bare_unless_failed if failed else pod_checks.bare
        if not given.evict_system_critical_pods:
            if not skips("SystemCritical"):
                yield pod_checks.critical
            if self._threshold is not None and not skips("PriorityThreshold"):
                yield pod_checks.below(self._threshold)
        if not given.evict_local_storage_pods and not skips("LocalStorage"):
            yield pod_checks.local_storage
        if given.ignore_pvc_pods and not skips("PVC"):
            yield _claim
        if given.label_selector is not None and not skips("LabelSelector"):
            yield pod_checks.selected(given.label_selector)
        if not given.skip_check_expected_replicas and not skips("ExpectedReplicas"):
            yield self._expected_replicas

    def _namespace(self, pod: podinfo.Pod) -> str:
        namespaces = self._arguments.namespaces
        return "" if namespaces is None or namespaces.hold(pod.namespace) else NAMESPACE

    def _expected_replicas(self, pod: podinfo.Pod) -> str:
        controller = pod.controller
        if controller is None:
            return ""
        found = self._replicas.get(controller.uid)
        if found is None:
            found = self._replicas[controller.uid] = self._enough(pod)
        return found

    def _enough(self, pod: podinfo.Pod) -> str:
        """Return why no pod of a workload can be spared while it is replaced."""
        replicas = workload_replicas.of(pod, self._seen)
        if replicas is None:
            return UNKNOWN_WORKLOAD
        given = self._arguments
        limits = (given.max_migrating_per_workload, given.max_unavailable_per_workload)
        all_of_them = any(workload_replicas.limit(replicas, one) == replicas for one in limits)
        return TOO_FEW if replicas == 1 or all_of_them else ""


def _always(pod: podinfo.Pod) -> str:
    if pod_traits.never_leaves(pod):
        return NEVER
    return pod_checks.daemon(pod) or pod_checks.is_leaving(pod)


def _claim(pod: podinfo.Pod) -> str:
    return CLAIM if pod.claims else ""
