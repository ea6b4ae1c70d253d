"""A short day of a few machines, played without moves, as the reference plans, and as we do."""

from benchmarks.descheduling import day, day_trace


def test_moves_gain_and_none_is_taken_back():
    size = day_trace.Size(nodes=24, minutes=75)
    still, *references, ours = day.days(size, 3)
    assert still.moves == 0
    assert ours.moves > 0
    assert ours.hot_hours < still.hot_hours
    assert (ours.idle, ours.twice, ours.exchanges) == (0, 0, 0)
    for one in references:
        assert ours.moves <= one.moves
        assert f"| {one.name} |" in day.table([one])
