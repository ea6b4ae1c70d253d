"""Edits that did not change are repeated each at a time of its own."""

import math

from agent.decide import turns
from agent.model import edits


def added(seconds, count=200):
    found = turns.Turns(seconds)
    for number in range(count):
        edit = edits.Edit(edits.Role.CPUSET, f"kubepods/pod{number}", "1", "because")
        found.add(edit.key, edit)
    return found


def test_each_has_one_turn_and_no_second_has_all():
    repeated = added(30.0)
    assert repeated.due(0.0) is None
    seconds = [repeated.due(float(now)) for now in range(1, 31)]
    assert max(map(len, seconds[:29])) < 30
    assert sum(map(len, seconds)) == len(set().union(*seconds)) == 200


def test_what_went_has_no_turn():
    repeated = added(30.0, 1)
    repeated.due(0.0)
    repeated.drop((edits.Role.CPUSET, "kubepods/pod0"))
    assert not any(repeated.due(float(now)) for now in range(1, 61))


def test_where_nothing_is_repeated_all_have_their_turn_once():
    repeated = added(math.inf)
    assert repeated.due(0.0) is None
    assert repeated.due(1e9) == set()
    repeated.clear()
    assert repeated.due(1e9) is None
