"""The sample plug-in at every extension point, on a cluster state without an API server."""

import hypothesis
import msgspec
import numpy as np
import pytest
from hypothesis import strategies as st

from extender.framework import verdicts
from extender.framework.eviction import preemption
from extender.framework.nodes import hints
from extender.state import allocations, claims, deltas
from tests.extender.clusters.slots_cluster import NOW, SlotsCluster
from tests.extender.sample_plugin import allocation, plugin, tracker


@pytest.fixture
def slots():
    return SlotsCluster()


@pytest.mark.parametrize(
    ("text", "granted"),
    [
        pytest.param("0,3", allocation.Slots((0, 3)), id="as written"),
        pytest.param("1", allocation.Slots((1,)), id="fewer than asked"),
        pytest.param("0,1,2", None, id="more than asked"),
        pytest.param("1,1", None, id="one twice"),
        pytest.param("-1", None, id="below zero"),
        pytest.param("99999999999999999999", None, id="no node has it"),
        pytest.param("zero", None, id="no number"),
    ],
)
def test_what_was_granted_is_read_from_the_pod_and_bounded(slots, text, granted):
    pod = slots.record("p", 2, node="n1", numbers=text)
    assert pod.allocations.get(allocation.NAME) == granted
    assert pod.unreadable == (() if granted else (allocation.NAME,))


def test_what_is_written_is_read_back(slots):
    granted = {allocation.NAME: allocation.Slots((2, 5))}
    texts = allocations.written(slots.pipeline.codecs, granted)
    assert slots.record("p", 2, node="n1", numbers=texts[allocation.NUMBERS]).allocations == granted


def test_slots_are_given_once_until_none_is_left(slots):
    slots.node("n1", 3)
    assert slots.place("n1", "a", 2) == (0, 1)
    assert slots.place("n1", "b", 1) == (2,)
    assert slots.place("n1", "c", 1) == plugin.TOO_FEW.reason
    claim = slots.state.view().node(0).claims[0]
    slots.state.apply(deltas.ClaimDelta(claim.id, claim, None))
    assert slots.place("n1", "c", 1) == (0,)


def test_a_team_has_a_cap_in_the_whole_cluster(slots):
    slots.node("n1", 4)
    slots.node("n2", 4)
    slots.place("n1", "a", 4, team="red")
    assert slots.place("n2", "b", 2, team="red") == (0, 1)
    assert slots.place("n2", "c", 1, team="red") == plugin.CAPPED.reason
    assert slots.place("n2", "d", 1, team="blue") == (2,)


def test_a_node_for_one_team_is_refused_to_others_and_comes_first_for_it(slots):
    slots.node("n1", 4, dedicated_to="red")
    slots.node("n2", 2)
    assert slots.refusal(slots.info("p", 1), "n1") == plugin.FOREIGN.reason
    view, rows = slots.state.view(), np.array([0, 1])
    for team, wanted in (("red", "n1"), ("", "n2")):
        cycle = slots.pipeline.cycle(slots.info("p", 1, team=team), view)
        scores = slots.pipeline.score(cycle, view, rows, NOW)
        assert view.names[int(rows[scores.argmax()])] == wanted


@pytest.mark.parametrize(
    ("policy", "taken", "answer"),
    [
        pytest.param("none", "0", (1, 2), id="none: the lowest"),
        pytest.param("single-numa-node", "0", (2, 3), id="single: all of one NUMA node"),
        pytest.param("single-numa-node", "0,2", "NUMA", id="single: refused"),
        pytest.param("restricted", "0,2", "NUMA", id="restricted: refused, one could have done"),
        pytest.param("best-effort", "0,2", (1, 3), id="best effort: scattered"),
    ],
)
def test_slots_are_aligned_by_the_policy_of_the_node(slots, policy, taken, answer):
    slots.node("n1", 4, zones="2", topology_policy=policy)
    slots.hold("a", len(taken.split(",")), node="n1", numbers=taken)
    found = slots.place("n1", "p", 2)
    assert found == answer or "NUMA topology policy" in found


def test_the_framework_knows_the_topology_through_the_plugin(slots):
    slots.node("n1", 4, zones="2", topology_policy="restricted")
    topology = slots.plugin.topology(None, slots.state.view(), 0)
    assert topology == hints.Topology(hints.Policy.RESTRICTED, 2)


def test_members_of_a_barrier_wait_for_the_last_one(slots):
    slots.node("n1", 4)
    answers = []
    for name in ("a", "b", "c"):
        slots.place("n1", name, 1, barrier="gang/3")
        view = slots.state.view()
        cycle = slots.pipeline.cycle(slots.info(name, 1, barrier="gang/3"), view)
        answers.append(slots.pipeline.permit(cycle, view, NOW))
    assert [found.keys for found in answers] == [("gang",), ("gang",), ()]
    assert [found.wakes for found in answers] == [(), (), ("gang",)]
    assert answers[0].until == NOW + plugin.PATIENCE_SECONDS
    assert answers[0].expired().status is plugin.INCOMPLETE


