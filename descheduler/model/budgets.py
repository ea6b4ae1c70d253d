"""Which disruption budgets count which pods. Pure."""

from collections.abc import Iterable, Sequence

from api.kubernetes import selectors
from descheduler.model import objects, podinfo


def covers(budget: objects.Budget, pod: podinfo.Pod) -> bool:
    """Whether an eviction of the pod counts against the budget."""
    if budget.selector is None or budget.key.partition("/")[0] != pod.namespace:
        return False
    try:
        return selectors.matches(budget.selector, pod.labels)
    except selectors.SelectorError:
        # The API server refuses evictions by a selector that it cannot read either.
        return True


class Budgets:
    """Budgets by namespace."""

    def __init__(self, known: Iterable[objects.Budget]) -> None:
        self._by_namespace: dict[str, list[objects.Budget]] = {}
        for budget in known:
            namespace = budget.key.partition("/")[0]
            self._by_namespace.setdefault(namespace, []).append(budget)

    def of(self, pod: podinfo.Pod) -> Sequence[objects.Budget]:
        """Return the budgets that count the pod."""
        return [one for one in self._by_namespace.get(pod.namespace, ()) if covers(one, pod)]
