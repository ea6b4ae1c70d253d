"""Values of the cluster in a what-if: worked out once, and only where a plug-in reads them."""

import pytest

from extender.framework import advanced_values, views


class Sum:
    """A tracker that adds up what it is told, and counts how often."""

    def __init__(self, name):
        self.name, self.told = name, 0

    def cluster(self, old, delta):
        self.told += 1
        return old + delta


@pytest.fixture
def trackers():
    return [Sum("A"), Sum("B")]


@pytest.fixture
def values(trackers):
    return advanced_values.AdvancedValues({"A": 1, "B": 10, "C": 100}, trackers, [1, 2])


def test_they_are_those_that_following_every_change_gives(values, trackers):
    eager = {"A": 1, "B": 10, "C": 100}
    for change in (1, 2):
        views.advance(eager, trackers, change)
    assert values == eager == {"A": 4, "B": 13, "C": 100}
    assert len(values) == 3


def test_what_no_plugin_reads_is_not_worked_out(values, trackers):
    assert values["A"] == values["A"] == 4
    assert values.get("D") is None
    assert [one.told for one in trackers] == [2, 0]


def test_they_can_be_advanced_again(values, trackers):
    again = advanced_values.AdvancedValues(values, trackers, [3])
    assert again["B"] == 16
    assert values["B"] == 13
    assert trackers[0].told == 0
