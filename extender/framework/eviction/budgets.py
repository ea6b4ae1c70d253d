"""PodDisruptionBudgets: whose eviction they would refuse. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from api.kubernetes import core, selectors
from extender.framework import views

MOST_OF_A_NAMESPACE: Final = 64
"""Budgets of one namespace that are looked at; the API server itself counts all of them."""


class Budget(msgspec.Struct, frozen=True):
    """The fields of one PodDisruptionBudget that decide about an eviction."""

    namespace: str
    name: str
    selector: Mapping[str, Any] | None
    allowed: int
    """disruptionsAllowed."""
    disrupted: frozenset[str] = frozenset()
    """Names of pods that it counts as disrupted already."""

    def covers(self, claim: views.Claim) -> bool:
        """Whether it counts the eviction of a pod."""
        pod = claim.pod
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

    def violating(self, claims: Sequence[views.Claim]) -> frozenset[str]:
        """Return the ids of those whose eviction a budget would refuse.

        Counted in their order, each after those before it: the first ones use up what is allowed.
        """
        return self._exceeding(claims, least=0)

    def exhausted_by(self, claims: Sequence[views.Claim]) -> frozenset[str]:
        """Return the ids of those that a budget would let go alone, and not after the others.

        A dry run of each eviction cannot tell, since it leaves the budget as it is.
        """
        return self._exceeding(claims, least=1)

    def _exceeding(self, claims: Sequence[views.Claim], least: int) -> frozenset[str]:
        """Count evictions against the budgets that allow at least so many."""
        left: dict[tuple[str, str], int] = {}
        found: set[str] = set()
        for claim in claims:
            for budget in self._by_namespace.get(claim.pod.namespace, ()):
                if budget.allowed < least or not budget.covers(claim):
                    continue
                key = budget.namespace, budget.name
                left[key] = left.get(key, budget.allowed) - 1
                if left[key] < 0:
                    found.add(claim.id)
        return frozenset(found)


NONE: Final = Budgets()
