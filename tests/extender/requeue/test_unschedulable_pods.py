"""Who waits, on which nodes a change could help, and who has left."""

import numpy as np
import pytest

from extender.requeue import queueing_hints, unschedulable_pods

NOW = 1782907200.0


def rows(*numbers):
    return unschedulable_pods.Attempt(np.array(numbers, dtype=np.intp))


@pytest.fixture
def retried():
    return []


@pytest.fixture
def waits(retried):
    return unschedulable_pods.UnschedulablePods(2, retried.append)


@pytest.fixture
def asks(picture, make):
    return {name: picture.request(make.pod(name)) for name in ("a", "b", "c")}


def ever(waiter):
    return np.flatnonzero(np.unpackbits(waiter.ever)).tolist()


def test_attempts_add_up_until_a_pod_was_woken_in_vain(waits, asks, picture):
    waits.refused(asks["a"], rows(1, 3, -1), 10.0)
    waits.refused(asks["a"], rows(20), 20.0)
    (waiter,) = waits
    assert waits.fits(waiter, 0.0) is waiter
    assert waiter.rows(picture.cluster.view()).tolist() == [20]
    assert ever(waiter) == [1, 3, 20]
    assert (waiter.since, waiter.tried_at, waiter.tries) == (10.0, 20.0, 2)
    waits.woken(waiter, 25.0)
    (waiter,) = waits
    assert waiter.woken()
    waits.refused(asks["a"], rows(4), 26.0)
    (waiter,) = waits
    assert ever(waiter) == [4]
    assert not waiter.woken()


def test_a_clock_that_is_set_back_lets_no_pod_wait_for_it(waits, asks):
    waits.refused(asks["a"], rows(1), 7200.0)
    (waiter,) = waits
    assert queueing_hints.due_in(waiter, 2.0, 7201.0) == 1.0
    assert queueing_hints.due_in(waiter, 2.0, 3600.0) == 0.0
    waits.woken(waiter, 7210.0)
    waits.refused(asks["a"], rows(1), 3601.0)
    (waiter,) = waits
    assert 0.0 < queueing_hints.due_in(waiter, 2.0, 3602.0) <= 4.0
    assert queueing_hints.due_in(waiter, 2.0, 3606.0) == 0.0


def test_what_is_noted_about_a_pod_ends_with_its_next_attempt(waits, asks):
    waits.refused(asks["a"], rows(1), 10.0)
    (before,) = waits
    waits.refused(asks["a"], rows(1), 11.0)
    waits.woken(before, 12.0)
    waits.fits(before, 12.0)
    (waiter,) = waits
    assert (waiter.woken_at, waiter.fits_since, waiter.wakings) == (0.0, 0.0, 0)


def test_the_nomination_and_the_nodes_of_an_attempt_are_those_of_the_last_one(waits, asks):
    waits.refused(asks["a"], rows(1, 9), 10.0)
    waits.nominated(asks["a"].key, "n9")
    waits.nominated("default/unknown", "n9")
    (waiter,) = waits
    assert waiter.nominated == "n9"
    assert [row for row in range(-1, 40) if waiter.asks(row)] == [1, 9]
    waits.refused(asks["a"], rows(0, 16), 11.0)
    (waiter,) = waits
    assert waiter.nominated == ""
    assert [row for row in range(-1, 40) if waiter.asks(row)] == [0, 16]


def test_the_oldest_are_remembered_first_and_not_more_than_a_limit(waits, asks):
    for name in "abc":
        waits.refused(asks[name], rows(0), 1.0)
    assert [waiter.request.key for waiter in waits] == ["default/a", "default/b"]
    waits.settled("default/a", "another")
    assert len(waits) == 2
    waits.settled("default/a", "uid-a")
    waits.settled("default/a")
    assert [waiter.request.key for waiter in waits] == ["default/b"]


def test_who_leaves_while_others_are_looked_at_is_left_out(waits, asks):
    waits.refused(asks["a"], rows(0), 1.0)
    waits.refused(asks["b"], rows(0), 1.0)
    seen = []
    for waiter in waits:
        seen.append(waiter.request.key)
        waits.settled("default/b")
    assert seen == ["default/a"]


