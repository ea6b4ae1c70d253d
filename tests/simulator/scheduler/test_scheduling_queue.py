import pytest

from simulator.scheduler import scheduling_queue
from simulator.scheduler.scheduling_queue import Happening


@pytest.fixture
def queue():
    return scheduling_queue.Queue(initial_backoff=1.0, max_backoff=4.0)


def parked(queue, key="a/x", by=(scheduling_queue.EXTENDER,), now=0.0):
    queue.add(key, 0, "")
    assert queue.pop(now) == key
    queue.park(key, by, now)


def test_priority_goes_before_age_and_age_before_arrival(queue):
    queue.add("a/young", 0, "2026-01-02")
    queue.add("a/old", 0, "2026-01-01")
    queue.add("a/later", 0, "2026-01-02")
    queue.add("a/high", 5, "2026-01-03")
    order = [queue.pop(0.0) for _ in range(5)]
    assert order == ["a/high", "a/old", "a/young", "a/later", None]


def test_a_pod_is_tried_once_at_a_time(queue):
    queue.add("a/x", 0, "")
    assert queue.pop(0.0) == "a/x"
    queue.add("a/x", 0, "")
    assert queue.pop(0.0) is None


@pytest.mark.parametrize("happening", list(Happening), ids=lambda h: h.name)
def test_anything_wakes_what_an_extender_refused(queue, happening):
    parked(queue)
    assert queue.pop(100.0) is None
    queue.happened(happening, 100.0)
    assert queue.pop(100.0) == "a/x"


@pytest.mark.parametrize(
    ("plugin", "happening", "wakes"),
    [
        pytest.param("NodeResourcesFit", Happening.POD_GONE, True, id="room by a pod"),
        pytest.param("NodeResourcesFit", Happening.NODE_CAPACITY, True, id="room by a node"),
        pytest.param("NodeResourcesFit", Happening.NODE_OTHER, False, id="annotation, no room"),
        pytest.param("NodeResourcesFit", Happening.OWN_CHANGE, False, id="nudge, no room"),
        pytest.param("NodeResourcesFit", Happening.POD_ADDED, False, id="less room"),
        pytest.param("TaintToleration", Happening.NODE_TAINTS, True, id="taint gone"),
        pytest.param("TaintToleration", Happening.POD_GONE, False, id="pod gone, taint stays"),
        pytest.param("TaintToleration", Happening.OWN_TOLERATIONS, True, id="toleration"),
        pytest.param("TaintToleration", Happening.OWN_CHANGE, False, id="nudge, taint stays"),
        pytest.param("NodeAffinity", Happening.NODE_LABELS, True, id="label"),
        pytest.param("NodeAffinity", Happening.NODE_CAPACITY, False, id="capacity, no label"),
        pytest.param("NodePorts", Happening.POD_GONE, True, id="port free"),
    ],
)
def test_in_tree_refusals_wait_for_what_helps(queue, plugin, happening, wakes):
    parked(queue, by=(plugin,))
    queue.happened(happening, 100.0)
    assert (queue.pop(100.0) == "a/x") is wakes


def test_a_nudge_wakes_one_pod_only(queue):
    parked(queue, "a/x")
    parked(queue, "a/y")
    queue.changed("a/x", Happening.OWN_CHANGE, 100.0)
    assert queue.pop(100.0) == "a/x"
    assert queue.pop(100.0) is None


def test_what_happens_during_an_attempt_is_not_lost(queue):
    queue.add("a/x", 0, "")
    queue.pop(0.0)
    queue.happened(Happening.POD_GONE, 0.0)
    queue.park("a/x", {"NodeResourcesFit"}, 0.0)
    assert queue.pop(0.0) == "a/x"


def test_what_happens_during_an_attempt_and_does_not_help_is_ignored(queue):
    queue.add("a/x", 0, "")
    queue.pop(0.0)
    queue.happened(Happening.NODE_LABELS, 0.0)
    queue.park("a/x", {"NodeResourcesFit"}, 0.0)
    assert queue.pop(0.0) is None


def test_a_change_during_an_attempt_is_not_lost(queue):
    queue.add("a/x", 0, "")
    queue.pop(0.0)
    queue.changed("a/x", Happening.OWN_CHANGE, 0.0)
    queue.park("a/x", {scheduling_queue.EXTENDER}, 0.0)
    assert queue.pop(0.0) == "a/x"


def test_errors_back_off_longer_each_time_and_stop_growing(queue):
    queue.add("a/x", 0, "")
    now = 0.0
    pauses = []
    for _ in range(5):
        assert queue.pop(now) == "a/x"
        queue.retry("a/x", now)
        pauses.append(queue.due_in(now))
        assert queue.pop(now) is None
        now += pauses[-1]
    assert pauses == [1.0, 2.0, 4.0, 4.0, 4.0]


def test_an_error_sits_out_its_back_off_even_when_nothing_else_is_to_do(queue):
    queue.add("a/x", 0, "")
    queue.pop(0.0)
    queue.retry("a/x", 0.0)
    queue.happened(Happening.POD_GONE, 0.0)
    assert queue.pop(0.9) is None
    assert queue.pop(1.0) == "a/x"


def test_a_woken_pod_is_tried_early_when_nothing_else_is_to_do(queue):
    parked(queue, now=0.0)
    queue.happened(Happening.NODE_OTHER, 0.1)
    assert queue.waiting["backoff"] == 1
    queue.add("a/other", 0, "")
    assert queue.pop(0.1) == "a/other"
    assert queue.pop(0.1) == "a/x"


def test_a_forgotten_pod_is_tried_after_five_minutes(queue):
    parked(queue, by=("NodeResourcesFit",))
    assert queue.due_in(0.0) == scheduling_queue.FLUSH_SECONDS
    assert queue.pop(299.0) is None
    assert queue.pop(300.0) == "a/x"


def test_a_pod_that_is_due_now_is_tried_however_the_instants_round(queue):
    parked(queue, by=("NodeResourcesFit",), now=251.3)
    now = 251.3 + scheduling_queue.FLUSH_SECONDS
    assert now - 251.3 < scheduling_queue.FLUSH_SECONDS
    assert queue.due_in(now) == 0.0
    assert queue.pop(now) == "a/x"


def test_a_removed_pod_is_nowhere(queue):
    parked(queue, "a/x")
    queue.add("a/y", 0, "")
    queue.pop(0.0)
    for key in ("a/x", "a/y"):
        queue.remove(key)
        assert key not in queue
    queue.park("a/y", {"NodeName"}, 0.0)
    queue.retry("a/y", 0.0)
    assert queue.due_in(0.0) is None
    assert set(queue.waiting.values()) == {0}


def test_a_placed_pod_is_done(queue):
    queue.add("a/x", 0, "")
    queue.pop(0.0)
    queue.done("a/x")
    assert "a/x" not in queue


def test_an_empty_queue_waits_for_nothing(queue):
    assert queue.due_in(0.0) is None
    assert queue.pop(0.0) is None


def test_a_pod_without_any_node_to_try_is_woken_by_anything(queue):
    parked(queue, by=())
    queue.happened(Happening.NODE_ADDED, 100.0)
    assert queue.pop(100.0) == "a/x"
