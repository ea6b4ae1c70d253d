"""The eviction limiter: never more than a limit says, in a round and in an hour."""

import collections

import hypothesis
import pytest
from hypothesis import strategies as st

from descheduler.configuration import head
from descheduler.framework.planning import history, limiter
from tests.descheduler.builders import NOW, picture_of, pod, workload


def web(number, node="n", namespace="default", owner="web"):
    return pod(f"{namespace}/web-{number}", node, controller=f"ReplicaSet/{owner}")


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (limiter.Limits(node=1), "maximum number of pods per node reached"),
        (limiter.Limits(namespace=1), "maximum number of pods per namespace reached"),
        (limiter.Limits(workload=1), "maximum number of pods per workload reached"),
        (limiter.Limits(total=1), "maximum number of pods reached"),
    ],
    ids=["node", "namespace", "workload", "total"],
)
def test_a_limit_is_named(limits, said):
    one = limiter.Limiter(picture_of(), limits)
    assert one.refusal(web(0)) == ""
    one.count(web(0))
    assert one.refusal(web(1)) == said


def test_only_the_limit_of_all_pods_is_reached_for_all():
    one = limiter.Limiter(picture_of(), limiter.Limits(node=1, namespace=1, workload=1, total=2))
    one.count(web(0))
    assert one.exhausted() == ""
    one.count(web(1, node="m"))
    assert one.exhausted() == "maximum number of pods reached"


def test_the_hour_before_counts():
    moves = {
        "a": history.Moved(NOW - 3500, "default", "n", "web"),
        "b": history.Moved(NOW - 3700, "default", "n", "web"),
    }
    one = limiter.Limiter(picture_of(), in_hour=limiter.Limits(node=2), moves=moves)
    assert one.refusal(web(0)) == ""
    one.count(web(0))
    assert one.refusal(web(1)) == "maximum number of pods per node within an hour reached"
    assert one.refusal(web(1, node="m")) == ""


def test_replica_sets_of_a_deployment_are_one_workload():
    seen = picture_of(workloads=[workload("a", owner="d"), workload("b", owner="d")])
    one = limiter.Limiter(seen, limiter.Limits(workload=1))
    one.count(web(0, owner="a"))
    assert one.refusal(web(1, owner="b"))


def test_pods_without_controller_are_no_workload():
    one = limiter.Limiter(picture_of(), limiter.Limits(workload=1))
    one.count(pod("a", "n", controller=""))
    assert one.refusal(pod("b", "n", controller="")) == ""


def test_limits_are_those_of_the_configuration():
    configured = head.Head.model_validate(
        {
            "maxNoOfPodsToEvictPerNode": 1,
            "maxNoOfPodsToEvictPerNamespace": 2,
            "maxNoOfPodsToEvictPerWorkload": 3,
            "maxNoOfPodsToEvictTotal": 4,
            "maxNoOfPodsToEvictPerHour": {"node": 5, "workload": 6, "namespace": 7, "total": 8},
        }
    )
    assert limiter.per_round(configured) == limiter.Limits(1, 2, 3, 4)
    assert limiter.per_hour(configured) == limiter.Limits(5, 7, 6, 8)
    assert limiter.per_round(head.Head()) == limiter.NO_LIMITS


SMALL = st.none() | st.integers(0, 3)
LIMITS = st.builds(limiter.Limits, SMALL, SMALL, SMALL, SMALL)
SPOTS = st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from("vw"))


@hypothesis.given(LIMITS, LIMITS, st.lists(SPOTS, max_size=12), st.lists(SPOTS, max_size=4))
def test_no_limit_is_ever_exceeded(in_round, in_hour, wanted, before):
    moves = {
        f"old-{number}": history.Moved(NOW - 60, namespace, node, owner)
        for number, (node, namespace, owner) in enumerate(before)
    }
    asked = [web(number, *spot) for number, spot in enumerate(wanted)]
    one = limiter.Limiter(picture_of(), in_round, in_hour, moves)
    let = []
    for candidate in asked:
        if not one.refusal(candidate):
            one.count(candidate)
            let.append((candidate.node, candidate.namespace, candidate.controller.uid))
        else:
            assert _exceeds(in_round, in_hour, [*let, _spot(candidate)], before)
    assert not _exceeds(in_round, limiter.NO_LIMITS, let, before)
    if not _exceeds(limiter.NO_LIMITS, in_hour, [], before):
        assert not _exceeds(limiter.NO_LIMITS, in_hour, let, before)


def _spot(one):
    return one.node, one.namespace, one.controller.uid


def _exceeds(in_round, in_hour, let, before):
    return _over(in_round, let) or _over(in_hour, [*before, *let])


def _over(limits, spots):
    mosts = (limits.node, limits.namespace, limits.workload)
    for index, most in enumerate(mosts):
        counts = collections.Counter(spot[index] for spot in spots)
        if most is not None and counts and max(counts.values()) > most:
            return True
    return limits.total is not None and len(spots) > limits.total
