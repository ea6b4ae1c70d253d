"""Disruption budgets: the arithmetic and its upkeep."""

from typing import Any

import pytest

from simulator.apiserver.storage import object_store
from simulator.controllers import disruption_budgets


def pod(name: str, *, ready: bool = True, **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "d", "labels": {"app": "web"}, **meta},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


@pytest.mark.parametrize(
    ("spec", "healthy", "expected", "allowed", "desired"),
    [
        pytest.param({"minAvailable": 2}, 3, 3, 1, 2, id="number"),
        pytest.param({"minAvailable": 3}, 3, 3, 0, 3, id="all needed"),
        pytest.param({"minAvailable": "50%"}, 3, 3, 1, 2, id="half of three rounds up"),
        pytest.param({"minAvailable": "100%"}, 2, 3, 0, 3, id="everything"),
        pytest.param({"maxUnavailable": 1}, 3, 3, 1, 2, id="one may miss"),
        pytest.param({"maxUnavailable": 1}, 2, 3, 0, 2, id="one misses already"),
        pytest.param({"maxUnavailable": "34%"}, 3, 3, 2, 1, id="a third rounds up"),
        pytest.param({}, 2, 2, 1, 1, id="one by default"),
        pytest.param({"maxUnavailable": 5}, 0, 0, 0, 0, id="nothing there"),
    ],
)
def test_arithmetic(
    spec: dict[str, Any], healthy: int, expected: int, allowed: int, desired: int
) -> None:
    budget = {"metadata": {"name": "b", "generation": 3}, "spec": spec}
    status = disruption_budgets.assessed(budget, [pod(f"p{n}") for n in range(healthy)], expected)
    assert (status["disruptionsAllowed"], status["desiredHealthy"]) == (allowed, desired)
    assert status["observedGeneration"] == 3


def test_disrupted_pods_count_as_gone_until_they_are() -> None:
    budget = {
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1},
        "status": {"disruptedPods": {"a": "then", "gone": "then"}},
    }
    status = disruption_budgets.assessed(budget, [pod("a"), pod("b")], 2)
    assert status["disruptedPods"] == {"a": "then"}
    assert status["disruptionsAllowed"] == 0


@pytest.fixture
def store() -> object_store.Objects:
    names = iter(range(1000))
    made = object_store.Objects(
        now=lambda: 0.0, uid=lambda: f"u{next(names)}", suffix=lambda: f"{next(names)}"
    )
    disruption_budgets.Budgets(made).start()
    return made


def test_the_status_follows_the_pods_and_their_controllers(store: object_store.Objects) -> None:
    sets = object_store.Collection("apps", "replicasets")
    owner = store.create(
        sets, {"metadata": {"name": "rs", "namespace": "d"}, "spec": {"replicas": 4}}
    )
    reference = {
        "kind": "ReplicaSet",
        "name": "rs",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    selector = {"matchLabels": {"app": "web"}}
    body = {
        "metadata": {"name": "b", "namespace": "d"},
        "spec": {"maxUnavailable": "50%", "selector": selector},
    }
    store.create(disruption_budgets.BUDGETS, body)
    for number in range(3):
        store.create(object_store.PODS, pod(f"p{number}", ownerReferences=[reference]))
    status = store.get(disruption_budgets.BUDGETS, "b", "d")["status"]
    assert (status["expectedPods"], status["desiredHealthy"]) == (4, 2)
    assert status["disruptionsAllowed"] == 1
    store.delete(object_store.PODS, "p0", "d")
    assert store.get(disruption_budgets.BUDGETS, "b", "d")["status"]["disruptionsAllowed"] == 0
