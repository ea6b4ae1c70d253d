import pytest

from simulator.scheduler import intree, snapshot


@pytest.fixture
def view(node):
    made = snapshot.Snapshot()
    made.set_node(node("n"))
    made.set_node(node("m"))
    return made


@pytest.fixture
def info(pod_info):
    return pod_info("x", requests={"cpu": "1"})


def placed(pod, name):
    return intree.read_pod({**pod.raw, "spec": {**pod.raw["spec"], "nodeName": name}})


def used(view, name="n"):
    return view.nodes[name].used.get("cpu", 0)


def test_a_promise_counts_at_once_and_once(view, info):
    view.assume(info, "n")
    assert used(view) == 1000
    view.set_pod(placed(info, "n"))
    assert used(view) == 1000
    assert not view.assumed


def test_a_promise_can_be_taken_back(view, info):
    view.assume(info, "n")
    assert view.forget(info.uid)
    assert used(view) == 0
    assert not view.forget(info.uid)


def test_what_is_seen_cannot_be_taken_back(view, info):
    view.assume(info, "n")
    view.set_pod(placed(info, "n"))
    assert not view.forget(info.uid)
    assert used(view) == 1000


def test_the_truth_replaces_a_promise_for_another_node(view, info):
    view.assume(info, "n")
    view.set_pod(placed(info, "m"))
    assert (used(view, "n"), used(view, "m")) == (0, 1000)


def test_a_removed_pod_leaves_nothing(view, info):
    view.assume(info, "n")
    view.nominate(info, "m")
    view.remove_pod(info.uid)
    assert used(view) == 0
    assert not view.assumed
    assert view.nominated("m", 0) == []


def test_pods_may_be_known_before_their_node(view, info, node):
    view.set_pod(placed(info, "late"))
    view.set_node(node("late"))
    assert used(view, "late") == 1000


def test_a_node_that_comes_back_still_has_its_pods(view, info, node):
    view.set_pod(placed(info, "n"))
    view.remove_node("n")
    assert "n" not in view.nodes
    view.set_node(node("n"))
    assert used(view) == 1000


def test_promised_room_is_kept_from_the_less_important(view, pod_info):
    important = pod_info("y", priority=10)
    view.nominate(important, "n")
    assert view.nominated("n", 5) == [important]
    assert view.nominated("n", 11) == []
    assert view.nominated("m", 5) == []
    view.nominate(important, "")
    assert view.nominated("n", 5) == []
