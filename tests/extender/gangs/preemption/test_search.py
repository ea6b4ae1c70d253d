"""The cheapest victims of a whole gang: enough for all of it, none in vain, whole gangs only."""

import hypothesis
import pytest
from hypothesis import strategies as st

from domain.pods import disruption_budgets as budgets
from extender.gangs.planning import planner
from extender.gangs.preemption import search
from tests.extender.conftest import NOW
from tests.extender.gangs.preemption.search_stage import Stage


def members(name, count):
    return [f"{name}-{number}" for number in range(count)]


def a_whole_gang(stage):
    stage.bound("low", ["n0", "n0", "n1", "n1"])
    stage.bound("same", ["n2", "n2", "n3", "n3"], priority=10)


def the_least_important(stage):
    stage.bound("low", ["n0", "n0", "n1", "n1"], priority=5)
    stage.bound("lower", ["n2", "n2", "n3", "n3"], priority=2)


def singles(stage):
    for number in range(8):
        stage.single(f"low-{number}", f"n{number // 2}", priority=number)


def room_is_used(stage):
    stage.bound("low", ["n0", "n0"])
    stage.bound("other", ["n1", "n1"], priority=2)
    stage.single("half", "n2", priority=3)
    stage.single("top", "n3", cpu="8", priority=10)


def more_than_is_needed(stage):
    stage.bound("low", ["n0", "n1", "n2", "n3"], cpu="8")


def surplus(stage):
    stage.bound("low", ["n0", "n0", "n1", "n1", "n2", "n2", "n3", "n3"], least=4)


CHOICES = {
    "a gang of lower priority leaves as a whole, one of the same stays": (
        a_whole_gang, 4, members("low", 4),
    ),
    "the least important gang leaves": (the_least_important, 4, members("lower", 4)),
    "pods of their own leave, the least important ones": (singles, 4, members("low", 4)),
    "room that is there is used, and only what is needed is freed": (
        room_is_used, 3, members("low", 2),
    ),
    "a whole gang leaves for two members": (more_than_is_needed, 2, members("low", 4)),
    "what a gang can do without leaves alone": (surplus, 4, 4),
}  # fmt: skip


@pytest.mark.parametrize(("held", "count", "expected"), CHOICES.values(), ids=CHOICES)
def test_the_cheapest_victims_are_found(held, count, expected):
    stage = Stage()
    stage.nodes(4)
    held(stage)
    wanted = stage.wanted(count)
    assert not isinstance(stage.plan(wanted), planner.Plan)
    before = stage.cluster.fingerprint()
    found = stage.victims(wanted)
    assert found == expected if isinstance(expected, list) else len(found) == expected
    assert stage.cluster.fingerprint() == before
    stage.leave(found)
    assert isinstance(stage.plan(wanted), planner.Plan)


NOBODY = {
    "of the same priority": {"priority": 10},
    "of higher priority": {"priority": 11},
    "not preemptible": {
        "labels": {"quota.scheduling.koordinator.sh/preemptible": "false"}
    },
    "a grace period that is too long": {"terminationGracePeriodSeconds": 7200},
}  # fmt: skip


@pytest.mark.parametrize("more", NOBODY.values(), ids=NOBODY)
def test_who_never_leaves_keeps_its_whole_gang(more):
    stage = Stage()
    stage.nodes(2)
    stage.bound("low", ["n0", "n0", "n1"], least=4)
    stage.declared("low-3", gang="low", least=4, node="n1", **{"priority": 1} | more)
    assert stage.victims(stage.wanted(2), until=NOW + 3600) == search.NOBODY


def test_no_pod_leaves_in_vain():
    stage = Stage()
    stage.nodes(2)
    stage.bound("low", ["n0", "n0"])
    stage.bound("same", ["n1", "n1"], priority=10)
    assert "if all pods of lower priority left" in stage.victims(stage.wanted(3))


def test_a_member_that_never_preempts_keeps_its_gang_from_it():
    stage = Stage()
    stage.nodes(1)
    stage.bound("low", ["n0", "n0"])
    assert stage.victims(stage.wanted(2, preemptionPolicy="Never")) == search.NEVER


