"""A move is accepted where it gains, by its purpose, and enough for its cost."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.koordinator.metadata import qos
from descheduler.framework import objective, protocols
from descheduler.framework.planning import history
from descheduler.gain import gain_per_eviction
from tests.descheduler import builders
from tests.descheduler.gain import roomy_targets
from tests.descheduler.gain.judged import CPU, EMPTY, NOW, judge, of, suggested


def world(loads, pods=(), **fields):
    """Nodes of 10 cores with so much of cpu used, in cores, and pods `name: (node, used)`."""
    found = [
        builders.pod(name, node, cpu=str(used or 1), band=qos.Band.BATCH, started=NOW, **more)
        for name, node, used, more in (entry if len(entry) == 4 else (*entry, {}) for entry in pods)
    ]
    usages = []
    for name, load in loads.items():
        entries = [entry for entry in pods if entry[1] == name and entry[2] is not None]
        here = {entry[0]: {"cpu": entry[2]} for entry in entries}
        system = load - sum(float(one["cpu"]) for one in here.values())
        usages.append(builders.usage(name, {"cpu": f"{round(system * 1000)}m"}, here))
    nodes = [builders.node(name, cpu="10") for name in loads]
    return builders.picture_of(nodes, found, usages, **fields)


HOT = {"a": 9, "b": 3, "c": 5}


def test_a_pod_goes_where_the_scheduler_likes_it_best_of_those_that_gain():
    found = judge(world(HOT, [("p", "a", 1)]), "p")
    assert isinstance(found, objective.Accepted)
    assert found.target == protocols.Target("b")
    assert (found.gain, found.cost) == pytest.approx((10.0, 1.0))
    assert found.figures == pytest.approx(
        {
            "spreadBefore": 24.944, "spreadAfter": 16.997,
            "source.cpu.before": 90, "source.cpu.after": 80,
            "target.cpu.before": 30, "target.cpu.after": 40,
        },
        abs=1e-2,
    )  # fmt: skip


def test_the_scheduler_is_asked_about_nodes_that_gain_alone_and_first_about_the_best():
    seen = world({**HOT, "d": 8.5}, [("p", "a", 1)])
    targets = roomy_targets.RoomyTargets(seen)
    judge(seen, "p", targets=targets)
    assert targets.asked == [("p", ("b",))]
    targets.room["b"] = 0
    assert judge(seen, "p", targets=targets).target.node == "c"
    assert targets.asked[1:] == [("p", ("b",)), ("p", ("c",))]


def test_of_nodes_that_gain_about_the_same_the_scheduler_chooses():
    seen = world({"a": 9, "b": 3.1, "c": 3.0}, [("p", "a", 1)])
    targets = roomy_targets.RoomyTargets(seen)
    assert judge(seen, "p", targets=targets).target.node == "b"
    assert targets.asked == [("p", ("b", "c"))]


@pytest.mark.parametrize(
    ("loads", "used", "reason"),
    [
        pytest.param({"a": 9, "b": 8.5}, 1, gain_per_eviction.NO_GAIN, id="all-are-hot"),
        pytest.param({"a": 9, "b": 3}, 5, gain_per_eviction.NO_GAIN, id="it-takes-the-load-along"),
        pytest.param({"a": 9}, 1, gain_per_eviction.NO_GAIN, id="no-other-node"),
        pytest.param({"a": 9, "b": 3}, None, gain_per_eviction.UNMEASURED, id="not-measured"),
        pytest.param({"a": 9, "b": 3}, 0.005, gain_per_eviction.TOO_LITTLE, id="a-tiny-pod"),
    ],
)
def test_no_move_without_a_target_that_stays_better(loads, used, reason):
    found = judge(world(loads, [("p", "a", used)]), "p")
    assert isinstance(found, objective.Declined)
    assert found.reason == reason


def test_what_stands_in_the_way_is_told_with_figures():
    found = judge(world({"a": 9, "b": 8.5}, [("p", "a", 1)]), "p")
    assert found.detail == "b would be at 95 %, the node it leaves at 80 %"
    found = judge(world({"a": 9, "b": 3}, [("p", "a", 0.005)]), "p")
    assert found.detail == "0.06 points for 1.00"
    full = roomy_targets.RoomyTargets(world(HOT, [("p", "a", 1)]))
    full.room = dict.fromkeys(full.room, 0)
    assert judge(world(HOT, [("p", "a", 1)]), "p", targets=full) == objective.Declined(
        gain_per_eviction.NO_TARGET, "0 nodes are available"
    )


def test_a_node_that_is_not_measured_is_no_target_and_no_source():
    seen = world(HOT, [("p", "a", 1)])
    old = {name: builders.usage(name, updated_at=NOW - 600) for name in "bc"}
    assert judge(dataclasses.replace(seen, usage={**seen.usage, **old}), "p").reason == (
        gain_per_eviction.NO_GAIN
    )
    gone = {name: one for name, one in seen.usage.items() if name != "a"}
    assert judge(dataclasses.replace(seen, usage=gone), "p").reason == gain_per_eviction.UNMEASURED


def test_load_of_prod_pods_alone_is_balanced_where_that_is_asked():
    seen = world({"a": 6, "b": 7}, [("p", "a", 4, {"labels": {}}), ("q", "a", 2), ("r", "b", 1)])
    prod = [
        builders.pod(pod.name, pod.node, cpu="1", band=qos.Band.PROD, started=NOW)
        for pod in seen.pods.values()
    ]
    seen = builders.picture_of(seen.nodes.values(), prod, seen.usage.values())
    assert judge(seen, "q").reason == gain_per_eviction.NO_GAIN
    found = judge(seen, "q", of_prod=True)
    assert found.target.node == "b"
    assert found.figures["source.cpu.before"] == pytest.approx(60)
    assert found.figures["target.cpu.before"] == pytest.approx(10)


def test_a_dear_pod_has_to_gain_more():
    strict = dataclasses.replace(CPU, least_gain_per_cost=8.0)
    seen = world(HOT, [("p", "a", 1), ("q", "a", 1, {"restarts_cost_seconds": 60.0})])
    assert isinstance(judge(seen, "p", options=strict), objective.Accepted)
    assert judge(seen, "q", options=strict).reason == gain_per_eviction.TOO_LITTLE


# -- what holds for every purpose ----------------------------------------------------------------

EVERY = list(protocols.Purpose)


@pytest.mark.parametrize("purpose", EVERY)
def test_a_budget_that_allows_none_keeps_the_pod(purpose):
    seen = world(HOT, [("p", "a", 1)], budgets=[builders.budget(allowed=0)])
    assert judge(seen, "p", purpose).reason == gain_per_eviction.NO_BUDGET


@pytest.mark.parametrize("purpose", [one for one in EVERY if one is not EMPTY])
def test_what_a_round_accepts_counts_for_its_next_pods(purpose):
    seen = world(HOT, [("p", "a", 1), ("q", "a", 1)], budgets=[builders.budget(allowed=1)])
    judging, targets = of(seen), roomy_targets.RoomyTargets(seen)
    asked = suggested(seen, "p", purpose)
    if purpose is protocols.Purpose.DEFRAGMENT:
        accepted = objective.Accepted(protocols.Target("b"), 5.0, 1.0)
    else:
        accepted = judging.judge(asked, targets)
    judging.accept(asked, accepted)
    other = judging.judge(suggested(seen, "q", purpose), targets)
    assert other.reason == gain_per_eviction.NO_BUDGET


@pytest.mark.parametrize(
    "purpose", [protocols.Purpose.BALANCE, protocols.Purpose.COMPLY, protocols.Purpose.DEFRAGMENT]
)
def test_no_pod_goes_where_others_came_from(purpose):
    seen = world({"a": 9, "b": 3}, [("p", "a", 1)])
    moves = {"uid-x": history.Moved(NOW - 600, "default", "b", target="a")}
    found = judge(seen, "p", purpose, moves=moves)
    assert found.reason in {gain_per_eviction.NO_GAIN, gain_per_eviction.NO_TARGET}


def test_without_the_state_of_the_scheduler_only_what_needs_no_target_goes():
    seen = world(HOT, [("p", "a", 1)])
    judging = of(seen)
    for purpose in EVERY:
        found = judging.judge(suggested(seen, "p", purpose), None)
        is_removal = purpose is protocols.Purpose.REMOVE
        assert found == (
            objective.Accepted(cost=1.0) if is_removal else objective.Declined(
                gain_per_eviction.NO_STATE
            )
        )  # fmt: skip


def test_a_pod_that_has_ended_may_always_be_removed():
    seen = world(HOT, [("p", "a", 1, {"phase": "Failed"})], budgets=[builders.budget(allowed=0)])
    found = judge(seen, "p", protocols.Purpose.REMOVE)
    assert isinstance(found, objective.Accepted)


def test_what_breaks_a_rule_needs_a_target_and_no_gain():
    seen = world({"a": 1, "b": 9}, [("p", "a", 1)])
    found = judge(seen, "p", protocols.Purpose.COMPLY)
    assert found == objective.Accepted(protocols.Target("b"), 0.0, 1.0)
    assert judge(seen, "p", protocols.Purpose.COMPLY, targets=None, options=CPU) == found
    nowhere = judge(seen, "p", protocols.Purpose.COMPLY, targets=_full(seen))
    assert nowhere.reason == gain_per_eviction.NO_TARGET


def _full(seen):
    found = roomy_targets.RoomyTargets(seen)
    found.room = dict.fromkeys(found.room, 0)
    return found


# -- emptying ------------------------------------------------------------------------------------


def crowd(count=3, loads=None, **more):
    return world(loads or {"a": 4, "b": 4, "c": 4}, [(f"p{n}", "a", 1, more) for n in range(count)])


def emptied(seen, count=3, **fields):
    along = tuple(seen.pods[f"uid-p{n}"] for n in range(1, count))
    return judge(seen, "p0", EMPTY, along=along, **fields)


def test_a_node_is_emptied_as_a_whole_and_its_gain_is_shared():
    seen = crowd()
    targets = roomy_targets.RoomyTargets(seen)
    before = dict(targets.room)
    judging = of(seen)
    along = (seen.pods["uid-p1"], seen.pods["uid-p2"])
    first = suggested(seen, "p0", EMPTY, along=along)
    accepted = judging.judge(first, targets)
    assert (accepted.gain, accepted.cost) == (50 / 3, 1.0)
    assert targets.room == before, "nothing is moved by asking"
    judging.accept(first, accepted)
    for name in ("p1", "p2"):
        found = judging.judge(suggested(seen, name, EMPTY), targets)
        assert found.gain == 50 / 3
        judging.accept(suggested(seen, name, EMPTY), found)


def test_a_pod_without_a_target_keeps_all_others():
    seen = crowd()
    targets = roomy_targets.RoomyTargets(seen)
    targets.room = {"a": 0, "b": 2000, "c": 0}
    found = emptied(seen, targets=targets)
    assert found == objective.Declined(
        gain_per_eviction.NOT_EMPTIED, "default/p2: 0 nodes are available"
    )
    targets.room = {"a": 0, "b": 0, "c": 0}
    assert emptied(seen, targets=targets).reason == gain_per_eviction.NO_TARGET


def test_a_budget_delays_the_evictions_of_a_node_and_forbids_them_where_it_allows_none():
    seen = dataclasses.replace(crowd(), budgets=[builders.budget(allowed=1)])
    judging, targets = of(seen), roomy_targets.RoomyTargets(seen)
    first = suggested(seen, "p0", EMPTY, along=(seen.pods["uid-p1"], seen.pods["uid-p2"]))
    judging.accept(first, judging.judge(first, targets))
    later = judging.judge(suggested(seen, "p1", EMPTY), targets)
    assert later.reason == gain_per_eviction.NO_BUDGET
    none = dataclasses.replace(seen, budgets=[builders.budget(allowed=0)])
    assert emptied(none).reason == gain_per_eviction.NO_BUDGET


def test_a_node_full_of_dear_pods_is_not_worth_it():
    dear = dataclasses.replace(CPU, least_gain_per_cost=5.0)
    assert isinstance(emptied(crowd(), options=dear), objective.Accepted)
    found = emptied(crowd(restarts_cost_seconds=300.0), options=dear)
    assert found.reason == gain_per_eviction.TOO_LITTLE


def test_a_node_of_one_pod_is_emptied_by_its_move():
    seen = crowd(1)
    assert judge(seen, "p0", EMPTY).gain == 50.0


# -- properties ----------------------------------------------------------------------------------

NODES = st.lists(st.integers(5, 95), min_size=2, max_size=6)
PODS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 30)), min_size=1, max_size=12)


def generated(loads, pods):
    names = [f"n{number}" for number in range(len(loads))]
    room = dict(zip(names, loads, strict=True))
    placed = []
    for number, (place, used) in enumerate(pods):
        node = names[place % len(names)]
        if room[node] >= used:
            room[node] -= used
            placed.append((f"p{number}", node, used / 10))
    return world({name: load / 10 for name, load in zip(names, loads, strict=True)}, placed)


def played(seen):
    """Let every pod be suggested, and make the moves that are accepted."""
    judging, targets = of(seen), roomy_targets.RoomyTargets(seen)
    moves = []
    for pod in sorted(seen.pods.values(), key=lambda pod: pod.key):
        before = judging.spread().after
        asked = suggested(seen, pod.name)
        found = judging.judge(asked, targets)
        if isinstance(found, objective.Accepted):
            targets.move(pod, found.target.node)
            judging.accept(asked, found)
            assert judging.spread().after < before
            assert judging.spread().after == pytest.approx(found.figures["spreadAfter"])
            assert found.gain >= CPU.least_gain_per_cost * found.cost
            moves.append((pod.name, pod.node, found.target.node))
    return moves, judging.spread()


@given(loads=NODES, pods=PODS)
def test_accepted_moves_never_increase_the_spread_and_no_nodes_exchange_pods(loads, pods):
    seen = generated(loads, pods)
    moves, spread = played(seen)
    assert spread.after <= spread.before
    pairs = {(source, target) for _, source, target in moves}
    assert not pairs & {(target, source) for source, target in pairs}
    assert played(seen) == (moves, spread), "the same every time"
