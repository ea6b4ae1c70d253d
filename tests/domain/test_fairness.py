"""Places that tenants share: nobody takes those of another, whoever comes first."""

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as some

from domain import fairness

GROUPS = some.sampled_from("abcde")


def counted(slots):
    return collections.Counter(key.partition("/")[0] for key in slots)


def test_a_flood_leaves_room_for_who_comes_later():
    slots = fairness.Slots(10)
    for number in range(50):
        slots.offer(f"flood/{number}", "flood", number)
    assert len(slots) == 10
    assert slots.offer("quiet/0", "quiet", 0) == (True, "flood/9")
    assert [slots.offer(f"quiet/{n}", "quiet", n)[0] for n in range(1, 9)] == [True] * 4 + [
        False
    ] * 4
    assert counted(slots) == {"flood": 5, "quiet": 5}
    assert "flood/0" in slots, "who came first stays"


def test_turns_go_round_and_who_was_served_comes_last():
    slots = fairness.Slots(10)
    for key in ("a/1", "a/2", "a/3", "b/1", "c/1"):
        slots.offer(key, key[0], key)
    assert list(slots) == ["a/1", "b/1", "c/1", "a/2", "a/3"]
    slots.served("a")
    slots.served("gone")
    assert list(slots) == ["b/1", "c/1", "a/1", "a/2", "a/3"]


@given(
    some.lists(some.tuples(GROUPS, some.integers(0, 30), some.booleans()), min_size=12),
    some.integers(0, 12),
)
def test_shares_hold_whatever_comes_and_goes(steps, most):
    """A group below an even share of the places never loses one, and is never refused one."""
    slots, present = fairness.Slots(most), {}
    for group, number, stays in steps:
        key = f"{group}/{number}"
        if key in slots:
            if not stays:
                slots.pop(key)
                del present[key]
            continue
        before = counted(slots)
        taken, lost = slots.offer(key, group, number)
        if lost:
            del present[lost]
            assert before[lost[0]] == max(before.values()) > before[group]
        if taken:
            present[key] = number
        else:
            assert sum(before.values()) == most
            assert before[group] + 1 >= max(before.values(), default=0)
    assert slots.mapping() == present
    assert len(slots) <= most


@given(some.lists(some.tuples(GROUPS, some.integers(0, 9))), some.integers(1, 8))
def test_the_latest_of_a_group_stay_when_all_are_pushed(steps, most):
    slots = fairness.Slots(most)
    for group, number in steps:
        slots.push(f"{group}/{number}", group, number)
        assert slots.get(f"{group}/{number}") == number
        assert len(slots) <= most
    if steps:
        last = steps[-1][0]
        assert counted(slots)[last] >= 1


@pytest.mark.parametrize(
    ("taken", "group", "most", "room"),
    [
        ({}, "a", 0, False),
        ({}, "a", 1, True),
        ({"a": 500}, "a", 500, False),
        ({"a": 500}, "b", 500, True),
        ({"a": 500, "b": 249}, "b", 500, True),
        ({"a": 500, "b": 250}, "b", 500, False),
        ({"a": 3, "b": 2}, "a", 500, True),
    ],
    ids=str,
)
def test_room_is_shared_evenly_where_it_runs_short(taken, group, most, room):
    assert fairness.has_room(taken, group, most) is room