def test_budgets_count_for_all_victims_together():
    stage = Stage()
    stage.nodes(3)
    for number in range(4):
        stage.single(f"a-{number}", f"n{number // 2}", labels={"app": "a"})
    stage.single("b-0", "n2", priority=5, labels={"app": "b"})
    stage.single("b-1", "n2", priority=5, labels={"app": "b"})
    made = budgets.Budgets([stage.budget("a", 1, app="a")])
    found = stage.victims(stage.wanted(3), budgets=made)
    assert [one[0] for one in found] == ["a", "b", "b"]
    assert isinstance(stage.victims(stage.wanted(4, name="more"), budgets=made), str)


def test_pods_that_are_leaving_count_as_gone():
    stage = Stage()
    stage.nodes(2)
    stage.bound("low", ["n0", "n0", "n1", "n1"])
    wanted = stage.wanted(4)
    gone = {f"uid-low-{number}" for number in range(2)}
    found = search.of(stage.search(wanted, going=frozenset(gone)))
    assert {claim.pod.name for claim in found.found.leaving} == {"low-0", "low-1"}
    assert sorted(claim.pod.name for claim in found.found.victims) == ["low-2", "low-3"]
    # Who leaves for others, or could not be evicted, is no victim, and its gang neither.
    assert stage.victims(wanted, refused=frozenset(gone)) == search.NOBODY


@st.composite
def _clusters(draw):
    gangs = draw(
        st.lists(
            st.tuples(st.integers(1, 4), st.sampled_from((1, 5, 10)), st.sampled_from(("2", "4"))),
            min_size=1, max_size=5,
        )
    )  # fmt: skip
    nodes = draw(st.lists(st.integers(0, 3), min_size=20, max_size=20))
    return gangs, nodes, draw(st.integers(1, 5)), draw(st.integers(0, 4))


@hypothesis.settings(max_examples=12, deadline=None)
@hypothesis.given(_clusters())
def test_never_a_part_of_a_gang_never_equal_priority_always_enough(given):
    gangs, places, count, allowed = given
    stage = Stage()
    stage.nodes(4, cpu="12")
    where = iter(places)
    for number, (size, priority, cpu) in enumerate(gangs):
        nodes = [f"n{next(where)}" for _ in range(size)]
        stage.bound(f"g{number}", nodes, priority=priority, cpu=cpu, labels={"app": f"g{number}"})
    wanted = stage.wanted(count, cpu="5")
    made = budgets.Budgets([stage.budget("g0", allowed, app="g0")])
    if isinstance(stage.plan(wanted), planner.Plan):
        return
    before = stage.cluster.fingerprint()
    found = search.of(stage.search(wanted, budgets=made))
    assert stage.cluster.fingerprint() == before
    if isinstance(found, search.NoVictims):
        return
    gone = {claim.pod.name for claim in found.found.victims}
    assert gone
    for number, (size, priority, _) in enumerate(gangs):
        everyone = set(members(f"g{number}", size))
        assert everyone <= gone or not everyone & gone
        assert priority < 10 or not everyone & gone
    assert not made.violating(found.found.victims)
    stage.leave(sorted(gone))
    assert isinstance(stage.plan(wanted), planner.Plan)


def test_a_search_is_made_in_small_steps():
    stage = Stage()
    stage.nodes(40)
    for number in range(0, 40, 4):
        nodes = [f"n{number + each}" for each in range(4)]
        for each in range(2):
            stage.bound(f"low-{number}-{each}", nodes, priority=1 + number % 3)
    wanted = stage.wanted(24)
    fork = stage.cluster.fork()
    made = stage.search(wanted, fork)
    changes, worst = [], 0
    fork.followers.append(changes.append)
    for _ in made.steps():
        worst = max(worst, len(changes))
        changes.clear()
    # A change takes some ten microseconds; the figures of a node less than a hundred.
    assert worst <= 64
    assert len(made.result.found.victims) == 24


def test_a_gang_for_which_too_many_would_have_to_leave_preempts_no_pod():
    stage = Stage()
    stage.nodes(5, cpu="103")
    for node in range(5):
        for number in range(103):
            stage.single(f"low-{node}-{number}", f"n{node}", cpu="1")
    assert stage.victims(stage.wanted(5, cpu="103")) == search.TOO_MANY
