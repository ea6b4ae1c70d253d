"""The classes of tasks in a cluster: counted in constant time, and bounded where they are used."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.devices.allocation import fragmentation
from extender.plugins.device_share import classes
from tests import processor_time


def kind(cpu, gpus=1, selector=""):
    return fragmentation.Task(cpu, 1, gpus), selector


def counted(counts):
    found = classes.Classes()
    for one, count in counts:
        found = found.changed(one, count)
    return found


KINDS = st.builds(kind, st.integers(0, 3), st.integers(0, 1), st.sampled_from(("", "a")))


@given(st.lists(KINDS, max_size=12), st.randoms(use_true_random=False))
def test_counts_depend_on_the_pods_and_not_on_the_order_of_events(pods, random):
    there = counted((one, 1) for one in pods)
    moved = random.sample(pods, len(pods))
    assert counted((one, 1) for one in moved) == there
    before = counted([(kind(9), 2)])
    left = before
    for sign, each in ((1, pods), (-1, moved)):
        for one in each:
            left = left.changed(one, sign)
    assert left == before
    assert (there.total, dict(there.counts)) == (len(pods), {one: pods.count(one) for one in pods})


@given(st.lists(KINDS, max_size=12))
def test_the_common_classes_are_the_shortest_list_that_covers_the_share(pods):
    counts = {one: pods.count(one) for one in pods}
    ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    found = counted(counts.items()).common()
    assert found == ranked[: len(found)]
    needed = classes.SHARE * len(pods)
    assert sum(count for _, count in found) >= needed
    assert not found or sum(count for _, count in found[:-1]) < needed


@pytest.mark.parametrize(
    ("rare", "common"),
    [
        pytest.param(classes.MOST_ALIKE, classes.MOST_TASKS, id="as many as are looked at"),
        pytest.param(classes.MOST_ALIKE + 1, 1, id="more than that"),
    ],
)
def test_pods_that_are_each_of_a_class_of_their_own_do_not_hide_the_others(rare, common):
    found = counted([(kind(1, selector="jobs"), 9), *((kind(n), 1) for n in range(2, rare + 2))])
    shown = found.common()
    assert len(shown) == common
    assert shown[0] == (kind(1, selector="jobs"), 9)


def test_classes_without_gpus_are_bounded_too():
    found = counted((kind(n, gpus=0), 2) for n in range(classes.MOST + 5)).common()
    assert len(found) <= classes.MOST


def test_an_event_costs_little_among_many_classes():
    there = counted((kind(n), 1 + n % 40) for n in range(20_000))
    with processor_time.below(0.15):
        for n in range(1000):
            there = there.changed(kind(n), 1)
    with processor_time.below(0.1):
        for _ in range(10):
            there.common()
