"""Only pods that some node would take now are due, and seldom if that helped nothing before."""

import dataclasses

import numpy as np
import pytest

from extender.requeue import queueing_hints, unschedulable_pods

NOW = 1782907200.0


def test_a_pod_fits_where_the_scheduler_would_have_taken_it(picture, make):
    for name in ("hot", "cool"):
        picture.add(make.node(name), make.metric(name, cpu="100" if name == "hot" else "1"))
    waits, request = unschedulable_pods.UnschedulablePods(), picture.request(make.pod("p"))
    view = picture.cluster.view()
    asked = unschedulable_pods.attempt_on(view, np.array([view.rows["hot"]]))
    waits.refused(request, asked, NOW)
    (waiter,) = waits
    # The cool node was never asked about: the scheduler refused it.
    assert queueing_hints.Looks(picture.pipeline, view, NOW).node_for(waiter) == ""
    picture.add(make.metric("hot", cpu="10"))
    looks = queueing_hints.Looks(picture.pipeline, picture.cluster.view(), NOW)
    assert looks.node_for(waiter) == "hot"
    assert looks.node_for(waiter) == "hot"


@pytest.mark.parametrize(
    ("tried", "woken", "wakings_before", "due"),
    [
        pytest.param(100.0, 0.0, 0, True, id="first time"),
        pytest.param(109.0, 0.0, 0, False, id="tried a moment ago"),
        pytest.param(100.0, 105.0, 1, False, id="woken already"),
        pytest.param(106.0, 105.0, 1, True, id="woken in vain"),
        pytest.param(106.0, 105.0, 2, False, id="twice in vain: later"),
        pytest.param(100.0, 99.0, 12, False, id="many times in vain"),
        pytest.param(100.0, 49.0, 12, True, id="but not for ever"),
    ],
)
def test_when_a_pod_is_due(picture, make, tried, woken, wakings_before, due):
    waits = unschedulable_pods.UnschedulablePods()
    waits.refused(picture.request(make.pod("p")), unschedulable_pods.Attempt(np.array([0])), tried)
    (first,) = waits
    waiter = dataclasses.replace(first, woken_at=woken, wakings=wakings_before)
    assert queueing_hints.is_due(waiter, 2.0, 110.0) is due


def test_victims_have_left_when_none_is_on_the_node_any_more(picture, make):
    picture.add(make.node("n"), make.pod("v", node="n"), make.pod("w", node="n"))
    waits = unschedulable_pods.UnschedulablePods()
    victims = {"n": frozenset({"uid-v", "uid-w"})}
    waits.preempts("default/p", unschedulable_pods.Preemptor("uid-p", victims, NOW))
    assert list(queueing_hints.freed(waits, picture.cluster)) == []
    picture.add(make.pod("v", node="n", phase="Succeeded"))
    assert list(queueing_hints.freed(waits, picture.cluster)) == []
    picture.add(make.pod("w", node="n", phase="Succeeded"))
    assert list(queueing_hints.freed(waits, picture.cluster)) == [("default/p", "uid-p", "n")]
