"""Recorded rounds of the reference, and the ways in which the plug-in deliberately differs."""

import dataclasses

import pytest

from tests.descheduler.plugins.low_node_load import naive, naive_objects, recorded
from tests.reference import cases

FILE = "low_node_load"
WHY = {
    "drops_capacity": (
        "where a node's allocatable is amplified, the reference takes its capacity from the "
        "annotation alone, which names no pods, so that a threshold of pods becomes 0 and the "
        "node is overloaded for ever; we keep what the annotation does not name"
    ),
    "evicts_unmeasured": (
        "without nodeFit the reference evicts pods of which nothing was measured, such as those "
        "that have just started, which relieves nothing; we leave them"
    ),
    "books_all": (
        "the reference books room on a target for every pod that could move there, though most "
        "do not move, so that later pods find no target; we book what leaves"
    ),
    "books_no_pods": (
        "the reference lets more pods move to a target than its threshold of pods allows; we "
        "count them"
    ),
    "one_bound": (
        "the reference moves prod pods to nodes that this puts above their threshold of all "
        "pods, and other way round, from where they have to leave again; we keep both"
    ),
}


OURS = naive_objects.Switches(**dict.fromkeys(WHY, False))


def _stated(place):
    """The answer once the reference no longer does this nor what is listed before it."""
    switches = naive_objects.Switches(**dict.fromkeys(list(WHY)[: place + 1], False))

    def stated(case, due):
        if _ours(case) == due:
            return due
        return naive.answer(case.given, switches)

    return stated


def _ours(case):
    if case.name not in _FOUND:
        _FOUND[case.name] = naive.answer(case.given, OURS)
    return _FOUND[case.name]


_FOUND = {}


# No committed case shows these.
RARE = {"evicts_unmeasured", "books_no_pods"}
DIFFERENCES = {
    name: cases.Difference(why, _stated(place), committed=name not in RARE)
    for place, (name, why) in enumerate(WHY.items())
}


@pytest.mark.vectors
def test_every_recorded_round_is_reproduced():
    counted = cases.check(
        FILE,
        lambda case: recorded.Case(case.given).answer(),
        lambda case: case.expected,
        DIFFERENCES,
    )
    assert counted[""]


@pytest.mark.vectors
def test_the_second_calculation_is_that_of_the_reference():
    answers = {case.name: naive.answer(case.given) == case.expected for case in cases.read(FILE)}
    assert answers
    assert all(answers.values())


def test_every_switch_is_explained():
    assert [field.name for field in dataclasses.fields(naive_objects.Switches)] == list(WHY)
