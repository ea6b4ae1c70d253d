"""PodDisruptionBudgets: whose eviction they would refuse. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from api.kubernetes import core, selectors

MOST_OF_A_NAMESPACE: Final = 64
"""Budgets of one namespace that are looked at; the API server itself counts all of them."""


class Pod(Protocol):
    """By what a budget finds the pods that it counts."""

    @property
    def namespace(self) -> str:
        """Return its namespace."""

    @property
    def name(self) -> str:
        """Return its name."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Return its labels."""


class Victim(Protocol):
    """A pod that may be evicted."""

    @property
    def id(self) -> str:
        """Return by what the answers of `Budgets` name it."""

    @property
    def pod(self) -> Pod:
        """Return the pod."""


class Budget(msgspec.Struct, frozen=True):
    """The fields of one PodDisruptionBudget that decide about an eviction."""

    namespace: str
    name: str
    selector: Mapping[str, Any] | None
    allowed: int
    """disruptionsAllowed."""
    disrupted: frozenset[str] = frozenset()
    """Names of pods that it counts as disrupted already."""

    def covers(self, pod: Pod) -> bool:
        """Whether it counts the eviction of a pod."""
        if pod.namespace != self.namespace or pod.name in self.disrupted:
            return False
        try:
            return selectors.matches(self.selector, pod.labels)
        except (selectors.SelectorError, KeyError, TypeError, AttributeError):
            # What the API server could not evaluate either refuses no pod.
            return False


class DisruptedStatus(core.PodDisruptionBudgetStatus, frozen=True, gc=False):
    """What a disruption budget allows, and which pods are leaving with its consent."""

    disrupted_pods: dict[str, str] = msgspec.field(default_factory=dict)


class WatchedBudget(core.PodDisruptionBudget, frozen=True, gc=False):
    """A disruption budget as it is watched."""

    status: DisruptedStatus = DisruptedStatus()


def project(budget: WatchedBudget) -> Budget:
    """Return what is kept of a PodDisruptionBudget."""
    return Budget(
        budget.metadata.namespace,
        budget.metadata.name,
        selectors.prepared(budget.spec.selector),
        max(0, budget.status.disruptions_allowed),
        frozenset(budget.status.disrupted_pods),
    )


class Budgets:
    """The disruption budgets of the cluster by namespace."""

    def __init__(self, budgets: Iterable[Budget] = ()) -> None:
        self._by_namespace: dict[str, list[Budget]] = {}
        for budget in sorted(budgets, key=lambda one: (one.namespace, one.name)):
            of_namespace = self._by_namespace.setdefault(budget.namespace, [])
            if len(of_namespace) < MOST_OF_A_NAMESPACE:
                of_namespace.append(budget)

    def violating(self, victims: Sequence[Victim]) -> frozenset[str]:
        """Return the ids of those whose eviction a budget would refuse.

        Counted in their order, each after those before it: the first ones use up what is allowed.
        """
        return self._exceeding(victims, least=0)

    def exhausted_by(self, victims: Sequence[Victim]) -> frozenset[str]:
        """Return the ids of those that a budget would let go alone, and not after the others.

        A dry run of each eviction cannot tell, since it leaves the budget as it is.
        """
        return self._exceeding(victims, least=1)

    def may_be_exhausted(self, namespace: str, evictions: int) -> bool:
        """Whether a budget of a namespace lets some pods go, but fewer than are to be evicted."""
        known = self._by_namespace.get(namespace, ())
        return any(0 < budget.allowed < evictions for budget in known)

    def _exceeding(self, victims: Sequence[Victim], least: int) -> frozenset[str]:
        """Count evictions against the budgets that allow at least so many."""
        left: dict[tuple[str, str], int] = {}
        found: set[str] = set()
        for victim in victims:
            for budget in self._by_namespace.get(victim.pod.namespace, ()):
                if budget.allowed < least or not budget.covers(victim.pod):
                    continue
                key = budget.namespace, budget.name
                left[key] = left.get(key, budget.allowed) - 1
                if left[key] < 0:
                    found.add(victim.id)
        return frozenset(found)


NONE: Final = Budgets()
