"""Which new pods wait behind the gate of their quota, and when somebody opens it."""

import copy

import pytest

from api import names
from domain.quota.tree import quota_trees
from webhook import gates, pods, review

TREES = quota_trees.trees(
    [
        quota_trees.Member("team", "default", namespaces=("bound",)),
        quota_trees.Member(names.DEFAULT_QUOTA, "koordinator-system"),
        quota_trees.Member("kube-system", "kube-system"),
    ],
    [],
)
PICTURE = review.Picture((), {}, {}, lambda _: 0, trees=TREES, opens_gates=True)
GATE = {"name": names.GATE_QUOTA}
LABELLED = {names.LABEL_QUOTA_NAME: "team"}
DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}


def pod(labels=LABELLED, owners=None, **spec):
    metadata = {"name": "p", "labels": labels}
    if owners:
        metadata["ownerReferences"] = owners
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}], **spec}}


def gates_of(body, namespace="default", picture=PICTURE, operation="CREATE"):
    decision = pods.mutate(review.Review(operation, namespace, body), picture)
    return (decision.object or body)["spec"].get("schedulingGates", [])


WAITING = {
    "by label": (pod(), "default"),
    "by namespace": (pod({}), "bound"),
    "of a replica set": (pod(owners=[{**DAEMON, "kind": "ReplicaSet"}]), "default"),
    "that says it is of a DaemonSet": (pod(owners=[{**DAEMON, "controller": False}]), "default"),
    "of high priority": (pod(priority=1_000_000_000), "default"),
}


@pytest.mark.parametrize(("body", "namespace"), WAITING.values(), ids=WAITING)
def test_pods_of_a_quota_wait(body, namespace):
    assert gates_of(body, namespace) == [GATE]


PASSING = {
    "without a quota": (pod({}), "default"),
    "of an unknown quota": (pod({names.LABEL_QUOTA_NAME: "gone"}), "default"),
    "of the default quota": (pod({names.LABEL_QUOTA_NAME: names.DEFAULT_QUOTA}), "default"),
    "of the system": (pod({}), "kube-system"),
    "of ours": (pod(), names.NAMESPACE),
    "with a node": (pod(nodeName="n"), "default"),
    "of a DaemonSet": (pod(owners=[DAEMON]), "default"),
    "that is critical": (pod(priority=2_000_001_000), "default"),
    "that will be critical": (pod(priorityClassName="system-node-critical"), "default"),
}


@pytest.mark.parametrize(("body", "namespace"), PASSING.values(), ids=PASSING)
def test_other_pods_are_let_pass(body, namespace):
    assert gates_of(body, namespace) == []


def test_a_gate_is_added_once_and_beside_those_of_others():
    other = {"name": "example.com/wait"}
    assert gates_of(pod(schedulingGates=[other])) == [other, GATE]
    assert gates_of(pod(schedulingGates=[GATE, other])) == [GATE, other]


def test_no_gate_is_added_that_nobody_opens_or_later():
    assert gates_of(pod(), picture=PICTURE.but(opens_gates=False)) == []
    assert gates_of(pod(), operation="UPDATE") == []
    without = PICTURE.but(gates=frozenset({gates.NO_DEFAULT_QUOTA}))
    assert gates_of(pod({}), "bound", without) == []


HOSTILE = [
    None, True, 0, -1, 2**70, 1.5, "", "x" * 10_000, [], {}, [None], [[]], {"name": 1},
    [{"name": names.GATE_QUOTA, "more": {}}], [{"controller": True, "kind": []}],
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize(
    "path",
    [("spec", "schedulingGates"), ("spec", "priority"), ("spec", "priorityClassName"),
     ("spec", "nodeName"), ("metadata", "ownerReferences"), ("metadata", "labels"),
     ("metadata", "labels", names.LABEL_QUOTA_NAME)],
    ids="/".join,
)  # fmt: skip
def test_nothing_a_tenant_writes_makes_it_fail(path, value):
    body = copy.deepcopy(pod())
    place = body
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    decision = pods.mutate(review.Review("CREATE", "default", body), PICTURE)
    if decision.object is not None:
        again = pods.mutate(review.Review("CREATE", "default", decision.object), PICTURE)
        assert again.object in (None, decision.object)


DENYING = PICTURE.but(opens_gates=False, charges_quotas=True)


def charge(body, namespace="default", old=None, picture=DENYING, **more):
    operation = "UPDATE" if old else "CREATE"
    asked = review.Review(operation, namespace, body, old, **more)
    return pods.validation_needs(asked, picture).charge


def asking(labels=LABELLED, **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    return pod(labels, containers=[container], **spec)


def test_a_new_pod_is_charged_to_its_quota():
    team = TREES.by_name["team"]
    requests = {"pods": 1, "cpu": 2000, "memory": 1 << 30}
    assert charge(asking()) == review.Charge(team, requests, True)
    assert charge(asking({}), "bound") == review.Charge(team, requests, True)
    assert charge(asking(), dry_run=True) == review.Charge(team, requests, False)
    assert charge(asking(nodeName="n")) is not None, "no scheduler looks at it"
    assert charge(asking(), picture=PICTURE) is None
    labels = {**LABELLED, names.LABEL_QOS: "BE"}
    assert charge(asking(labels)) is None, "it is refused anyway"


@pytest.mark.parametrize(
    ("body", "namespace"),
    [case for name, case in PASSING.items() if name != "with a node"],
    ids=[name for name in PASSING if name != "with a node"],
)
def test_pods_that_never_wait_are_never_charged(body, namespace):
    assert charge(body, namespace) is None


def test_a_pod_is_charged_again_when_it_moves_to_another_quota():
    plain, moved = asking({}), asking()
    assert charge(moved, old=plain) is not None
    assert charge(moved, old=asking()) is None
    assert charge(moved, "bound", old=plain) is None, "it was of this quota before"
    assert charge(plain, old=moved) is None


def test_what_the_quota_says_is_the_answer():
    text = "exceeded quota: ns/q, requested: cpu=2, used: cpu=1, limited: cpu=2"
    asked = review.Review("CREATE", "default", asking(), over_quota=text)
    refusal = pods.validate(asked, DENYING).refusal
    assert refusal == review.Refusal("quota", (text,), 403, ("exceeded",))