def test_another_pod_of_the_same_name_starts_anew(waits, picture, make):
    waits.refused(picture.request(make.pod("a")), rows(0), 1.0)
    waits.refused(picture.request(make.pod("a", uid="second")), rows(5), 9.0)
    (waiter,) = waits
    assert (waiter.since, ever(waiter)) == (9.0, [5])


def test_the_time_from_fitting_to_the_next_attempt_is_told(waits, asks, retried):
    waits.refused(asks["a"], rows(0), 1.0)
    waits.tried("default/a", 2.0)
    assert retried == []
    waiter = waits.get("default/a")
    waits.woken(waits.fits(waiter, 5.0), 6.0)
    waits.tried("default/a", 7.5)
    assert retried == [2.5]


def test_preemptors_are_known_until_they_are_tried_again(waits):
    for name in "abc":
        preemptor = unschedulable_pods.Preemptor(f"uid-{name}", {"n": frozenset({"v"})}, 1.0)
        waits.preempts(f"default/{name}", preemptor)
    assert list(waits.preemptors) == ["default/b", "default/c"]
    waits.tried("default/b", 2.0)
    waits.settled("default/c", "other")
    assert list(waits.preemptors) == ["default/c"]
    waits.settled("default/c", "uid-c")
    assert not waits.preemptors


def test_one_namespace_does_not_use_up_the_places_of_others(picture, make):
    waits = unschedulable_pods.UnschedulablePods(100)
    flood = make.pod("x")
    for number in range(5000):
        flood["metadata"] |= {"namespace": "flood", "name": f"p{number}", "uid": f"f{number}"}
        waits.refused(picture.request(flood), rows(0), 1.0)
    for number in range(10):
        waits.refused(picture.request(make.pod(f"q{number}")), rows(0), 2.0)
    assert len(waits) == 100
    first = [waiter.request.key for waiter in waits][:4]
    assert first == ["flood/p0", "default/q0", "flood/p1", "default/q1"]
    assert all(waits.get(f"default/q{number}") for number in range(10))
    assert {key.partition("/")[0] for key in waits.changed} == {"flood", "default"}
    assert len(waits.changed) == 100
    waits.served("flood/p0")
    assert next(iter(waits)).request.key == "default/q0"


def test_preemptors_are_shared_by_namespace_too(waits):
    for name in ("flood/a", "default/q", "flood/b", "flood/c"):
        waits.preempts(name, unschedulable_pods.Preemptor(name, {"n": frozenset({"v"})}, 1.0))
    assert set(waits.preemptors) == {"default/q", "flood/c"}


@pytest.mark.parametrize(
    "renewed",
    [
        pytest.param(lambda make: make.node("other"), id="another node"),
        pytest.param(
            lambda make: {**make.node("hot"), "metadata": {"name": "hot", "uid": "second"}},
            id="the same name set up anew",
        ),
    ],
)
def test_a_row_that_another_node_has_got_was_never_asked_about(picture, make, renewed):
    picture.add(make.node("hot"), make.metric("hot", cpu="100"), make.node("b"))
    waits, request = unschedulable_pods.UnschedulablePods(), picture.request(make.pod("p"))
    view = picture.cluster.view()
    row = view.rows["hot"]
    waits.refused(request, unschedulable_pods.attempt_on(view, np.array([row])), NOW)
    picture.books.report("hot", None)
    picture.books.node(picture.cluster.node("hot"), None)
    picture.add(renewed(make))
    view = picture.cluster.view()
    assert view.known[row], "the row is used again"
    (waiter,) = waits
    assert waiter.rows(view).tolist() == []
    judgements = queueing_hints.Judgements(queueing_hints.Changes())
    looks = queueing_hints.Looks(picture.pipeline, picture.cluster, NOW, judgements)
    assert looks.node_for(waiter) == ""
    # What is asked from now on is about the new one.
    waits.refused(request, unschedulable_pods.attempt_on(view, np.array([view.rows["b"]])), NOW)
    (waiter,) = waits
    assert ever(waiter) == [view.rows["b"]]
