"""Whole gangs as victims: a gang at its minimum leaves as a whole, or not at all."""

import hypothesis
import pytest
from hypothesis import strategies as st

from api import names
from domain.gangs import declaration
from domain.pods import disruption_budgets as budgets
from extender.framework import victim_units
from extender.framework.eviction import victims
from extender.plugins.coscheduling import coscheduling
from extender.state import claims
from tests.extender.preemption.victims.slots_stage import NOW, PROTECTED, Stage
from tests.extender.verbs import test_preempt

GROUPED = '["default/a","default/b"]'


def beside():
    return (coscheduling.Coscheduling(declaration.Defaults()),)


def notes(gang, least, **more):
    named = {
        "mode": names.ANNOTATION_GANG_MODE, "groups": names.ANNOTATION_GANG_GROUPS
    }  # fmt: skip
    return {
        names.ANNOTATION_GANG_NAME: gang,
        names.ANNOTATION_GANG_MIN_AVAILABLE: str(least),
        **{named[key]: text for key, text in more.items()},
    }


class Gangs(Stage):
    """Teams with gangs: the sample plug-in beside Coscheduling."""

    def __init__(self, cap=6, nodes=("n1", "n2"), **more):
        super().__init__(cap, nodes, beside=beside(), **more)

    def gang(self, name, count, least=None, *, priority=10, nodes=("n1", "n2"), note=None, **more):
        told = notes(name, least or count, **(note or {}))
        for number in range(count):
            node = nodes[number % len(nodes)]
            self.place(f"{name}-{number}", node=node, priority=priority, notes=told, **more)


def members(name, count):
    return [f"{name}-{number}" for number in range(count)]


def two_low(stage):
    stage.gang("a", 4)
    stage.place("single", 2, priority=20)


def a_surplus(stage):
    stage.gang("a", 6, 4)


def one_is_left(stage):
    stage.gang("a", 5, 4)
    stage.place("rest", 1, priority=1000)


def any_order(stage):
    stage.gang("a", 6, 6, note={"mode": "NonStrict"})


def group(stage):
    stage.gang("a", 2, note={"groups": GROUPED}, nodes=("n1",))
    stage.gang("b", 2, note={"groups": GROUPED}, nodes=("n2",), team="blue")
    stage.place("rest", 4, priority=1000)


def broken(stage):
    stage.gang("a", 3, 4)
    stage.place("rest", 3, priority=1000)


def expensive(stage):
    stage.gang("a", 3, priority=20)
    stage.place("x", 2, priority=10)
    stage.place("rest", 1, priority=1000)


CHOICES = {
    "all members leave although two would do": (two_low, members("a", 4)),
    "what a gang can do without leaves alone": (a_surplus, ["a-4", "a-5"]),
    "below its minimum all leave, the surplus as well": (one_is_left, members("a", 5)),
    "members of a NonStrict gang leave alone": (any_order, ["a-4", "a-5"]),
    "gangs of a group leave together": (group, [*members("a", 2), *members("b", 2)]),
    "what is left of a gang leaves as a whole": (broken, members("a", 3)),
    "one of lower priority leaves instead": (expensive, ["x"]),
}


@pytest.mark.parametrize(("held", "expected"), CHOICES.values(), ids=CHOICES)
def test_a_gang_at_its_minimum_leaves_as_a_whole(held, expected):
    stage = Gangs()
    held(stage)
    found = stage.victims(stage.high())
    # Of equals any may leave: how many of which gang is what counts.
    assert [one[0] for one in found] == [one[0] for one in expected]
    if len(expected) > 2:
        assert found == expected


SPARED = {
    "a member of higher priority": {"priority": 100},
    "a member that is not preemptible": {"requirements": {"inputs": PROTECTED}},
    "a member whose bind is under way": {"kind": claims.ClaimKind.ASSUMED},
    "a member that leaves too late": {"requirements": {"grace_seconds": 3601}},
}


