"""Reservations in the extender: who may use what they keep, and what is left to all others."""

import pytest

from api import names
from tests.extender.clusters import reservation_cluster

AFFINITY = names.ANNOTATION_RESERVATION_AFFINITY
RESTRICTED = {"allocatePolicy": "Restricted"}
MINE = {"labelSelector": {"matchLabels": {"app": "mine"}}}
INSUFFICIENT = "Insufficient cpu by node"
NO_MATCH = "node(s) no reservations match reservation affinity"


@pytest.fixture
def cluster():
    """A node of 10 cpus with pods of 2, as in all examples."""
    made = reservation_cluster.ReservationCluster()
    made.node()
    made.put("plain", "2", app="other")
    return made


@pytest.mark.parametrize(
    ("cpu", "app", "more", "refusal", "into"),
    [
        pytest.param("2", "other", {}, "", "", id="not an owner: what is free"),
        pytest.param("3", "other", {}, INSUFFICIENT, None, id="not an owner: not what is kept"),
        pytest.param("6", "mine", {}, "", "r", id="an owner: the reservation"),
        pytest.param("7", "mine", {}, "", "r", id="an owner: what is free besides"),
        pytest.param("9", "mine", {}, INSUFFICIENT, None, id="an owner: no more than both"),
        pytest.param("6", "mine", RESTRICTED, "", "r", id="restricted: what is reserved"),
        pytest.param("7", "mine", RESTRICTED, INSUFFICIENT, None, id="restricted: no more"),
    ],
)
def test_what_is_kept_goes_to_owners_alone(cluster, cpu, app, more, refusal, into):
    cluster.reservation("r", requests={"cpu": "6"}, **more)
    assert cluster.judge("p", cpu, app=app) == refusal
    if not refusal:
        assert cluster.into("p", cpu, app=app) == into


def test_a_pod_takes_the_remainder_of_one_reservation_only(cluster):
    for name in ("r1", "r2"):
        cluster.reservation(name, requests={"cpu": "3"})
    assert cluster.judge("six", "6") == INSUFFICIENT
    assert cluster.into("five", "5") in ("r1", "r2")


def test_an_owner_of_a_full_reservation_uses_what_is_free_and_becomes_no_owner(cluster):
    cluster.reservation("r", requests={"cpu": "6"}, **RESTRICTED)
    assert cluster.into("first", "6") == "r"
    assert cluster.into("second", "2") == ""
    notes = {AFFINITY: {"name": "r"}}
    assert cluster.judge("third", "1", annotations=notes) == "Reservation(s) Insufficient cpu"


def test_what_an_owner_takes_beyond_its_reservation_is_not_given_away_a_second_time(cluster):
    cluster.reservation("r", requests={"cpu": "6"})
    assert cluster.into("big", "7") == "r"
    assert cluster.judge("other", "1", app="other") == ""
    # It keeps nothing now. But kube-scheduler may see its owner leave before this watch does, and
    # would give away what goes back to the reservation.
    assert cluster.judge("more", "2", app="other") == INSUFFICIENT


def test_what_an_owner_leaves_goes_back_to_its_reservation(cluster):
    cluster.reservation("r", requests={"cpu": "6"}, **RESTRICTED)
    cluster.place("first", "6")
    assert cluster.judge("second", "6") == INSUFFICIENT
    cluster.release("first")
    assert cluster.judge("other", "3", app="other") == INSUFFICIENT
    assert cluster.into("second", "6") == "r"


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_nothing_remains_of_a_reservation_that_is_no_longer_available(cluster, phase):
    cluster.reservation("r", requests={"cpu": "6"})
    cluster.reservation("r", requests={"cpu": "6"}, phase=phase)
    assert cluster.judge("other", "8", app="other") == ""
    assert cluster.into("mine", "8") == ""


def test_the_first_owner_uses_a_reservation_up_where_it_is_allocated_once(cluster):
    cluster.reservation("r", requests={"cpu": "6"}, once=True)
    assert cluster.into("first", "1") == "r"
    assert cluster.into("second", "1") == ""
    # Until the manager has seen the owner, the rest stays where it is.
    assert cluster.judge("other", "2", app="other") == INSUFFICIENT


