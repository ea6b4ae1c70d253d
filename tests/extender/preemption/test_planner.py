"""Who is preempted, and where: kube-scheduler's order, and never in vain."""

import math

import hypothesis
import msgspec
import numpy as np
import pytest
from hypothesis import strategies as st

from domain.pods import disruption_budgets as budgets
from extender.framework.eviction import preemption, victims
from extender.preemption import planner
from extender.state import claims, deltas
from tests.extender.preemption.victims.slots_stage import NOW, PROTECTED, Stage

NO_VICTIMS = "no victims would help: team holds as many slots as it may"


def three(stage, **more):
    for number in range(3):
        stage.place(f"low-{number}", 2, priority=10, at=float(number), **more)


def test_of_three_low_pods_of_a_full_quota_one_leaves_the_youngest():
    stage = Stage(cap=6, nodes=("n1", "n2"))
    three(stage)
    found = stage.plan(stage.high())
    assert [claim.id for claim in found.found.victims] == ["low-2"]
    assert found.node in ("n1", "n2")
    assert "default/high (priority 100) is refused: team holds as many slots" in found.sentence()
    assert "evicts 1 of lower priority: default/low-2 (priority 10, 2 example" in found.sentence()


def test_what_is_freed_elsewhere_places_a_pod_where_it_fits():
    stage = Stage(cap=6, nodes=("n1",))
    stage.node("n2", 2)
    three(stage)
    found = stage.plan(stage.high(), nodes=("n2",))
    assert (found.node, [c.node for c in found.found.victims]) == ("n2", ["n1"])


def test_no_place_is_sought_on_a_node_that_was_deleted_while_its_pods_are_bound():
    """A pod was refused there a moment ago, so it is still among its candidates."""
    stage = Stage(cap=6, nodes=("n1", "n2"))
    three(stage)
    view = stage.state.view()
    rows = np.flatnonzero(view.known)
    stage.state.apply(deltas.NodeDelta("n1", stage.state.node("n1"), None))
    terms = preemption.Terms(stage.index)
    asked = stage.pipeline, stage.high(), stage.state.view(), rows, terms, NOW
    assert planner.plan(*asked).node == "n2"


