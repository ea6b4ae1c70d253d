"""Targets are nodes that the scheduler would take, and each move counts for the next pod."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.koordinator import devices
from descheduler.framework import protocols
from descheduler.placement import fork_targets
from domain.devices import inventory
from extender.state import deltas
from tests.descheduler.placement import moving_cluster
from tests.extender.clusters import device_cluster
from tests.extender.conftest import NOW

TAINT = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
DB = {"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"}


@pytest.fixture
def cluster():
    found = moving_cluster.MovingCluster()
    found.nodes(3, cpu="8")
    return found


def node_of(found):
    assert isinstance(found, protocols.Target), found
    return found.node


def test_the_node_with_the_largest_free_share_takes_the_pod(cluster):
    pod = cluster.bound("a", "n0")
    cluster.bound("b", "n1", cpu="2")
    assert node_of(cluster.targets().target(pod, None, ())) == "n2"


def test_a_node_that_reports_less_load_comes_first(cluster):
    cluster.busy("n1", "1")
    cluster.busy("n2", "4")
    pod = cluster.bound("a", "n0")
    assert node_of(cluster.targets().target(pod, None, ())) == "n1"


@pytest.mark.parametrize(
    ("among", "without", "expected"),
    [
        pytest.param(None, ("n2",), "n1", id="one-is-excluded"),
        pytest.param(("n0", "n1"), (), "n1", id="its-own-never"),
        pytest.param(("n2", "unknown"), ("unknown",), "n2", id="names-without-a-node"),
    ],
)
def test_candidates_are_those_that_were_asked_for(cluster, among, without, expected):
    pod = cluster.bound("a", "n0")
    cluster.bound("b", "n1")
    assert node_of(cluster.targets().target(pod, among, without)) == expected


@pytest.mark.parametrize("among", [("n0",), (), ("gone",)], ids=["its-own", "none", "unknown"])
def test_without_candidates_there_is_no_target(cluster, among):
    pod = cluster.bound("a", "n0")
    found = cluster.targets().target(pod, among, ())
    assert found == protocols.NoTarget(fork_targets.NO_CANDIDATES)


def test_a_pod_that_the_scheduler_does_not_see_there_has_no_target(cluster):
    pod = cluster.bound("a", "n0")
    targets = cluster.targets()
    for one in (
        msgspec.structs.replace(pod, node="n1"),
        msgspec.structs.replace(pod, uid="other"),
    ):
        assert targets.target(one, None, ()) == protocols.NoTarget(fork_targets.UNKNOWN)
        targets.remove(msgspec.structs.replace(pod, uid="other"))
        targets.move(msgspec.structs.replace(pod, uid="other"), "n1")
    assert node_of(targets.target(pod, None, ())) == "n1"


def test_selectors_taints_and_room_are_told_with_numbers(cluster):
    cluster.nodes(1, first=3, labels={"disk": "ssd"})
    cluster.nodes(1, first=4, labels={"disk": "ssd"}, taints=[TAINT])
    cluster.nodes(1, first=5, labels={"disk": "ssd"}, cordoned=True)
    pod = cluster.bound("a", "n0", nodeSelector={"disk": "ssd"})
    other = cluster.bound("b", "n0", cpu="2", nodeSelector={"disk": "ssd"}, tolerations=[DB])
    targets = cluster.targets()
    assert node_of(targets.target(pod, None, ())) == "n3"
    assert node_of(targets.target(other, None, ("n3",))) == "n4"
    found = targets.target(pod, None, ("n3",))
    assert found.reason == f"0/4 nodes are available: 4 {fork_targets.UNSUITABLE}"
    cluster.bound("full", "n3", cpu="5")
    assert "1 Insufficient cpu" in cluster.targets().target(pod, None, ()).reason


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = {"topologyKey": "kubernetes.io/hostname"}


def apart(app):
    term = {**HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def near(app):
    term = {**HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {REQUIRED: [term]}}


@pytest.mark.parametrize(
    ("pod", "others", "expected"),
    [
        pytest.param(
            {"affinity": apart("db")},
            {"labels": {"app": "db"}},
            "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules",
            id="the-pod-repels-others",
        ),
        pytest.param(
            {"labels": {"app": "web"}},
            {"affinity": apart("web")},
            "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules",
            id="others-repel-the-pod",
        ),
        pytest.param(
            {"affinity": near("cache")},
            {"labels": {"app": "db"}},
            "0/2 nodes are available: 2 node(s) didn't match pod affinity rules",
            id="nothing-to-be-near",
        ),
    ],
)
def test_no_node_takes_a_pod_against_affinity_between_pods(cluster, pod, others, expected):
    asked = cluster.bound("a", "n0", **pod)
    for at in (1, 2):
        cluster.bound(f"other{at}", f"n{at}", **others)
    assert cluster.targets().target(asked, None, ()) == protocols.NoTarget(expected)


def test_what_moves_repels_and_attracts_where_it_is_then(cluster):
    web = {"labels": {"app": "web"}, "affinity": apart("web")}
    first, second = (cluster.bound(f"w{at}", f"n{at}", **web) for at in range(2))
    follower = cluster.bound("follower", "n0", affinity=near("web"))
    targets = cluster.targets()
    assert node_of(targets.target(first, None, ())) == "n2"
    assert node_of(targets.target(follower, None, ())) == "n1"
    mark = targets.mark()
    targets.move(second, "n2")
    assert node_of(targets.target(first, None, ())) == "n1"
    assert node_of(targets.target(follower, None, ())) == "n2"
    targets.remove(msgspec.structs.replace(second, node="n2"))
    assert isinstance(targets.target(follower, None, ()), protocols.NoTarget)
    targets.undo(mark)
    assert node_of(targets.target(first, None, ())) == "n2"
    assert node_of(targets.target(follower, None, ())) == "n1"


def test_what_no_column_counts_is_looked_at_too(cluster):
    cluster.nodes(2, first=3, pods="1", **{"example.com/card": "2"})
    cluster.bound("there", "n3")
    pod = cluster.bound("a", "n0", requests={"example.com/card": "2"})
    assert node_of(cluster.targets().target(pod, None, ())) == "n4"
    cluster.bound("here", "n4")
    reason = cluster.targets().target(pod, None, ()).reason
    assert "2 Too many pods" in reason
    assert "2 Insufficient example.com/card" in reason


def test_moves_take_room_and_give_it_back(cluster):
    pods = [cluster.bound(f"p{number}", "n0", cpu="4") for number in range(2)]
    third = cluster.bound("third", "n1", cpu="8")
    targets = cluster.targets()
    for pod in pods:
        assert node_of(targets.target(pod, ("n2",), ())) == "n2"
        assert isinstance(targets.target(third, None, ("n2",)), protocols.NoTarget)
        targets.move(pod, "n2")
    assert node_of(targets.target(third, None, ())) == "n0"
    targets.remove(pods[0])
    assert isinstance(targets.target(third, ("n2",), ()), protocols.NoTarget)
    targets.remove(pods[1])
    assert node_of(targets.target(third, ("n2",), ())) == "n2"


def test_moves_are_taken_back_to_a_mark(cluster):
    pods = [cluster.bound(f"p{number}", "n0", cpu="2") for number in range(3)]
    targets = cluster.targets()
    targets.move(pods[0], "n1")
    mark, before = targets.mark(), targets._fork.fingerprint()
    targets.move(pods[1], "n1")
    targets.remove(pods[2])
    assert targets._fork.fingerprint() != before
    targets.undo(mark)
    assert targets._fork.fingerprint() == before
    targets.undo(0)
    assert targets._fork.fingerprint() == cluster.cluster.fork().fingerprint()


def test_what_a_pod_would_be_given_is_told(cluster):
    cluster.nodes(1, first=3, **{names.NVIDIA_GPU: "8"})
    raw = device_cluster.eight("n3")
    told = inventory.read(devices.read_device(raw))
    cluster.cluster.apply(deltas.ObjectDelta(deltas.DEVICE, "n3", None, told, node="n3"))
    pod = cluster.bound("a", "n0", requests={names.NVIDIA_GPU: "2"})
    found = cluster.targets().target(pod, None, ())
    assert found.node == "n3"
    assert list(found.held.devices["gpu"].values()) == [100, 100]


def test_a_pod_that_has_moved_is_asked_about_as_of_its_new_node(cluster):
    pod = cluster.bound("a", "n0")
    targets = cluster.targets()
    targets.move(pod, "n1")
    assert targets.target(pod, None, ()) == protocols.NoTarget(fork_targets.UNKNOWN)
    again = msgspec.structs.replace(pod, node="n1")
    assert node_of(targets.target(again, ("n0",), ())) == "n0"


def test_members_of_gangs_are_judged_without_a_plan_of_their_gang(cluster):
    pod = cluster.bound("a", "n0", gang="team")
    assert node_of(cluster.targets().target(pod, None, ())) == "n1"


def test_asking_and_moving_leave_the_state_as_it_is(cluster):
    pods = [cluster.bound(f"p{number}", "n0", cpu="2") for number in range(4)]
    before = cluster.cluster.fingerprint()
    targets = cluster.targets()
    for pod in pods:
        targets.move(pod, node_of(targets.target(pod, None, ())))
    assert cluster.cluster.fingerprint() == before


def test_the_filter_verb_takes_what_leaves_to_its_target(cluster):
    """The answer is a node that a filter call would offer for the successor of the pod."""
    for number, load in enumerate(("7.9", "1", "7.9")):
        cluster.busy(f"n{number}", load)
    pod = cluster.bound("a", "n0", cpu="4")
    found = node_of(cluster.targets().target(pod, None, ()))
    names = ["n0", "n1", "n2"]
    raw = cluster.make.pod("successor", requests={"cpu": "4", "memory": "1Gi"})
    view = cluster.cluster.view()
    asked = cluster.pipeline.cycle(cluster.request(raw), view)
    rows = moving_cluster.rows(view, names)
    codes = cluster.pipeline.filter(asked, view, rows, NOW).codes.tolist()
    assert [name for name, code in zip(names, codes, strict=True) if not code] == ["n1"]
    assert found == "n1"


def test_nodes_are_ordered_by_name_where_all_else_is_equal():
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        cluster = moving_cluster.MovingCluster()
        for number in order:
            cluster.nodes(1, first=number)
        pod = cluster.bound("a", "n0")
        assert node_of(cluster.targets().target(pod, None, ())) == "n1"


def test_kinds_of_requirements_that_are_remembered_are_bounded(cluster, monkeypatch):
    monkeypatch.setattr(fork_targets, "_MOST_KINDS", 2)
    pods = [
        cluster.bound(f"p{number}", "n0", cpu="1", tolerations=[{"key": f"k{number}"}])
        for number in range(4)
    ]
    targets = cluster.targets()
    assert {node_of(targets.target(pod, None, ())) for pod in pods} == {"n1"}
    assert len(targets._eligible) <= 2


SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=12)


@given(sizes=SIZES, steps=st.lists(st.integers(0, 30), max_size=20))
def test_no_node_takes_more_than_it_has(sizes, steps):
    cluster = moving_cluster.MovingCluster()
    cluster.nodes(4, cpu="8")
    free = dict.fromkeys(range(4), 8)
    pods = []
    for number, size in enumerate(sizes):
        node = next((name for name, left in free.items() if left >= size), None)
        if node is not None:
            free[node] -= size
            pods.append(cluster.bound(f"p{number}", f"n{node}", cpu=str(size)))
    targets = cluster.targets()
    fork = targets._fork
    for step in steps:
        if not pods:
            break
        place = step % len(pods)
        pod = pods[place]
        found = targets.target(pod, None, ())
        if isinstance(found, protocols.Target):
            assert found.node != pod.node
            targets.move(pod, found.node)
            pods[place] = msgspec.structs.replace(pod, node=found.node)
        elif step % 5 == 0:
            targets.remove(pod)
            del pods[place]
    view = fork.view()
    assert (view.requested <= view.allocatable).all()
    placed = {uid: record.node for uid, record in fork.placements().items()}
    assert placed == {pod.uid: pod.node for pod in pods}
    assert fork.fingerprint() == fork.rebuilt().fingerprint()
