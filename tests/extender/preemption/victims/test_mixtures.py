"""Victims for CPUs, GPUs, quota and mixtures of them: as few and as unimportant as help."""

import hypothesis
import pytest
from hypothesis import strategies as st

from extender.preemption import planner
from extender.state import claims
from tests import draws
from tests.extender.preemption.victims.mixture_stage import NOW, Mixture

GPU = "no victims would help: Insufficient GPU Devices"
CPU = "no victims would help: not enough cpus available to satisfy request"


CASES = {
    "fragmented cpus": (
        [("a", {"cpus": 4, "priority": 5}), ("b", {"cpus": 2, "priority": 1}),
         ("c", {"cpus": 2, "priority": 2})],
        {"cpus": 4}, ["b", "c"],
    ),
    "a full GPU": (
        [("a", {"gpu": 50, "priority": 1}), ("b", {"gpu": 50, "priority": 2}),
         ("c", {"gpu": 100, "priority": 3})],
        {"gpu": 100}, ["a", "b"],
    ),
    "one GPU of two that are fragmented": (
        [("a", {"gpu": 60, "priority": 1}), ("b", {"gpu": 60, "priority": 2})],
        {"gpu": 100}, ["a"],
    ),
    "quota, cpus and a GPU at once": (
        [("a", {"cpus": 4, "gpu": 100, "team": "team", "priority": 3}),
         ("b", {"cpus": 4, "priority": 1}), ("c", {"gpu": 100, "priority": 1})],
        {"cpus": 4, "gpu": 100, "team": "team"}, ["a"],
    ),
    "cpus on one NUMA node and the GPU on the other one": (
        [("a", {"cpus": 4, "aligned": True, "priority": 2}),
         ("b", {"gpu": 100, "priority": 9}), ("c", {"gpu": 100, "priority": 1})],
        {"cpus": 4, "gpu": 100, "aligned": True}, ["c"],
    ),
    "one that is marked is passed over": (
        [("a", {"gpu": 100, "priority": 1, "kept": True}), ("b", {"gpu": 100, "priority": 2})],
        {"gpu": 100}, ["b"],
    ),
    "one whose bind is under way is passed over": (
        [("a", {"cpus": 4, "priority": 1, "kind": claims.ClaimKind.ASSUMED}),
         ("b", {"cpus": 4, "priority": 2})],
        {"cpus": 4}, ["b"],
    ),
    "one that is leaving is waited for": (
        [("a", {"cpus": 4, "priority": 99, "leaves_at": NOW + 9}),
         ("b", {"cpus": 4, "priority": 2})],
        {"cpus": 4}, [],
    ),
    "a budget counts more than priority": (
        [("a", {"gpu": 100, "priority": 1, "app": "web"}), ("b", {"gpu": 100, "priority": 2})],
        {"gpu": 100}, ["b"],
    ),
    "the youngest of equals": (
        [("a", {"cpus": 4, "priority": 1, "at": 2.0}), ("b", {"cpus": 4, "priority": 1})],
        {"cpus": 4}, ["a"],
    ),
    "what holds nothing of it stays": (
        [("a", {"cpus": 4, "priority": 1}), ("b", {"gpu": 200, "priority": 2})],
        {"gpu": 200}, ["b"],
    ),
    "equal priority": ([("a", {"gpu": 200, "priority": 10})], {"gpu": 100}, GPU),
    "never so many": ([("a", {"cpus": 4, "priority": 1})], {"cpus": 12}, CPU),
}  # fmt: skip


@pytest.mark.parametrize(("held", "asked", "expected"), CASES.values(), ids=CASES)
def test_victims_on_one_node(held, asked, expected):
    stage = Mixture("n1", team_cpu="4")
    stage.budget("web")
    for name, more in held:
        assert stage.place(name, "n1", **more), name
    pod = stage.pod("high", priority=10, **asked)
    assert stage.victims(pod) == expected


