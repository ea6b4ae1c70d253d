"""Pods in operating mode act as Reservations of their own namespace and keep nothing twice."""

import json

import pytest

from api import names
from domain.reservations import operating
from tests.extender.clusters import reservation_cluster

MINE = [{"labelSelector": {"matchLabels": {"app": "mine"}}}]
INSUFFICIENT = "Insufficient cpu by node"
AFFINITY = {names.ANNOTATION_RESERVATION_AFFINITY: {"name": "holder"}}


@pytest.fixture
def cluster():
    """A node of 10 cpus, and another one that is empty."""
    made = reservation_cluster.ReservationCluster()
    for name in ("n1", "n2"):
        made.node(name)
    return made


def operates(cluster, cpu="4", *, ready="True", phase="Running", mode="Reservation", **more):
    """Let the watch show a pod in operating mode on the first node."""
    owners, notes = more.pop("owners", MINE), more.pop("annotations", {})
    text = owners if isinstance(owners, str) else json.dumps(owners)
    labels = {names.LABEL_OPERATING_MODE: mode, **more.pop("labels", {})}
    raw = cluster.raw(
        "holder", cpu, app="holder", node="n1", labels=labels,
        annotations={names.ANNOTATION_RESERVATION_OWNERS: text, **notes}, **more,
    )  # fmt: skip
    raw["status"] = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    raw["metadata"]["deletionTimestamp"] = more.get("leaving")
    cluster.show("holder", raw)


def test_an_owner_prefers_its_node_and_is_recorded_and_the_next_one_is_not(cluster):
    operates(cluster)
    assert cluster.scores("p", nodes=("n1", "n2"))["n1"] > 0
    assert cluster.into("own") == "holder"
    assert cluster.into("second") == ""
    cluster.release("own")
    assert cluster.into("third") == "holder"


def test_the_pod_itself_holds_its_room_and_nothing_is_kept_beside_it(cluster):
    operates(cluster, "4")
    # As kube-scheduler counts: six of ten are free, for all.
    assert cluster.judge("alien", "6", app="other") == ""
    assert cluster.judge("own", "6") == ""
    assert cluster.judge("own", "7") == INSUFFICIENT
    view = cluster.view()
    assert int(view.requested[view.rows["n1"], 0]) == 4000


def test_an_affinity_finds_it_by_its_name_and_not_elsewhere(cluster):
    operates(cluster)
    found = cluster.judged("own", nodes=("n1", "n2"), annotations=AFFINITY)
    assert found == {"n1": "", "n2": "node(s) no reservations match reservation affinity"}


@pytest.mark.parametrize("pods", ["1", "2"])
def test_it_takes_one_place_for_a_pod_of_its_node(pods):
    cluster = reservation_cluster.ReservationCluster()
    cluster.node(pods=pods)
    operates(cluster)
    refusal = "" if pods == "2" else "Insufficient pods by node"
    assert cluster.judge("own") == refusal
    assert cluster.judge("alien", app="other") == refusal


NONE = {
    "not ready": {"ready": "False"},
    "not running": {"phase": "Pending"},
    "leaving": {"leaving": "2026-11-23T12:00:00Z"},
    "an ordinary pod": {"mode": "Runnable"},
    "no owners": {"owners": "[]"},
    "owners that cannot be read": {"owners": "[{"},
    "an owner of no kind": {"owners": [{}]},
    "too many owners": {"owners": MINE * (operating.MOST_OWNERS + 1)},
    "owners that are too long": {"owners": json.dumps(MINE) + " " * operating.LONGEST},
    "taken already": {
        "annotations": {names.ANNOTATION_RESERVATION_CURRENT_OWNER: {"name": "first"}}
    },
}


@pytest.mark.parametrize("more", NONE.values(), ids=NONE)
def test_it_offers_nothing_otherwise(cluster, more):
    operates(cluster, **more)
    assert cluster.into("own") == ""
    assert [one.id for one in cluster.books.cluster.claims_on("n1")] == ["uid-holder", "uid-own"]


def test_an_owner_that_cannot_be_read_is_none(cluster):
    operates(cluster, annotations={names.ANNOTATION_RESERVATION_CURRENT_OWNER: "{"})
    assert cluster.into("own") == "holder"


@pytest.mark.parametrize(
    "owners",
    [
        pytest.param(MINE, id="by label"),
        pytest.param([{"object": {"namespace": "victim", "name": "own"}}], id="by name"),
        pytest.param([{"labelSelector": {}}], id="everything"),
    ],
)
def test_pods_of_other_namespaces_are_never_its_owners(cluster, owners):
    operates(cluster, owners=owners)
    assert cluster.into("own", namespace="victim") == ""


def test_one_is_no_owner_of_another(cluster):
    operates(cluster)
    assert cluster.into("own", labels={names.LABEL_OPERATING_MODE: "Reservation"}) == ""


@pytest.mark.parametrize("end", ["deleted", "no longer ready", "no longer in operating mode"])
def test_it_ends_with_its_pod_and_comes_back_with_it(cluster, end):
    operates(cluster)
    if end == "deleted":
        cluster.release("holder")
    else:
        operates(cluster, **({"ready": "False"} if "ready" in end else {"mode": "Runnable"}))
    assert cluster.into("own") == ""
    operates(cluster)
    assert cluster.into("second") == "holder"


STAND_IN = {names.LABEL_STAND_IN: "new"}
CONFLICT = "node(s) reservation allocate policy conflict"


@pytest.mark.parametrize(
    ("there", "policy", "refusal"),
    [
        pytest.param({}, "Default", "", id="two without a policy"),
        pytest.param({}, "Aligned", CONFLICT, id="a named one beside one without"),
        pytest.param({"allocatePolicy": "Aligned"}, "Default", CONFLICT, id="one without beside"),
        pytest.param({"allocatePolicy": "Aligned"}, "Restricted", "", id="two named ones"),
        pytest.param({"preAllocation": True}, "Aligned", "", id="pre-allocation is Restricted"),
        pytest.param({"unschedulable": True}, "Aligned", "", id="one that takes no owners"),
        pytest.param({"phase": "Waiting"}, "Aligned", "", id="one that waits for pods"),
    ],
)
def test_reservations_with_and_without_a_policy_are_on_different_nodes(
    cluster, there, policy, refusal
):
    cluster.reservation("r", **there)
    notes = {names.ANNOTATION_STAND_IN_POLICY: policy}
    found = cluster.judged("new", nodes=("n1", "n2"), labels=STAND_IN, annotations=notes)
    assert found == {"n1": refusal, "n2": ""}
    # Only what stands in for a Reservation is asked.
    assert cluster.judge("own", annotations=notes) == ""


@pytest.mark.parametrize(("policy", "refusal"), [("Default", CONFLICT), ("Aligned", "")])
def test_a_pod_in_operating_mode_counts_as_aligned(cluster, policy, refusal):
    operates(cluster)
    notes = {names.ANNOTATION_STAND_IN_POLICY: policy}
    assert cluster.judge("new", labels=STAND_IN, annotations=notes) == refusal