@pytest.mark.parametrize(
    ("priority", "slots_asked", "expected"),
    [
        pytest.param(10, 1, ("low",), id="the lowest one is enough"),
        pytest.param(10, 2, ("low", "mid"), id="as many as it takes"),
        pytest.param(10, 3, plugin.TOO_FEW, id="one is not lower"),
        pytest.param(5, 2, plugin.TOO_FEW, id="equal is not lower"),
        pytest.param(1, 1, preemption.NOT_LOWER, id="nobody is lower"),
    ],
)
def test_victims_are_the_pods_of_lowest_priority(slots, priority, slots_asked, expected):
    slots.node("n1", 3)
    for number, (name, rank) in enumerate({"high": 50, "mid": 5, "low": 1}.items()):
        slots.hold(name, 1, node="n1", priority=rank, numbers=str(number))
    pod = slots.info("p", slots_asked, priority=priority)
    found = preemption.victims(slots.pipeline, pod, slots.state.view(), 0, NOW)
    if isinstance(expected, tuple):
        assert found == verdicts.Victims(expected)
    else:
        assert found.status is expected


def test_nobody_leaves_for_a_pod_that_passes_or_that_no_victim_helps(slots):
    slots.node("n1", 2, dedicated_to="red")
    slots.hold("low", 2, node="n1", numbers="0,1", team="red")
    view = slots.state.view()
    foreign = slots.info("p", 1, priority=9)
    found = preemption.victims(slots.pipeline, foreign, view, 0, NOW)
    assert found.status is plugin.FOREIGN, "what nobody can make room for is refused as it is"
    slots.node("n2", 1)
    view = slots.state.view()
    found = preemption.victims(slots.pipeline, slots.info("p", 1), view, view.rows["n2"], NOW)
    assert found == verdicts.Victims(())


class Ruthless(plugin.SlotsPlugin):
    """Names victims that it must not name."""

    def victims(self, prepared, view, row):
        return verdicts.Victims(tuple(claim.id for claim in view.node(row).claims))


def test_the_framework_protects_pods_of_no_lower_priority(slots):
    slots.node("n1", 1)
    slots.hold("equal", 1, node="n1", numbers="0", priority=5)
    slots.pipeline.selectors[allocation.NAME] = Ruthless(9)
    pod = slots.info("p", 1, priority=5)
    found = preemption.victims(slots.pipeline, pod, slots.state.view(), 0, NOW)
    assert found.status is preemption.NOT_LOWER


def test_a_reserver_ends_what_was_kept_for_the_pod(slots):
    slots.node("n1", 2)
    kept = msgspec.structs.replace(slots.record("p", 1), node="n1")
    claim = claims.Claim(
        "nominated/p",
        claims.ClaimKind.NOMINATED,
        "n1",
        kept,
        {allocation.NAME: allocation.Slots((0,))},
        usable_by="p",
    )
    slots.state.apply(deltas.ClaimDelta(claim.id, None, claim))
    before = slots.state.fingerprint()
    view = slots.state.view()
    granted = slots.pipeline.reserve(slots.pipeline.cycle(slots.info("p", 1), view), view, 0)
    (change,) = granted[allocation.NAME].changes
    assert slots.state.fingerprint() == before, "deciding changes nothing"
    slots.state.apply(change)
    assert slots.state.view().node(0).claims == ()
    slots.state.apply(deltas.inverse(change))
    assert slots.state.fingerprint() == before


@pytest.mark.parametrize(
    ("delta", "helps"),
    [
        pytest.param(deltas.NodeDelta("n1", None, None), True, id="a node"),
        pytest.param(deltas.ReportDelta("n1", None, None), False, id="a report"),
        pytest.param("gone", True, id="slots that are given back"),
        pytest.param("came", False, id="slots that are taken"),
    ],
)
def test_only_changes_that_give_slots_back_are_looked_at(slots, delta, helps):
    claim = slots.hold("a", 1, node="n1", numbers="0")
    made = {
        "gone": deltas.ClaimDelta("a", claim, None),
        "came": deltas.ClaimDelta("a", None, claim),
    }
    assert slots.plugin.could_help(None, made.get(delta, delta)) is helps


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "d"]),
        st.integers(1, 3),
        st.sampled_from(["n1", "n2"]),
        st.sampled_from(["", "red"]),
        st.sampled_from(["", "gang/2"]),
    ),
    max_size=10,
)


@hypothesis.given(steps=STEPS)
def test_no_slot_is_given_twice_and_every_value_is_that_of_a_rebuilt_state(steps):
    slots, held, cap = SlotsCluster(), {}, 6
    slots.node("n1", 4, zones="2", topology_policy="best-effort")
    slots.node("n2", 3)
    for name, count, node, team, barrier in steps:
        if name in held:
            claim = held.pop(name)
            slots.state.apply(deltas.ClaimDelta(name, claim, None))
            continue
        if not isinstance(slots.place(node, name, count, team=team, barrier=barrier), str):
            held[name] = slots.state.claim(name)
    view = slots.state.view()
    for row in range(2):
        numbers = [n for claim in view.node(row).claims for n in tracker.slots_of(claim)]
        assert len(numbers) == len(set(numbers))
    assert slots.holders().by_team.get("red", 0) <= cap
    fresh = slots.state.rebuilt()
    assert fresh.view().cluster == view.cluster
    assert fresh.fingerprint() == slots.state.fingerprint()
    for name, claim in reversed(held.items()):
        slots.state.apply(deltas.ClaimDelta(name, claim, None))
    assert slots.holders() == slots.plugin.start()