def test_every_reservation_takes_a_pod_slot_from_those_that_may_not_use_it():
    cluster = reservation_cluster.ReservationCluster()
    cluster.node(pods="2")
    cluster.reservation("r", requests={"cpu": "1"})
    cluster.put("plain", "1", app="other")
    assert cluster.judge("other", "1", app="other") == "Insufficient pods by node"
    assert cluster.into("mine", "1") == "r"


def replica_set(uid):
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid}


def controller(**parts):
    empty = {"apiVersion": "", "kind": "", "name": "", "uid": ""}
    return [{"controller": {**empty, **parts}}]


OWNERS = [
    pytest.param([MINE], {}, True, id="selector"),
    pytest.param([{"object": {"name": "p", "namespace": "default"}}], {}, True, id="object"),
    pytest.param([{"object": {"uid": "uid-p"}}], {}, True, id="object by uid"),
    pytest.param([{"object": {"name": "q"}}], {}, False, id="another object"),
    pytest.param(
        controller(name="web", kind="ReplicaSet", apiVersion="apps/v1"),
        {"references": [replica_set("1")]},
        True,
        id="controller",
    ),
    pytest.param(
        controller(uid="1"), {"references": [replica_set("2")]}, False, id="another controller"
    ),
    pytest.param(
        [
            {
                "labelSelector": {
                    "matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["other"]}]
                }
            }
        ],
        {},
        True,
        id="selector that no word of a pod names",
    ),
    pytest.param([{**MINE, "object": {"name": "q"}}], {}, False, id="only one part matches"),
    pytest.param([{"object": {"name": "q"}}, MINE], {}, True, id="one of several"),
]


@pytest.mark.parametrize(("owners", "pod", "uses"), OWNERS)
def test_owners_are_found_by_object_controller_and_selector(cluster, owners, pod, uses):
    cluster.reservation("r", requests={"cpu": "6"}, owners=owners)
    assert cluster.judge("p", "6", **pod) == ("" if uses else INSUFFICIENT)


