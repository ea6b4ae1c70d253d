"""Checks of the MigrationController that do not pass by themselves (non-retryable). Pure.

The arbitrator fails a job whose pod one of them refuses, and a round suggests none of these pods.
"""

from collections.abc import Callable, Iterator
from typing import Final

from descheduler.configuration.arguments import migration
from descheduler.framework.filtering import pod_traits, workload_replicas
from descheduler.model import picture, podinfo

NAMESPACE: Final = "its namespace is excluded (namespaces)"
NEVER: Final = "its eviction cost forbids it"
DAEMON: Final = "it belongs to a DaemonSet"
STATIC: Final = "it is a static pod"
TERMINATING: Final = "it is terminating"
BARE: Final = "it has no owner that would replace it"
CRITICAL: Final = "its priority is critical for the system"
PRIORITY: Final = "its priority is at or above priorityThreshold"
LOCAL_STORAGE: Final = "it has a volume of kind hostPath or emptyDir"
CLAIM: Final = "it has a PersistentVolumeClaim (ignorePvcPods)"
LABELS: Final = "labelSelector does not select it"
UNKNOWN_WORKLOAD: Final = "the replicas of its workload are not known"
TOO_FEW: Final = "its workload has too few replicas"

Check = Callable[[podinfo.Pod], str]


class LastingChecks:
    """What the arguments say about the pods of one picture; each pod and workload is asked once."""

    def __init__(self, arguments: migration.MigrationControllerArgs, seen: picture.Picture) -> None:
        self._arguments, self._seen = arguments, seen
        self._replicas: dict[str, str] = {}
        self._threshold = pod_traits.threshold(arguments.priority_threshold, seen.priorities)
        self._checks: tuple[Check, ...] = tuple(self._enabled())
        self._known: dict[str, str] = {}

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return why a pod must stay, empty where it may leave."""
        found = self._known.get(pod.uid)
        if found is None:
            found = self._known[pod.uid] = self._refusal(pod)
        return found

    def _refusal(self, pod: podinfo.Pod) -> str:
        if pod_traits.is_forced(pod):
            return ""
        for check in self._checks:
            if reason := check(pod):
                return reason
        return ""

    def _enabled(self) -> Iterator[Check]:
        """Yield the checks in the order of the reference, without those that can refuse nothing."""
        given, skips = self._arguments, self._arguments.skips
        if given.namespaces is not None and not skips("Namespaces"):
            yield self._namespace
        yield _always
        if not given.evict_all_bare_pods and not skips("BarePods"):
            yield self._bare
        if not given.evict_system_critical_pods:
            if not skips("SystemCritical"):
                yield _critical
            if self._threshold is not None and not skips("PriorityThreshold"):
                yield self._priority
        if not given.evict_local_storage_pods and not skips("LocalStorage"):
            yield _local_storage
        if given.ignore_pvc_pods and not skips("PVC"):
            yield _claim
        if given.label_selector is not None and not skips("LabelSelector"):
            yield self._labels
        if not given.skip_check_expected_replicas and not skips("ExpectedReplicas"):
            yield self._expected_replicas

    def _namespace(self, pod: podinfo.Pod) -> str:
        namespaces = self._arguments.namespaces
        return "" if namespaces is None or namespaces.hold(pod.namespace) else NAMESPACE

    def _bare(self, pod: podinfo.Pod) -> str:
        if pod.owners or (self._arguments.evict_failed_bare_pods and pod.phase == "Failed"):
            return ""
        return BARE

    def _priority(self, pod: podinfo.Pod) -> str:
        least = self._threshold
        return PRIORITY if pod.priority is not None and pod.priority >= (least or 0) else ""

    def _labels(self, pod: podinfo.Pod) -> str:
        selector = self._arguments.label_selector
        return "" if selector is None or selector.selects(pod.labels) else LABELS

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
    if pod_traits.is_daemon(pod):
        return DAEMON
    if pod.is_mirror:
        return STATIC
    return TERMINATING if pod.leaves_at >= 0 else ""


def _critical(pod: podinfo.Pod) -> str:
    return CRITICAL if pod_traits.is_system_critical(pod) else ""


def _local_storage(pod: podinfo.Pod) -> str:
    return LOCAL_STORAGE if pod.has_local_storage else ""


def _claim(pod: podinfo.Pod) -> str:
    return CLAIM if pod.claims else ""
