"""What one tick asks for, out of what all strategies want."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import catalogue, planner
from agent.model import edits, state, strategy_settings
from agent.store import time_series

QUOTA, SHARES = edits.Role.CPU_QUOTA, edits.Role.CPU_SHARES
ENFORCE, OBSERVE, OFF = planner.Mode.ENFORCE, planner.Mode.OBSERVE, planner.Mode.OFF


class Wants:
    """A strategy that wants what the test says."""

    def __init__(self, *wanted, evictions=()):
        self.decision = edits.Decision("because", wanted, evictions)
        self.asked = 0

    def __call__(self, look):
        self.asked += 1
        return self.decision

    def now_wants(self, *wanted):
        self.decision = edits.Decision("because", wanted)


def edit(role, group, value):
    return edits.Edit(role, group, value, "because")


def look(now=0.0, picture=None):
    picture = picture or state.NodeState(at=0, thresholds=state.Thresholds(True))
    return catalogue.Look(picture, strategy_settings.Strategies(), time_series.Histories(), now)


def values(wanted):
    return {(one.role, one.group): one.value for one in wanted}


@pytest.fixture
def first():
    return Wants(edit(QUOTA, "a", "1"))


@pytest.fixture
def second():
    return Wants(edit(QUOTA, "a", "2"), edit(SHARES, "a", "3"))


def plan(*deciders, modes=None, seconds=0.0, defended=False, gates=("G",)):
    entries = [
        catalogue.Strategy(f"s{number}", ("G",), decider, seconds, defended)
        for number, decider in enumerate(deciders)
    ]
    return planner.Planner(entries, gates, modes or {}, ENFORCE)


def test_of_two_wishes_the_first_strategy_has_its_way(first, second):
    found = plan(first, second).step(look())
    assert values(found.wanted) == {(QUOTA, "a"): "1", (SHARES, "a"): "3"}
    assert set(found.decisions) == {"s0", "s1"}


def test_what_did_not_change_is_repeated_now_and_then(first):
    planned = plan(first)
    assert planned.step(look(0)).wanted
    assert not planned.step(look(1)).wanted
    first.now_wants(edit(QUOTA, "a", "5"))
    assert values(planned.step(look(2)).wanted) == {(QUOTA, "a"): "5"}
    assert planned.step(look(planner.REPEAT_SECONDS)).wanted


def of_pods(count):
    """Three edits of each of so many pods."""
    places = ("", "/c1", "/c2")
    return [edit(SHARES, f"k/b/pod{at}{below}", "3") for at in range(count) for below in places]


@pytest.mark.parametrize("tick", [0.25, 1.0, 7.0, 31.0])
def test_the_repetition_is_spread_over_the_ticks(tick):
    """Each once within the time, those of one pod together, and never all in one tick."""
    wanted = of_pods(300)
    planned = plan(Wants(*wanted))
    assert len(planned.step(look(0)).wanted) == len(wanted)
    last, longest, most, now = dict.fromkeys(values(wanted), 0.0), 0.0, 0, 0.0
    while now < 4 * planner.REPEAT_SECONDS:
        now += tick
        found = [one.group for one in planned.step(look(now)).wanted]
        pods = {name.split("/")[2] for name in found}
        assert len(found) == 3 * len(pods)
        most = max(most, len(found))
        for name in found:
            longest = max(longest, now - last[SHARES, name])
            last[SHARES, name] = now
    assert longest <= planner.REPEAT_SECONDS + tick
    if tick < planner.REPEAT_SECONDS:
        assert min(last.values()) >= now - planner.REPEAT_SECONDS - tick
        assert most <= 2 * len(wanted) * tick / planner.REPEAT_SECONDS + 30


def test_after_a_pause_and_after_a_clock_that_went_back_everything_is_repeated():
    planned, wanted = plan(Wants(*of_pods(20))), of_pods(20)
    for now in (100.0, 100.0 + planner.REPEAT_SECONDS, 5.0):
        assert len(planned.step(look(now)).wanted) == len(wanted)


def test_what_has_to_hold_is_looked_at_in_every_tick(first):
    planned = plan(first, defended=True)
    assert all(planned.step(look(second)).wanted for second in range(5))


def test_what_nobody_wants_any_more_is_put_back(first, second):
    planned = plan(first, second)
    planned.step(look(0))
    first.now_wants()
    assert values(planned.step(look(1)).wanted) == {(QUOTA, "a"): "2"}
    second.now_wants()
    found = values(planned.step(look(2)).wanted)
    assert found == {(QUOTA, "a"): None, (SHARES, "a"): None}
    assert not planned.step(look(3)).wanted


@pytest.mark.parametrize("how", ["mode", "gate"])
def test_a_strategy_that_is_switched_off_lets_go(first, how):
    modes = {"s0": ENFORCE}
    planned = plan(first, modes=modes)
    planned.step(look(0))
    if how == "mode":
        modes["s0"] = OFF
        assert values(planned.step(look(1)).wanted) == {(QUOTA, "a"): None}
        assert first.asked == 1
        return
    found = plan(first, gates=()).step(look(0))
    assert found.wanted == ()
    assert "gate G is off" in found.decisions["s0"].reason


def test_while_nothing_is_known_everything_stands(first):
    planned = plan(first)
    planned.step(look(0))
    first.decision = edits.undecided("a figure")
    assert not planned.step(look(1)).wanted
    found = planned.step(look(planner.REPEAT_SECONDS))
    assert values(found.wanted) == {(QUOTA, "a"): "1"}
    assert found.decisions["s0"].reason == "waiting for a figure"


def test_what_is_only_observed_is_told_once(first, second):
    planned = plan(first, second, modes={"s1": OBSERVE})
    found = planned.step(look(0))
    assert values(found.wanted) == {(QUOTA, "a"): "1"}
    assert values(found.observed) == {(SHARES, "a"): "3"}
    assert planned.step(look(1)).observed == ()
    second.now_wants(edit(SHARES, "a", "4"))
    assert values(planned.step(look(2)).observed) == {(SHARES, "a"): "4"}


@pytest.mark.parametrize(
    "scope",
    [
        planner.Scope(namespaces=frozenset({"default"})),
        planner.Scope(classes=frozenset({"LS"})),
    ],
    ids=["namespace", "class"],
)
def test_pods_may_be_observed_only(placed, scope):
    other = placed("other", quality="BE")
    namespace = msgspec.structs.replace(other.pod.metadata, namespace="batch")
    other = msgspec.structs.replace(
        other, pod=msgspec.structs.replace(other.pod, metadata=namespace)
    )
    groups = ("a", "a/app", "a/pause", "other/app", "k/b")
    wants = Wants(
        *(edit(QUOTA, group, "1") for group in groups),
        evictions=tuple(
            edits.Eviction("ns", name, f"uid-{name}", "because") for name in ("a", "other")
        ),
    )
    pods = (placed("a", sandbox="a/pause"), other)
    picture = state.NodeState(at=0, thresholds=state.Thresholds(True), pods=pods)
    entry = catalogue.Strategy("s0", (), wants)
    found = planner.Planner([entry], (), {}, ENFORCE, scope).step(look(0, picture))
    assert {one.group for one in found.wanted} == {"other/app", "k/b"}
    assert {one.group for one in found.observed} == {"a", "a/app", "a/pause"}
    assert [one.name for one in found.evictions] == ["other"]
    assert [one.name for one in found.observed_evictions] == ["a"]
    defended = catalogue.Strategy("s0", (), wants, defended=True)
    found = planner.Planner([defended], (), {}, ENFORCE, scope).step(look(0, picture))
    assert len(found.wanted) == len(groups)


@given(st.text(min_size=1), st.integers(0, 100))
def test_a_node_that_enforces_goes_on_when_the_share_grows(name, percent):
    assert not planner.enforces(name, 0)
    assert planner.enforces(name, 100)
    if planner.enforces(name, percent):
        assert planner.enforces(name, min(percent + 1, 100))


def test_a_share_of_the_nodes_enforces():
    names = [f"node-{number}" for number in range(1000)]
    assert 200 <= sum(planner.enforces(name, 25) for name in names) <= 300
    held = planner.Planner([], (), {}, ENFORCE, planner.Scope(ceiling=OBSERVE))
    assert held.mode("any") is OBSERVE


def test_evictions_go_by_their_strategy(first):
    one, other = (edits.Eviction("ns", name, name, "because") for name in "ab")
    enforced, observed = Wants(evictions=(one, one)), Wants(evictions=(other,))
    planned = plan(first, enforced, observed, modes={"s2": OBSERVE})
    found = planned.step(look())
    assert found.evictions == (one,)
    assert found.observed_evictions == (other,)


def test_a_slow_strategy_decides_when_pods_or_settings_change(first, placed):
    planned = plan(first, seconds=10.0)
    calm = state.NodeState(at=0, thresholds=state.Thresholds(True))
    for second in range(10):
        planned.step(look(second, calm))
    assert first.asked == 1
    planned.step(look(10, calm))
    assert first.asked == 2
    planned.step(look(11, msgspec.structs.replace(calm, pods=(placed(),))))
    assert first.asked == 3
    planned.step(look(12, msgspec.structs.replace(calm, thresholds=state.Thresholds(False))))
    assert first.asked == 4


def test_strategies_that_decide_seldom_do_so_at_different_times_and_each_in_time():
    deciders = [Wants() for _ in range(4)]
    planned, seconds, before = plan(*deciders, seconds=8.0), [], [0] * 4
    for now in range(64):
        planned.step(look(float(now)))
        asked = [one.asked for one in deciders]
        seconds.append([new > old for new, old in zip(asked, before, strict=True)])
        before = asked
    assert all(seconds[0])
    assert all(sum(those) <= 1 for those in seconds[1:])
    for turns in zip(*seconds, strict=True):
        times = [now for now, decides in enumerate(turns) if decides]
        assert all(later - sooner <= 8 for sooner, later in itertools.pairwise(times))
        assert len(times) <= 9


def test_after_everything_was_put_back_it_starts_anew(first):
    planned = plan(first)
    planned.step(look(0))
    planned.forget()
    assert planned.step(look(1)).wanted