@pytest.mark.parametrize("more", SPARED.values(), ids=SPARED)
def test_one_member_that_must_stay_keeps_its_gang(more):
    stage = Gangs()
    stage.gang("a", 3, 4)
    stage.place("a-3", node="n2", notes=notes("a", 4), **{"priority": 10} | more)
    stage.place("other", 2, priority=20)
    assert stage.victims(stage.high(), until=NOW + 3600) == ["other"]


def test_a_budget_of_one_member_makes_its_gang_leave_last():
    stage = Gangs()
    stage.gang("a", 4)
    stage.place("other", 2, priority=20)
    made = budgets.Budgets([stage.budget("b", "a-3")])
    assert stage.victims(stage.high(), budgets=made) == ["other"]
    stage.leave("other")
    stage.place("rest", 2, priority=1000)
    found = stage.plan(stage.high(), budgets=made)
    assert (len(found.found.victims), found.found.violations) == (4, 1)


def test_a_gang_costs_the_sum_of_its_members():
    stage = Gangs()
    stage.gang("a", 4)
    found = stage.plan(stage.high(4)).found
    alone = victims.Found(found.victims[:1])
    assert found.cost[2] == 4 * alone.cost[2]


def test_a_gang_too_large_to_leave_for_one_pod_stays():
    most = victim_units.MOST_TOGETHER
    stage = Gangs(cap=most + 3, slots=2 * most)
    stage.gang("a", most + 1)
    stage.place("other", 2, priority=20)
    assert stage.victims(stage.high()) == ["other"]


def test_a_member_that_is_leaving_is_waited_for_and_its_gang_leaves_with_it():
    stage = Gangs(cap=4)
    stage.gang("a", 3, 4)
    stage.place("a-3", node="n2", notes=notes("a", 4), priority=10, leaves_at=NOW + 5)
    found = stage.plan(stage.high(4)).found
    assert sorted(claim.id for claim in found.victims) == members("a", 3)
    assert [claim.id for claim in found.leaving] == ["a-3"]


@st.composite
def _clusters(draw):
    sizes = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=4))
    priorities = draw(st.lists(st.sampled_from((10, 20, 100)), min_size=8, max_size=8))
    return sizes, priorities, draw(st.integers(1, 6))


@hypothesis.settings(max_examples=15, deadline=None)
@hypothesis.given(_clusters())
def test_no_gang_is_left_below_its_minimum_and_no_pod_of_equal_priority_leaves(given):
    sizes, priorities, wanted = given
    stage = Gangs(cap=sum(least + more for least, more in sizes))
    for number, (least, more) in enumerate(sizes):
        stage.gang(f"g{number}", least + more, least, priority=priorities[number])
    pod = stage.high(wanted)
    found = stage.plan(pod)
    gone = {claim.id for claim in getattr(found, "found", victims.Found()).claims}
    for number, (least, more) in enumerate(sizes):
        everyone = set(members(f"g{number}", least + more))
        assert len(everyone - gone) >= least or everyone <= gone
        assert priorities[number] < 100 or not everyone & gone
    for ident in gone:
        stage.leave(ident)
    assert not gone or stage.passes(pod)


# -- the preempt verb ------------------------------------------------------------------------


class Calls(test_preempt.Calls, Gangs):
    """The verb where there are gangs."""


def test_kube_scheduler_evicts_a_gang_of_one_node_as_a_whole():
    calls = Calls()
    calls.gang("a", 3, nodes=("n1",))
    found = calls.preempt({"n1": ["a-0"]})
    assert sorted(found["n1"]) == members("a", 3)


def test_a_node_whose_victims_break_a_gang_is_dropped_while_there_is_another():
    calls = Calls()
    calls.gang("a", 2)
    calls.place("low", 2, node="n2", priority=10)
    assert calls.preempt({"n1": ["a-0"], "n2": ["low"]}) == {"n2": ["low"]}


def test_a_gang_of_many_nodes_is_no_shield_where_there_is_no_other():
    calls = Calls(cap=2)
    calls.gang("a", 2)
    pod = calls.pod(slots=1)
    assert calls.preempt({"n1": ["a-0"]}, pod=pod) == {"n1": ["a-0"]}
    calls.gang("b", 2, priority=100)
    assert calls.preempt({"n1": ["b-0"]}, pod=pod) == {}
