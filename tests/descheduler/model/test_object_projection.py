import msgspec
import pytest

from api.kubernetes import core
from descheduler.model import budgets, object_projection, objects
from tests import processor_time
from tests.descheduler import builders

MADE = "2026-07-01T00:00:00Z"
MADE_AT = 1_782_864_000.0


def controller(
    kind="StatefulSet", *, owner=None, generation=1, strategy=None, replicas=3, **status
):
    metadata = {"name": "web", "namespace": "shop", "uid": f"uid-{kind}", "generation": generation}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "uid": f"uid-{owner}", "controller": True}]
    spec = {"replicas": replicas, "updateStrategy": strategy or {}}
    status = {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, **status}
    return msgspec.convert(
        {"metadata": metadata, "spec": spec, "status": status}, object_projection.Controller
    )


def canary(partition):
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("Deployment", {}, False),
        ("Deployment", {"generation": 2}, True),
        ("Deployment", {"updatedReplicas": 1}, True),
        ("Deployment", {"replicas": 4, "updatedReplicas": 4}, False),
        ("StatefulSet", {"updatedReplicas": 2}, True),
        ("StatefulSet", {"updatedReplicas": 1, "strategy": canary(2)}, False),
        ("StatefulSet", {"updatedReplicas": 0, "strategy": canary(2)}, True),
        ("StatefulSet", {"updatedReplicas": 0, "strategy": {"type": "OnDelete"}}, False),
        ("CloneSet", {"updatedReplicas": 1, "strategy": {"partition": "50%"}}, False),
        ("CloneSet", {"updatedReplicas": 1, "strategy": {"partition": "10%"}}, True),
        ("CloneSet", {"updatedReplicas": 1, "strategy": {"partition": "x%"}}, True),
        ("ReplicationController", {"generation": 7}, False),
    ],
    ids=[
        "all new", "not seen yet", "some old", "surplus all new", "set with an old one",
        "canary done", "canary goes on", "updated by hand", "half is kept", "a tenth is kept",
        "unreadable partition", "without revisions",
    ],
)  # fmt: skip
def test_whether_a_new_revision_is_being_rolled_out(kind, given, expected):
    assert object_projection.workload(kind, controller(kind, **given)).is_rolling_out is expected


def test_a_deployment_with_surplus_pods_of_an_old_revision_is_rolling_out():
    found = controller("Deployment")
    found = msgspec.structs.replace(
        found, status=object_projection.WorkloadStatus(1, replicas=4, updated_replicas=3)
    )
    assert object_projection.workload("Deployment", found).is_rolling_out


def test_a_replica_set_counts_as_its_deployment_says():
    above = object_projection.workload(
        "Deployment", controller("Deployment", generation=2, replicas=9)
    )
    below = object_projection.replica_set(controller("ReplicaSet", owner="Deployment"))
    alone = object_projection.replica_set(controller("ReplicaSet", owner="Rollout"))
    assert (below.owner, alone.owner) == ("uid-Deployment", "")
    found = object_projection.resolved([above, below])
    assert found["uid-ReplicaSet"] == objects.Workload(
        "uid-ReplicaSet", "ReplicaSet", "shop/web", 9, "uid-Deployment", is_rolling_out=True
    )
    assert object_projection.resolved([below])["uid-ReplicaSet"].replicas == 3


def test_old_revisions_without_pods_are_left_out():
    empty = {"replicas": 0}
    old = msgspec.structs.replace(
        controller("ReplicaSet", owner="Deployment", replicas=0),
        status=object_projection.WorkloadStatus(**empty),
    )
    assert object_projection.replica_set(old) is None


def test_without_replicas_there_is_one():
    raw = {"metadata": {"name": "web", "namespace": "shop"}}
    found = msgspec.convert(raw, object_projection.Controller)
    assert object_projection.workload("StatefulSet", found).replicas == 1


def test_a_budget():
    raw = {
        "metadata": {"name": "b", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 2},
    }
    read = object_projection.budget(msgspec.convert(raw, core.PodDisruptionBudget))
    assert read == objects.Budget("shop/b", {"matchLabels": {"app": "web"}}, 2)


def test_a_job():
    raw = {
        "metadata": {
            "name": "j",
            "uid": "u",
            "resourceVersion": "7",
            "creationTimestamp": MADE,
            "annotations": {"koordinator.sh/evict-trigger": "LowNodeLoad"},
        },
        "spec": {"podRef": {"namespace": "shop", "name": "web-0"}, "ttl": "5m"},
        "status": {"phase": "Running"},
    }
    found = object_projection.job(raw)
    assert (found.pod_key, found.created, found.version) == ("shop/web-0", MADE_AT, "7")
    assert (found.phase, found.is_open, found.leaves_at) == ("Running", True, -1.0)
    assert found.annotations == {"koordinator.sh/evict-trigger": "LowNodeLoad"}
    gone = object_projection.job(
        {**raw, "metadata": {**raw["metadata"], "deletionTimestamp": MADE}, "status": {}}
    )
    assert (gone.phase, gone.leaves_at) == ("Pending", MADE_AT)


def test_a_reservation():
    raw = {
        "metadata": {"name": "r", "uid": "u", "labels": {"a": "b"}},
        "spec": {"template": {}, "owners": [{"labelSelector": {}}], "ttl": "5m"},
    }
    found = object_projection.reservation(raw)
    assert (found.name, found.uid, found.labels) == ("r", "u", {"a": "b"})
    assert found.raw.spec.ttl == 300


def test_a_budget_with_thousands_of_values_holds_no_round_up():
    values = [f"value-{number:06}" for number in range(1000, 60_000)]
    expression = {"key": "app", "operator": "NotIn", "values": values}
    raw = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchExpressions": [expression]}},
    }
    read = object_projection.budget(msgspec.convert(raw, core.PodDisruptionBudget))
    pods = [builders.pod(f"p{at}", labels={"app": f"value-{at:06}"}) for at in range(1000)]
    with processor_time.below(0.1):
        assert all(budgets.covers(read, pod) for pod in pods)