HELD = st.fixed_dictionaries(
    {
        "cpus": st.sampled_from([0, 2, 2, 4]),
        "gpu": st.sampled_from([0, 0, 30, 60, 100, 200]),
        "team": st.sampled_from(["", "team"]),
        "aligned": st.booleans(),
        "priority": st.integers(0, 3),
        "kept": st.sampled_from([False, False, False, True]),
        "app": st.sampled_from(["web", "a", "b"]),
        "at": st.integers(0, 3).map(float),
        "leaves_at": st.sampled_from([-1.0, -1.0, -1.0, NOW + 5]),
        "kind": st.sampled_from([claims.ClaimKind.BOUND] * 4 + [claims.ClaimKind.ASSUMED]),
    }
)
ASKED = st.fixed_dictionaries(
    {
        "cpus": st.sampled_from([0, 2, 4]),
        "gpu": st.sampled_from([0, 50, 100, 200]),
        "team": st.sampled_from(["", "team"]),
        "aligned": st.booleans(),
        "priority": st.integers(1, 4),
    }
).filter(lambda one: one["cpus"] or one["gpu"])


def may_leave(claim, priority):
    inputs = dict(claim.pod.requirements.inputs)
    if claim.kind is not claims.ClaimKind.BOUND:
        return False
    kept = "quota.scheduling.koordinator.sh/preemptible" in inputs
    return claim.pod.leaves_at >= 0 or (claim.pod.requirements.priority < priority and not kept)


def removed(stage, wanted):
    """Let every claim leave that is wanted; return them."""
    gone = [claim for claim in tuple(stage.state.all_claims().values()) if wanted(claim)]
    for claim in gone:
        stage.leave(claim)
    return gone


LOW = {"cpus": 0, "gpu": 30, "priority": 0, "app": "a"}
FULL = {"cpus": 0, "gpu": 200, "team": "", "aligned": False, "priority": 1}


@hypothesis.example(held=[("n1", {**LOW, "app": "web"}), ("n2", LOW)], asked=FULL, guarded=0)
@hypothesis.given(
    held=st.lists(st.tuples(st.sampled_from(["n1", "n2"]), HELD), min_size=2, max_size=8),
    asked=ASKED,
    guarded=st.integers(0, 2),
)
@hypothesis.settings(max_examples=draws.at_least(100), deadline=None)
def test_victims_are_lower_help_and_none_of_them_is_in_vain(held, asked, guarded):
    stage = Mixture("n1", "n2", team_cpu="6")
    stage.budget("web", guarded)
    for number, (node, more) in enumerate(held):
        stage.place(f"p{number}", node, **more)
    pod, priority = stage.pod("high", **asked), asked["priority"]
    before = stage.state.fingerprint()
    found = stage.plan(pod)
    assert stage.state.fingerprint() == before, "planning changes nothing"
    passing = [node for node in ("n1", "n2") if not stage.refusal(pod, node)]
    if isinstance(found, planner.NoPlan):
        assert found.passes == bool(passing)
        removed(stage, lambda claim: may_leave(claim, priority))
        assert passing or all(stage.refusal(pod, node) for node in ("n1", "n2")), found.reason
        return
    chosen = found.found
    assert not passing
    assert all(may_leave(claim, priority) for claim in chosen.claims)
    assert all(claim.pod.leaves_at < 0 for claim in chosen.victims)
    for claim in chosen.claims:
        stage.leave(claim)
    assert not stage.refusal(pod, found.node), "it fits once they have left"
    for claim in chosen.victims:
        stage.change(None, claim)
        assert stage.refusal(pod, found.node), f"{claim.id} need not leave"
        stage.leave(claim)
    for claim in chosen.claims:
        stage.change(None, claim)
    if chosen.victims and not chosen.violations and guarded == 0:
        top = max(claim.pod.requirements.priority for claim in chosen.victims)
        removed(
            stage,
            # What is only assumed is no victim, also where it is being deleted.
            lambda claim: (
                may_leave(claim, top)
                and (claim.pod.leaves_at >= 0 or claim.pod.labels["app"] != "web")
            ),
        )
        for node in ("n1", "n2"):
            assert stage.refusal(pod, node), f"less important ones of {node} would be enough"
