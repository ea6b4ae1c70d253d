"""What batch pods get in their groups."""

import msgspec
import pytest

from agent import edits, state
from agent.hooks import batch_resources
from api import core

SHARES, QUOTA, MEMORY = edits.Role.CPU_SHARES, edits.Role.CPU_QUOTA, edits.Role.MEMORY_LIMIT
ASKED = {"kubernetes.io/batch-cpu": "2000", "kubernetes.io/batch-memory": "1Gi"}


def values(decision):
    return {(edit.role, edit.group): edit.value for edit in decision.wanted}


@pytest.fixture
def batch(placed):
    placed.quality, placed.kubernetes_qos = "BE", "BestEffort"
    placed.requests = placed.limits = ASKED
    return placed


def test_pods_and_containers_get_what_they_ask_for(batch):
    now = state.NodeState(at=0, pods=(batch(),))
    found = batch_resources.reconcile(now, batch_resources.Rule())
    assert values(found) == {
        (role, group): value
        for group in ("a", "a/app")
        for role, value in ((SHARES, "2048"), (QUOTA, "200000"), (MEMORY, str(1 << 30)))
    }
    assert found.reason == "batch resources of 1 pods"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"quality": "LS"}, None),
        ({"limits": {}}, ("-1", "-1")),
        ({"group": ""}, None),
    ],
    ids=["not best effort", "no limit", "no group"],
)
def test_what_else_a_pod_may_be(batch, changes, expected):
    now = state.NodeState(at=0, pods=(batch(**changes),))
    found = values(batch_resources.reconcile(now, batch_resources.Rule()))
    pair = (found[QUOTA, "a"], found[MEMORY, "a"]) if (QUOTA, "a") in found else None
    assert pair == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (batch_resources.Rule(limited_above=True), -1),
        (batch_resources.Rule(ratio=1.5), 133334),
        (batch_resources.Rule(ratio=0.8), 200000),
    ],
    ids=["one quota for all", "fast cpus", "slow cpus"],
)
def test_quotas_follow_the_node(rule, expected):
    assert batch_resources.quota(2000, rule) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, None),
        ({"kubernetes.io/batch-cpu": "500"}, "50000"),
        ({"kubernetes.io/batch-cpu": "4000"}, "200000"),
    ],
    ids=["nothing of its own", "its own", "no more than the pod"],
)
def test_a_sidecar_has_what_it_asks_for_itself(batch, asked, expected):
    resources = core.ResourceRequirements(requests=asked, limits=asked)
    sidecar = state.ContainerState(
        "side", "a/side", core.Container(name="side", resources=resources), initial=True
    )
    pod = batch()
    pod = msgspec.structs.replace(pod, containers=(*pod.containers, sidecar))
    found = values(
        batch_resources.reconcile(state.NodeState(at=0, pods=(pod,)), batch_resources.Rule())
    )
    assert found.get((QUOTA, "a/side")) == expected
    # It is not counted in what the pod has.
    assert found[QUOTA, "a"] == "200000"


def test_an_unreadable_annotation_says_nothing(batch):
    key = "node.koordinator.sh/extended-resource-spec"
    pod = batch(requests={}, limits={}, annotations={key: "{"}).pod
    assert batch_resources.extended(pod) is None
