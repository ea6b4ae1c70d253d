"""Conditions: what is written, what stays, and when an event tells of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import conditions
from domain.conditions import Condition

NOW = 1_700_000_000.0
LATER = NOW + 60
GOOD = Condition("Accepted", True, "Fine", "as it should be")
BAD = Condition("Accepted", False, "Broken", "spec.x: no such x")
TYPES = ("Accepted", "Ready")
FOREIGN = {"type": "Theirs", "status": "True", "reason": "R", "message": ""}


def merged(present, *ours, now=NOW, generation=3):
    return conditions.merged(present, ours, now, types=TYPES, generation=generation)


def test_a_condition_keeps_its_moment_while_its_status_stays():
    (first,) = merged(None, GOOD)
    assert first == {
        "type": "Accepted",
        "status": "True",
        "reason": "Fine",
        "message": "as it should be",
        "lastTransitionTime": "2023-11-14T22:13:20Z",
        "observedGeneration": 3,
    }
    assert merged([first], GOOD, now=LATER) is None
    (next_,) = merged([first], GOOD, now=LATER, generation=4)
    assert next_ == {**first, "observedGeneration": 4}
    (bad,) = merged([first], BAD, now=LATER)
    assert (bad["status"], bad["lastTransitionTime"]) == ("False", "2023-11-14T22:14:20Z")


def test_conditions_of_others_stay_and_ours_that_are_not_said_any_more_go():
    ready = {**FOREIGN, "type": "Ready"}
    after = merged([ready, FOREIGN], GOOD, generation=None)
    assert [one["type"] for one in after] == ["Theirs", "Accepted"]
    assert "observedGeneration" not in after[1]
    many = [{**FOREIGN, "type": str(number)} for number in range(64)]
    assert len(merged(many, GOOD)) < 64


@pytest.mark.parametrize(
    ("present", "told"),
    [
        (None, ["Fine", "Broken"]),
        ([{"type": "Accepted", "status": "True", "reason": "Fine"}], ["Broken"]),
        ([{"type": "Accepted", "status": "True", "reason": "Other"}], ["Fine", "Broken"]),
        ([{"type": "Accepted", "status": "False", "reason": "Fine"}], ["Fine", "Broken"]),
    ],
    ids=["first", "unchanged", "another reason", "holds again"],
)
def test_events_tell_of_what_changed_and_of_what_does_not_hold(present, told):
    ours = [GOOD, BAD._replace(type="Ready")]
    assert [one.reason for one in conditions.outcomes(present, ours)] == told


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "status", "reason", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_whatever_stands_there_is_merged_once(present):
    after = merged(present, GOOD)
    assert after is not None
    assert merged(after, GOOD, now=LATER) is None
    list(conditions.outcomes(present, [GOOD]))
