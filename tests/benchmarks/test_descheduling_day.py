"""A short day of a few machines, played without moves, as the reference plans, and as we do."""

import pytest

from benchmarks.descheduling import day, day_tally, day_trace


def test_moves_gain_and_none_is_taken_back():
    size = day_trace.Size(nodes=24, minutes=75)
    still, *references, ours = day.days(size, 3)
    assert still.moves == 0
    assert ours.moves > 0
    assert ours.hot_hours < still.hot_hours
    assert (ours.idle, ours.late, ours.twice, ours.exchanges) == (0, 0, 0, 0)
    for one in references:
        assert ours.moves <= one.moves
        assert f"| 3 (held out) | {one.name} |" in day.table({3: [one]})


@pytest.mark.parametrize(
    ("gain", "counts"),
    [
        pytest.param((2.0, 1.0, 1.0), (0, 0, 0), id="gains"),
        pytest.param((-1.0, 3.0, 3.0), (1, 0, 0), id="too eager, and lucky"),
        pytest.param((2.0, -1.0, -1.0), (0, 1, 1), id="load changed by itself"),
        pytest.param((2.0, -1.0, 1.0), (0, 1, 0), id="later moves made it useless"),
        pytest.param((2.0, 1.0, -1.0), (0, 0, 0), id="later moves made it useful"),
    ],
)
def test_it_is_told_when_a_move_was_without_gain_and_why(gain, counts):
    score = day.Score("", 0.0, 1, (day_tally.Gain(*gain),), 0, 0, 0, 0.0)
    assert (score.idle, score.late, score.overtaken) == counts
