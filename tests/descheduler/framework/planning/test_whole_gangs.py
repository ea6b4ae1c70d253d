"""A gang leaves as a whole or not at all, whatever one of its members is asked to do."""

import dataclasses

import msgspec
import pytest

from api import names
from descheduler.framework import protocols
from descheduler.framework.filtering import safeguards
from descheduler.framework.planning import decisions
from descheduler.gain import gain_per_eviction, measured_load
from descheduler.gain.options import Options
from descheduler.migration.plan import jobs
from descheduler.model import objects
from tests.descheduler import builders, cluster_of_rounds, test_loops

GANG = "default/train"
TAINTS, EMPTY = test_loops.TAINTS, test_loops.EMPTY


def members(*on, cpu="2", **fields):
    return [
        builders.pod(
            f"m{at}", node, cpu=cpu, memory="1Mi", controller="Job/train", gang=GANG, **fields
        )
        for at, node in enumerate(on)
    ]


def cluster(pods, *plugins, whole=True, cpu="10", **fields):
    """Three nodes, of which pods should leave the first."""
    configured = test_loops.configured(deschedule=plugins, moveWholeGangs=whole, **fields)
    tainted = builders.node("a", cpu=cpu, taints=(test_loops.TAINT,))
    others = [builders.node(name, cpu=cpu) for name in ("b", "c")]
    return cluster_of_rounds.Cluster(configured, [tainted, *others], pods)


def moved(plan):
    return {one.suggestion.pod.name: one.target for one in plan.moves}


def test_the_members_on_other_nodes_leave_with_one_that_has_to():
    made = cluster(members("a", "b", "c"), TAINTS)
    plan = made.round()
    assert set(moved(plan)) == {"m0", "m1", "m2"}
    assert "a" not in moved(plan).values()
    told = [one.suggestion.reason for one in plan.moves]
    assert [one.startswith("it leaves with its gang: ") for one in told] == [False, True, True]
    wanted = jobs.of_moves(plan.moves, made.now)
    assert {one.group_size for one in wanted} == {3}
    assert len({one.group for one in wanted}) == 1


def test_members_of_one_node_are_suggested_again_and_leave_once():
    plan = cluster(members("a", "a", "b"), TAINTS).round()
    assert sorted(one.suggestion.pod.name for one in plan.moves) == ["m0", "m1", "m2"]
    assert plan.refused == ()


def test_without_the_setting_all_members_stay():
    made = cluster(members("a", "b"), TAINTS, whole=False)
    assert made.round().moves == ()
    assert made.kept() == {safeguards.GANG}


def test_a_member_alone_leaves_while_the_quorum_holds():
    made = cluster(members("a", "b", "c"), TAINTS)
    made.gangs = {GANG: objects.Gang(GANG, 2)}
    assert set(moved(made.round())) == {"m0"}


def exempt(pods):
    notes = {names.ANNOTATION_EXEMPT: "true"}
    return [*pods[:-1], msgspec.structs.replace(pods[-1], annotations=notes)]


@pytest.mark.parametrize(
    ("pods", "fields", "detail"),
    [
        pytest.param(exempt(members("a", "b")), {}, safeguards.EXEMPT, id="one is exempt"),
        pytest.param(
            members("a", "b", "c"),
            {"maxNoOfPodsToEvictTotal": 2},
            "maximum number of pods reached",
            id="limits",
        ),
        pytest.param(
            members("a", "b", cpu="6"),
            {},
            "default/m1: 0 nodes are available",
            id="no room for all",
        ),
    ],
)
def test_all_stay_where_one_has_to(pods, fields, detail):
    """What was tried for the gang does not stand in the way of a pod after it."""
    both = [*test_loops.pods("z", "a", "1"), *test_loops.pods("y", "c", "1")]
    made = cluster([*pods, *both], TAINTS, **fields)
    plan = made.round()
    assert set(moved(plan)) == {"z0"}
    (refused,) = plan.refused
    assert refused.reason == decisions.GANG
    assert detail in refused.examples[0]


def test_in_dry_run_a_whole_gang_is_reported():
    made = cluster(members("a", "b", "c"), TAINTS, dryRun=True)
    plan = made.round()
    assert set(moved(plan)) == {"m0", "m1", "m2"}
    assert all(one.dry_run for one in plan.moves)
    assert made.moves == []


def test_a_gang_of_which_a_member_is_moved_already_waits():
    made = cluster(members("a", "b", "c"), TAINTS)
    seen = made.picture()
    job = builders.job("j", "m1")
    busy = dataclasses.replace(seen, jobs={job.name: job})
    made.picture = lambda: busy
    assert made.round().moves == ()
    assert made.kept() == {safeguards.GANG}


@pytest.mark.parametrize(("room", "leave"), [("10", True), ("7", False)])
def test_a_node_is_emptied_with_the_gangs_of_its_pods_or_stays(room, leave):
    pods = [
        *members("a", "b"),
        *test_loops.pods("p", "a", "1", controller="ReplicaSet/p"),
        *test_loops.pods("pp", "c", "1", controller="ReplicaSet/p"),
        *test_loops.pods("q", "b", "1", 3, controller="ReplicaSet/q"),
        *test_loops.pods("r", "c", "1", 5, controller="ReplicaSet/r"),
    ]
    configured = test_loops.configured([EMPTY], moveWholeGangs=True)
    nodes = [builders.node(name, cpu=room) for name in ("a", "b", "c")]
    made = cluster_of_rounds.Cluster(configured, nodes, pods)
    plan = made.round()
    if leave:
        assert set(moved(plan)) == {"m0", "m1", "p0"}
        assert made.requested()["a"] == 0
    else:
        assert not {"m0", "m1", "p0"} & set(moved(plan))


def test_the_cost_of_all_members_counts():
    seen = builders.picture_of([builders.node("a"), builders.node("b")], members("a", "b"))
    first, second = seen.pods.values()
    options = Options()
    loads = measured_load.Loads(options, seen, seen.nodes.values())
    judge = gain_per_eviction.GainPerEviction(options, seen, loads)
    fork = cluster_of_rounds.Emptiest(seen)
    alone = protocols.Suggestion(first, "Test", "because", protocols.Purpose.COMPLY)
    one = judge.judge(alone, fork)
    both = judge.judge(dataclasses.replace(alone, gang=(second,)), fork)
    assert both.cost == pytest.approx(2 * one.cost)


def test_a_member_without_budget_keeps_its_gang():
    first, second = members("a", "b", labels={"app": "train"})
    tight = builders.budget("train", 0, {"app": "train"})
    free = msgspec.structs.replace(first, labels={"app": "other"})
    nodes = [builders.node("a"), builders.node("b")]
    seen = builders.picture_of(nodes, [free, second], budgets=[tight])
    options = Options()
    loads = measured_load.Loads(options, seen, seen.nodes.values())
    judge = gain_per_eviction.GainPerEviction(options, seen, loads)
    alone = protocols.Suggestion(free, "Test", "because", protocols.Purpose.COMPLY, gang=(second,))
    found = judge.judge(alone, cluster_of_rounds.Emptiest(seen))
    assert found.reason == gain_per_eviction.NO_GANG
    assert "default/m1" in found.detail
