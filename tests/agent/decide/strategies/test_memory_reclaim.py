"""Memory is taken back from batch containers: how much, from whom, and from whom not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide.strategies import memory_reclaim
from tests import draws

MIB, GIB = 1 << 20, 1 << 30
RULES = memory_reclaim.Rules(most_bytes=64 * MIB)


def reading(group="a", current=950 * MIB, limit=1000 * MIB, ratio=95, scale=20, pressure=0.0):
    return memory_reclaim.Reading(group, current, limit, ratio, scale, pressure)


def amounts(*readings, rules=RULES, pauses=(), now=0.0):
    wanted, _ = memory_reclaim.decide(readings, rules, dict(pauses), now)
    return {one.group: one.amount for one in wanted}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, 52 * MIB, id="five percent below the mark, and a little further"),
        pytest.param({"current": 900 * MIB}, None, id="not above where it begins"),
        pytest.param({"current": 2000 * MIB}, 64 * MIB, id="no more than the node may"),
        pytest.param({"pressure": 5.0}, None, id="its tasks wait"),
        pytest.param({"pressure": None}, None, id="nobody says whether its tasks wait"),
        pytest.param({"ratio": 0}, None, id="no mark"),
        pytest.param({"ratio": 3}, None, id="a mark of nothing"),
        pytest.param({"limit": 0}, None, id="no limit"),
        pytest.param({"current": 900 * MIB + 4096, "scale": 0}, None, id="not worth it"),
    ],
)
def test_how_much_is_taken_back(changes, expected):
    assert amounts(reading(**changes)) == ({} if expected is None else {"a": expected})


def test_the_fullest_is_first_and_all_together_stay_within_the_bound():
    found = amounts(reading("emptier", current=930 * MIB), reading("fuller", current=940 * MIB))
    assert found == {"fuller": 42 * MIB, "emptier": 22 * MIB}


def test_the_reason_names_the_figures():
    (wanted,), _ = memory_reclaim.decide([reading(pressure=1.5)], RULES, {}, 0.0)
    assert wanted.reason == (
        "uses 95 % of its limit, reclaim begins at 90 %; its tasks wait 1.5 % of the time"
    )


def test_a_group_that_waits_is_left_alone_for_longer_and_longer():
    pauses, now, seen = {}, 0.0, []
    for _ in range(6):
        _, pauses = memory_reclaim.decide([reading(pressure=50.0)], RULES, pauses, now)
        assert amounts(reading(), pauses=pauses, now=now) == {}
        seen.append(pauses["a"].seconds)
        now = pauses["a"].until
    assert seen == [60, 120, 240, 480, 900, 900]
    assert amounts(reading(), pauses=pauses, now=now)
    assert memory_reclaim.decide([], RULES, pauses, now) == ((), {})


def test_a_group_that_has_nothing_to_give_is_left_alone():
    pauses = memory_reclaim.taken({}, "a", RULES, 0.0, all_of_it=False)
    assert amounts(reading(), pauses=pauses, now=59.0) == {}
    assert amounts(reading(), pauses=pauses, now=60.0)
    assert memory_reclaim.taken(pauses, "a", RULES, 60.0, all_of_it=True) == {}


@settings(max_examples=draws.at_least(60))
@given(
    st.lists(
        st.builds(
            memory_reclaim.Reading,
            st.sampled_from("abc"),
            st.integers(0, 1 << 45),
            st.integers(0, 1 << 45),
            st.integers(-5, 200),
            st.integers(0, 20_000),
            st.none() | st.floats(0, 100),
        ),
        unique_by=lambda one: one.group,
    )
)
def test_never_more_than_allowed_nor_than_there_is(readings):
    found = amounts(*readings)
    assert sum(found.values()) <= RULES.most_bytes
    current = {one.group: one.current for one in readings}
    assert all(0 < amount <= current[group] for group, amount in found.items())
    assert all(amount % memory_reclaim.PAGE == 0 for amount in found.values())