WISHES = [
    pytest.param({}, {"name": "r"}, "", id="by name"),
    pytest.param({}, {"name": "other"}, NO_MATCH, id="by another name"),
    pytest.param({}, {"reservationSelector": {"pool": "a"}}, "", id="by a label"),
    pytest.param({}, {"reservationSelector": {"pool": "b"}}, NO_MATCH, id="by another label"),
    pytest.param({}, {"reservationSelector": {"zone": "z1"}}, "", id="by a label of the node"),
    pytest.param(
        {"taints": [{"key": "k", "effect": "NoSchedule"}]}, {}, NO_MATCH, id="not tolerated"
    ),
    pytest.param(
        {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        {"tolerations": [{"key": "k", "operator": "Exists"}]},
        "",
        id="tolerated",
    ),
    pytest.param(
        {"taints": [{"key": "k", "effect": "NoSchedule"}]}, {"name": "r"}, "", id="by name, tainted"
    ),
    pytest.param({"unschedulable": True}, {}, NO_MATCH, id="unschedulable"),
]


@pytest.mark.parametrize(("spec", "affinity", "refusal"), WISHES)
def test_a_pod_with_a_reservation_affinity_uses_what_it_selects_or_nothing(spec, affinity, refusal):
    cluster = reservation_cluster.ReservationCluster()
    cluster.node(labels={"zone": "z1"})
    cluster.node("n2")
    cluster.reservation("r", labels={"pool": "a"}, **spec)
    notes = {AFFINITY: affinity}
    assert cluster.judged("p", nodes=("n1", "n2"), annotations=notes) == {
        "n1": refusal,
        "n2": NO_MATCH,
    }
    if not refusal:
        assert cluster.into("p", annotations=notes) == "r"


def test_an_affinity_without_any_reservation_in_the_cluster_is_refused(cluster):
    assert cluster.judge("p", annotations={AFFINITY: {"name": "r"}}) == NO_MATCH
    assert cluster.judge("q", annotations={AFFINITY: "{"}).startswith("reservation-affinity")


def test_a_pod_with_an_affinity_does_not_fall_back_on_the_node(cluster):
    cluster.reservation("r", requests={"cpu": "2"}, **RESTRICTED)
    notes = {AFFINITY: {"name": "r"}}
    assert cluster.judge("p", "3", annotations=notes) == "Reservation(s) Insufficient cpu"
    told = cluster.explained("p", "3", annotations=notes)
    assert "r: Reservation(s) Insufficient cpu, requested: 3000, used: 0, capacity: 2000" in told


@pytest.mark.parametrize(("cpu", "into"), [("4", "r"), ("3", "")], ids=["the same", "less"])
def test_exact_match_wants_what_is_reserved(cluster, cpu, into):
    cluster.reservation("r", requests={"cpu": "4"})
    exact = {names.ANNOTATION_EXACT_MATCH_RESERVATION: {"resourceNames": ["cpu"]}}
    assert cluster.into("p", cpu, annotations=exact) == into


def test_a_pod_that_ignores_reservations_takes_what_they_keep_and_owns_nothing(cluster):
    cluster.reservation("r", requests={"cpu": "6"})
    ignores = {names.LABEL_RESERVATION_IGNORED: "true"}
    assert cluster.into("p", "8", app="other", labels=ignores) == ""


def test_ports_of_the_node_are_kept_for_owners(cluster):
    cluster.reservation("r", host_ports=[8080])
    assert cluster.judge("other", host_ports=[80], app="other") == ""
    refused = cluster.judge("other", host_ports=[8080], app="other")
    assert refused == "node(s) ports that the pod listens on are kept by reservations"
    assert cluster.into("mine", host_ports=[8080]) == "r"
    # The owner listens on it now, which kube-scheduler sees by itself.
    assert cluster.judge("other", host_ports=[8080], app="other") == ""


def test_resources_without_a_column_are_kept_as_well():
    cluster = reservation_cluster.ReservationCluster()
    cluster.node(**{"example.com/slots": "4"})
    wanted = {"cpu": "1", "example.com/slots": "3"}
    cluster.reservation("r", requests=wanted)
    assert cluster.judge("other", requests=wanted, app="other") == "Insufficient resources by node"
    assert cluster.judge("plain", app="other") == ""
    assert cluster.into("mine", requests=wanted) == "r"


def test_nodes_with_a_reservation_for_the_pod_come_first_by_order_then_by_fullness():
    cluster = reservation_cluster.ReservationCluster()
    nodes = ("n1", "n2", "n3", "n4", "n5")
    for name in nodes:
        cluster.node(name)
    order = names.LABEL_RESERVATION_ORDER
    cluster.reservation("big", node="n1", requests={"cpu": "8"})
    cluster.reservation("small", node="n2", requests={"cpu": "4"})
    cluster.reservation("late", node="n3", requests={"cpu": "8"}, labels={order: "20"})
    cluster.reservation("early", node="n4", requests={"cpu": "8"}, labels={order: "10"})
    found = cluster.scores("p", "4", nodes=nodes)
    assert sorted(nodes, key=lambda node: -found[node]) == ["n4", "n3", "n2", "n1", "n5"]
    assert found["n5"] == 0
    assert set(cluster.scores("q", "4", app="other", nodes=nodes).values()) == {0}


def test_of_several_on_a_node_the_first_by_order_is_taken():
    cluster = reservation_cluster.ReservationCluster()
    cluster.node()
    order = names.LABEL_RESERVATION_ORDER
    cluster.reservation("full", requests={"cpu": "2"}, **RESTRICTED)
    cluster.reservation("second", requests={"cpu": "3"}, labels={order: "2"}, **RESTRICTED)
    cluster.reservation("first", requests={"cpu": "4"}, labels={order: "1"}, **RESTRICTED)
    assert [cluster.into(f"p{n}", "2") for n in range(4)] == ["first", "first", "second", "full"]


def test_the_stand_in_of_a_reservation_takes_room_beside_those_of_the_same_pods(cluster):
    """It carries the labels of the template, by which it would be an owner of its neighbour."""
    cluster.reservation("r", requests={"cpu": "6"})
    stand_in = {names.LABEL_STAND_IN: "another"}
    assert cluster.judge("stand-in", "3", labels=stand_in) == INSUFFICIENT
    assert cluster.into("stand-in", "2", labels=stand_in) == ""