CHOICES = {
    "lowest priority first": (
        [("a", 2, 20, 0.0), ("b", 2, 10, 9.0), ("c", 2, 30, 5.0)], {}, ["b"],
    ),
    "the youngest of equals": (
        [("a", 2, 10, 5.0), ("b", 2, 10, 9.0), ("c", 2, 10, 7.0)], {}, ["b"],
    ),
    "no more than help": (
        [("a", 2, 10, 5.0), ("b", 1, 10, 9.0), ("c", 1, 10, 7.0), ("d", 2, 30, 1.0)], {}, ["a"],
    ),
    "one instead of several": (
        [("old", 2, 10, 1.0), ("x", 1, 10, 8.0), ("y", 1, 10, 9.0), ("z", 2, 10, 0.0)], {}, ["old"],
    ),
    "not one that is more important": (
        [("old", 2, 20, 1.0), ("x", 1, 10, 8.0), ("y", 1, 10, 9.0), ("z", 2, 30, 0.0)],
        {}, ["x", "y"],
    ),
    "a budget counts more than priority": (
        [("a", 2, 10, 5.0), ("b", 2, 20, 5.0), ("c", 2, 30, 5.0)], {"a": 0}, ["b"],
    ),
    "a budget that allows it does not matter": (
        [("a", 2, 10, 5.0), ("b", 2, 20, 5.0), ("c", 2, 30, 5.0)], {"a": 1}, ["a"],
    ),
    "a budget is violated where nothing else helps": (
        [("a", 2, 10, 5.0), ("b", 4, 100, 5.0)], {"a": 0}, ["a"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("held", "guarded", "expected"), CHOICES.values(), ids=CHOICES)
def test_victims_are_chosen_in_the_order_of_kube_scheduler(held, guarded, expected):
    stage = Stage(cap=6)
    for name, count, priority, at in held:
        stage.place(name, count, priority=priority, at=at)
    made = budgets.Budgets(
        stage.budget(f"of-{name}", name, allowed=left) for name, left in guarded.items()
    )
    found = stage.plan(stage.high(), budgets=made)
    assert sorted(claim.id for claim in found.found.victims) == expected
    assert found.found.violations == sum(guarded.get(name, 1) == 0 for name in expected)


SPARED = {
    "of equal priority": {"priority": 100},
    "of higher priority": {"priority": 101},
    "marked as not preemptible": {"requirements": {"inputs": PROTECTED}},
    "protected by a guard": {"barrier": "gang/2"},
    "of another team": {"team": "blue"},
    "its bind is under way": {"kind": claims.ClaimKind.ASSUMED},
    "takes too long to leave": {"requirements": {"grace_seconds": 3601}},
    "is leaving, but too late": {"leaves_at": NOW + 3601},
}


@pytest.mark.parametrize("more", SPARED.values(), ids=SPARED)
def test_who_is_never_a_victim(more):
    stage = Stage(cap=4)
    stage.place("one", 2, **{"priority": 10} | more)
    stage.place("rest", 4 if more.get("team") else 2, priority=1000)
    assert stage.victims(stage.high(), until=NOW + 3600) == NO_VICTIMS
    assert stage.victims(stage.high(1000), until=NOW + 3600).startswith("no victims would help")


def test_a_pod_whose_policy_is_never_preempts_no_pod():
    stage = Stage()
    three(stage)
    pod = stage.high()
    wanted = msgspec.structs.replace(pod.requirements, preempts=False)
    pod = type(pod)(pod.key, pod.uid, wanted)
    assert stage.victims(pod) == "its preemptionPolicy is Never"


@pytest.mark.parametrize(
    ("stage", "more", "reason"),
    [
        pytest.param(Stage(cap=64), {}, "a node takes it without", id="it passes"),
        pytest.param(Stage(nodes=()), {}, "no node passed kube-scheduler's", id="no candidate"),
        pytest.param(
            Stage(), {"refused": frozenset({"low-0", "low-1", "low-2"})}, NO_VICTIMS, id="429"
        ),
    ],
)
def test_no_pod_is_preempted_in_vain(stage, more, reason):
    if stage.state.nodes():
        three(stage)
    assert stage.victims(stage.high(), **more).startswith(reason)


def test_pods_that_are_leaving_are_waited_for_instead():
    stage = Stage(cap=6)
    three(stage)
    stage.leave("low-0")
    stage.place("going", 2, priority=500, leaves_at=NOW + 10)
    found = stage.plan(stage.high()).found
    assert (found.victims, [c.id for c in found.leaving]) == ((), ["going"])
    assert found.cost < victims.Found((stage.state.claim("low-1"),)).cost


@pytest.mark.parametrize(("priority", "taken"), [(50, True), (100, False)])
def test_what_is_kept_for_a_lower_preemptor_goes_to_the_higher_one(priority, taken):
    stage = Stage(cap=2, nodes=("n1", "n2"))
    stage.place("waits", 2, node="n2", priority=priority, kind=claims.ClaimKind.NOMINATED)
    found = stage.plan(stage.high(), nodes=("n1",))
    if taken:
        assert [claim.id for claim in found.found.released] == ["nominated/waits"]
        assert found.found.victims == ()
    else:
        assert found.reason == NO_VICTIMS


def test_room_on_the_node_and_room_in_the_quota_may_both_be_lacking():
    stage = Stage(cap=6, nodes=())
    stage.node("n1", 4)
    three_on = [("a", 2, "red"), ("b", 2, "blue")]
    for number, (name, count, team) in enumerate(three_on):
        stage.place(name, count, priority=10 + number, team=team)
    stage.node("n2", 4)
    stage.place("c", 4, priority=30, node="n2", team="red")
    found = stage.plan(stage.high(2))
    assert [claim.id for claim in found.found.victims] == ["a"], "frees both at once"


NAMES = st.integers(0, 9)
PODS = st.lists(
    st.fixed_dictionaries(
        {
            "count": st.integers(1, 3),
            "priority": st.integers(0, 3).map(lambda number: number * 10),
            "node": st.sampled_from(["n1", "n2"]),
            "at": st.integers(0, 5).map(float),
            "app": st.sampled_from(["a", "b"]),
            "leaves_at": st.sampled_from([-1.0, -1.0, -1.0, NOW + 5]),
            "kept": st.booleans(),
        }
    ),
    min_size=1,
    max_size=7,
)


def staged(pods, cap=8):
    stage = Stage(cap=cap, nodes=("n1", "n2"))
    for number, one in enumerate(pods):
        more = {"requirements": {"inputs": PROTECTED}} if one["kept"] else {}
        stage.place(
            f"p{number}", one["count"], node=one["node"], priority=one["priority"], at=one["at"],
            leaves_at=one["leaves_at"], **more,
        )  # fmt: skip
    return stage


@hypothesis.given(pods=PODS, count=st.integers(1, 6), priority=st.integers(0, 40))
def test_victims_are_lower_help_and_none_of_them_is_in_vain(pods, count, priority):
    stage = staged(pods)
    pod = stage.high(count, priority)
    before = stage.state.fingerprint()
    found = stage.plan(pod)
    assert stage.state.fingerprint() == before, "planning changes nothing"
    if isinstance(found, planner.NoPlan):
        may_leave = [
            claim for claim in stage.state.all_claims().values()
            if claim.pod.leaves_at >= 0
            or (claim.pod.requirements.priority < priority
                and PROTECTED[0] not in claim.pod.requirements.inputs)
        ]  # fmt: skip
        for claim in may_leave:
            stage.leave(claim.id)
        assert found.passes or not stage.passes(pod), found.reason
        return
    chosen = found.found
    assert all(c.pod.requirements.priority < priority for c in chosen.victims)
    assert all(PROTECTED[0] not in c.pod.requirements.inputs for c in chosen.victims)
    for claim in chosen.claims:
        stage.leave(claim.id)
    assert not stage.refusal(pod, found.node), "it fits once they have left"
    for claim in chosen.victims:
        stage.change(None, claim)
        assert stage.refusal(pod, found.node), f"{claim.id} need not leave"
        stage.leave(claim.id)
    top = max((c.pod.requirements.priority for c in chosen.victims), default=-math.inf)
    for claim in tuple(stage.state.all_claims().values()):
        if claim.pod.requirements.priority < top and PROTECTED[0] not in (
            claim.pod.requirements.inputs
        ):
            stage.leave(claim.id)
    for claim in chosen.victims:
        if claim.pod.requirements.priority == top:
            stage.change(None, claim)
    if chosen.victims:
        assert not stage.passes(pod), "less important ones would have been enough"


@hypothesis.given(
    pods=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=2, max_size=8),
    order=st.randoms(use_true_random=False),
)
def test_pods_that_were_preempted_come_back_and_never_preempt_back(pods, order):
    """Every victim is made anew by its controller and tries again; it comes to rest."""
    stage = Stage(cap=6, nodes=("n1",))
    waiting = [(f"p{number}", count, rank * 10) for number, (count, rank) in enumerate(pods)]
    preemptions = 0
    for generation in range(64 * len(pods)):
        if not waiting:
            break
        progress = False
        order.shuffle(waiting)
        for entry in tuple(waiting):
            name, count, priority = entry
            pod = stage.high(count, priority, name=name)
            found = stage.plan(pod)
            if isinstance(found, planner.Plan):
                for claim in found.found.victims:
                    assert claim.pod.requirements.priority < priority
                    stage.leave(claim.id)
                    asked = dict(claim.pod.requirements.requests)
                    waiting.append(
                        (f"{claim.id}-{generation}", asked["example.com/slots"],
                         claim.pod.requirements.priority)
                    )  # fmt: skip
                preemptions += 1
            elif not found.passes:
                continue
            stage.place(name, count, priority=priority, at=float(generation))
            waiting.remove(entry)
            progress = True
        if not progress:
            break
    else:
        raise AssertionError("it never comes to rest")
    assert preemptions <= len(pods) ** 2
    for _, count, priority in waiting:
        assert isinstance(stage.plan(stage.high(count, priority, name="w")), planner.NoPlan)
