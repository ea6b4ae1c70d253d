"""Disruption budgets: how many pods a budget lets go, and keeping that figure current."""

from collections.abc import Mapping, Sequence
from typing import Any

from api.kubernetes import selectors
from simulator.apiserver.storage import lifecycle, object_store

Object = dict[str, Any]

BUDGETS = object_store.Collection("policy", "poddisruptionbudgets")
_OWNERS = {
    "ReplicaSet": object_store.Collection("apps", "replicasets"),
    "Deployment": object_store.Collection("apps", "deployments"),
}


def covers(budget: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Tell whether a budget speaks for a pod of its namespace."""
    labels = pod["metadata"].get("labels") or {}
    return selectors.matches(budget.get("spec", {}).get("selector"), labels)


def is_healthy(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod counts as available."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def assessed(budget: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], expected: int) -> Object:
    """Return the status of a budget over the pods it covers, of which `expected` should exist."""
    spec, status = budget.get("spec", {}), budget.get("status") or {}
    names = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
    disrupted = {k: v for k, v in (status.get("disruptedPods") or {}).items() if k in names}
    healthy = sum(
        is_healthy(pod)
        for pod in pods
        if pod["metadata"]["name"] in names and pod["metadata"]["name"] not in disrupted
    )
    if "maxUnavailable" in spec:
        desired = max(0, expected - _scaled(spec["maxUnavailable"], expected))
    else:
        wanted = spec.get("minAvailable", 1)
        # A plain number does not depend on how many pods there should be.
        desired = _scaled(wanted, expected)
        expected = len(pods) if isinstance(wanted, int) else expected
    allowed = max(0, healthy - desired) if expected > 0 else 0
    return {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "observedGeneration": budget["metadata"].get("generation", 1),
        **({"disruptedPods": disrupted} if disrupted else {}),
    }


def _scaled(value: Any, total: int) -> int:
    """Return a number, or a percentage of the total rounded up."""
    if isinstance(value, str) and value.endswith("%"):
        return -(-int(value[:-1]) * total // 100)
    return int(value)


class Budgets:
    """Keeps the status of every stored budget current."""

    def __init__(self, store: object_store.Objects) -> None:
        self._store = store

    def start(self) -> None:
        """Follow the pods and the budgets."""
        self._store.subscribe(self._pod_changed, object_store.PODS)
        self._store.subscribe(self._budget_changed, BUDGETS)

    def of(self, pod: Mapping[str, Any]) -> list[Object]:
        """Return the budgets that cover a pod."""
        namespace = pod["metadata"]["namespace"]
        return [b for b in self._store.list(BUDGETS, namespace).items if covers(b, pod)]

    def _pod_changed(self, event: object_store.Event) -> None:
        for budget in self._store.list(BUDGETS, event.key.namespace).items:
            if any(
                side is not None and covers(budget, side) for side in (event.object, event.previous)
            ):
                self._refresh(budget)

    def _budget_changed(self, event: object_store.Event) -> None:
        if event.type != "DELETED":
            self._refresh(event.object)

    def _refresh(self, budget: Object) -> None:
        meta = budget["metadata"]
        current = self._store.find(BUDGETS, meta["name"], meta["namespace"])
        if current is None:
            return
        pods = [
            p
            for p in self._store.list(object_store.PODS, meta["namespace"]).items
            if covers(current, p)
        ]
        status = assessed(current, pods, self._expected(pods))
        if status != current.get("status"):
            self._store.update(BUDGETS, {**current, "status": lifecycle.copied(status)})

    def _expected(self, pods: Sequence[Mapping[str, Any]]) -> int:
        """Return how many pods their controllers want, or how many there are without one."""
        total = 0
        counted: set[str] = set()
        for pod in pods:
            meta = pod["metadata"]
            owner = next(
                (o for o in meta.get("ownerReferences") or () if o.get("controller")), None
            )
            replicas = self._replicas(owner, meta["namespace"]) if owner else None
            if owner is None or replicas is None:
                total += 1
            elif owner["uid"] not in counted:
                counted.add(owner["uid"])
                total += replicas
        return total

    def _replicas(self, owner: Mapping[str, Any], namespace: str) -> int | None:
        sort = _OWNERS.get(owner["kind"])
        found = self._store.find(sort, owner["name"], namespace) if sort else None
        replicas = (found or {}).get("spec", {}).get("replicas")
        return replicas if isinstance(replicas, int) else None
