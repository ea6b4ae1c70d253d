"""Which pods may be evicted at all, as the standard descheduler says it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from api import names
from api.kubernetes import selectors
from descheduler.configuration.arguments import evictor
from descheduler.framework import protocols
from descheduler.framework.filtering import elsewhere, pod_checks, pod_traits
from descheduler.model import objects, podinfo

NAME: Final = "DefaultEvictor"
CLAIM: Final = "it has a PersistentVolumeClaim"
RESOURCE_CLAIM: Final = "it has a ResourceClaim"
NO_BUDGET: Final = "no PodDisruptionBudget selects it"
NAMESPACE: Final = "namespaceLabelSelector does not select its namespace"
TOO_FEW: Final = "its workload has fewer pods than minReplicas"
YOUNG: Final = "it is younger than minPodAge"
PREFERS: Final = "an annotation asks for no eviction (noEvictionPolicy)"


class DefaultEvictor:
    """Protects pods whose loss nothing makes good, and what arguments name beside them."""

    name = NAME

    def __init__(self, arguments: evictor.DefaultEvictorArgs) -> None:
        self._arguments = arguments

    def for_round(self, view: protocols.FilterView) -> protocols.Filtering:
        """Return what it says in one round."""
        return _Round(self._arguments, view)


class _Round:
    def __init__(self, arguments: evictor.DefaultEvictorArgs, view: protocols.FilterView) -> None:
        self._arguments, self._seen = arguments, view.picture
        self._threshold = pod_traits.threshold(
            arguments.priority_threshold, view.picture.priorities
        )
        self._budgets: Mapping[str, Sequence[objects.Budget]] | None = None
        self._checks: tuple[pod_checks.Check, ...] = (*self._standard(), *self._extra())
        self._elsewhere = (
            elsewhere.Elsewhere(view.picture, view.fit, arguments.node_selector)
            if arguments.node_fit
            else None
        )

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return why the pod must stay, empty where it may leave."""
        return pod_checks.first_refusal(self._checks, pod)

    def varies(self, pod: podinfo.Pod) -> bool:
        """Whether the age of pods counts."""
        del pod
        return bool(self._arguments.min_pod_age)

    def late_refusal(self, pod: podinfo.Pod) -> str:
        """Return why its namespace or the other nodes keep it."""
        selector = self._arguments.namespace_label_selector
        labels = self._seen.namespaces.get(pod.namespace, {})
        if selector is not None and not selector.selects(labels):
            return NAMESPACE
        return self._elsewhere.refusal(pod) if self._elsewhere is not None else ""

    def _standard(self) -> Iterator[pod_checks.Check]:
        """Yield what protects pods unless arguments say otherwise."""
        disabled = self._arguments.pod_protections.default_disabled
        yield pod_checks.is_leaving
        failed = "FailedBarePods" in disabled
        yield pod_checks.bare_unless_failed if failed else pod_checks.bare
        if "DaemonSetPods" not in disabled:
            yield pod_checks.daemon
        if "SystemCriticalPods" not in disabled:
            yield pod_checks.critical
            if self._threshold is not None:
                yield pod_checks.below(self._threshold)
        if "PodsWithLocalStorage" not in disabled:
            yield pod_checks.local_storage

    def _extra(self) -> Iterator[pod_checks.Check]:
        """Yield what protects pods because arguments say so."""
        given = self._arguments
        protected = given.pod_protections.extra_enabled
        if given.no_eviction_policy == "Mandatory":
            yield _prefers_to_stay
        if "PodsWithPVC" in protected:
            yield _claim
        if "PodsWithResourceClaims" in protected:
            yield _resource_claim
        if given.label_selector is not None:
            yield pod_checks.selected(given.label_selector)
        if given.min_replicas > 1:
            yield self._replicas
        if given.min_pod_age:
            yield self._age
        if "PodsWithoutPDB" in protected:
            yield self._budget

    def _replicas(self, pod: podinfo.Pod) -> str:
        controller = pod.controller
        if controller is None:
            return ""
        there = len(self._seen.by_controller.get(controller.uid, ()))
        return TOO_FEW if there < self._arguments.min_replicas else ""

    def _age(self, pod: podinfo.Pod) -> str:
        begun = pod.started if pod.started >= 0 else pod.created
        return YOUNG if self._seen.now - begun < (self._arguments.min_pod_age or 0) else ""

    def _budget(self, pod: podinfo.Pod) -> str:
        if self._budgets is None:
            found: dict[str, list[objects.Budget]] = {}
            for one in self._seen.budgets:
                found.setdefault(one.key.partition("/")[0], []).append(one)
            self._budgets = found
        own = self._budgets.get(pod.namespace, ())
        return "" if any(_selects(one, pod) for one in own) else NO_BUDGET


def _selects(budget: objects.Budget, pod: podinfo.Pod) -> bool:
    try:
        return selectors.matches(budget.selector, pod.labels)
    except (selectors.SelectorError, KeyError, TypeError, AttributeError):
        return False


def _prefers_to_stay(pod: podinfo.Pod) -> str:
    return PREFERS if names.ANNOTATION_PREFER_NO_EVICTION in pod.annotations else ""


def _claim(pod: podinfo.Pod) -> str:
    return CLAIM if pod.claims else ""


def _resource_claim(pod: podinfo.Pod) -> str:
    return RESOURCE_CLAIM if pod.has_resource_claims else ""
