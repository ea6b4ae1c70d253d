"""Gang groups are planned in a fair order, and those that fail do not keep the planner busy."""

import pytest
from hypothesis import given, strategies

from extender.gangs import queue


def waiting(group, priority=0, since=0.0):
    return queue.Waiting(group, priority, since)


def of(*groups, **options):
    made = queue.Queue(**options)
    made.take(groups)
    return made


@pytest.mark.parametrize(
    ("groups", "first"),
    [
        pytest.param([waiting("a"), waiting("b", priority=5)], "b", id="priority"),
        pytest.param([waiting("a", since=2.0), waiting("b", since=1.0)], "b", id="age"),
        pytest.param([waiting("b"), waiting("a")], "a", id="id"),
    ],
)
def test_line(groups, first):
    made = of(*groups)
    assert made.next(10.0) == first
    assert made.places()[first] == 1


def test_failures_wait_longer_each_time_but_not_for_ever():
    made = of(waiting("a"), longest_pause=60.0, look_again=30.0)
    assert [made.failed("a", 100.0) for _ in range(8)] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert made.next(129.0) == ""
    assert made.next(130.0) == "a"


def test_a_group_that_waits_lets_others_pass():
    made = of(waiting("a", priority=9), waiting("b"))
    made.failed("a", 0.0)
    assert made.next(0.5) == "b"
    assert made.next(0.5, busy={"b"}) == ""
    assert made.next(1.0) == "a"
    assert made.due() == 0.0
    assert made.due(busy={"b"}) == 1.0


def test_a_plan_ends_the_back_off():
    made = of(waiting("a"))
    for _ in range(5):
        made.failed("a", 0.0)
    made.placed("a")
    assert made.next(0.0) == "a"
    assert made.failed("a", 0.0) == 1


def test_freed_capacity_brings_groups_forward_one_after_the_other():
    made = of(*(waiting(name) for name in "abc"))
    for _ in range(5):
        for name in "abc":
            made.failed(name, 0.0)
    made.freed(10.0)
    assert [made.next(10.0), made.next(10.0, busy={"a"})] == ["a", ""]
    assert made.next(10.06, busy={"a"}) == "b"
    assert made.next(10.11, busy={"a", "b"}) == "c"


def test_freed_capacity_does_not_plan_one_group_all_the_time():
    made = of(waiting("a"))
    tries = 0
    for step in range(600):
        now = step * 0.1
        made.freed(now)
        if made.next(now):
            tries += 1
            made.failed("a", now)
    assert 8 <= tries <= 25


def test_groups_that_are_gone_are_forgotten():
    made = of(waiting("a"), waiting("b"))
    made.failed("a", 0.0)
    made.take([waiting("b")])
    made.take([waiting("a"), waiting("b")])
    assert len(made) == 2
    assert made.next(0.0) == "a"


@given(
    strategies.lists(
        strategies.tuples(
            strategies.sampled_from("abcde"), strategies.sampled_from(["fail", "freed", "place"])
        ),
        max_size=30,
    )
)
def test_every_group_is_due_within_the_time_after_which_all_are_looked_at(steps):
    made = of(*(waiting(name) for name in "abcde"), look_again=30.0)
    for number, (name, what) in enumerate(steps):
        if what == "fail":
            made.failed(name, float(number))
        elif what == "freed":
            made.freed(float(number))
        else:
            made.placed(name)
    seen = set()
    while name := made.next(len(steps) + 31.0, busy=seen):
        seen.add(name)
    assert seen == set("abcde")
