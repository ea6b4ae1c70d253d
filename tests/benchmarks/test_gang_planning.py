"""The benchmark of planning plans what it says, and keeps nothing from one round to the next."""

from benchmarks import gang_planning as bench
from extender.gangs.planning import planner


def test_a_gang_is_placed_whole_in_every_round_and_one_that_is_too_large_is_refused():
    on = bench.Extender()
    on.fill(6, 2)
    fits = [planner.Member(on.pod(f"g-{number}", "8"), "default/g") for number in range(6)]
    whole, longest = bench._measured(on, fits, planner.Plan, 2)
    assert len(whole) == 2
    assert all(0 < step <= taken for step, taken in zip(longest, whole, strict=True))
    assert not on.books.nominations
    large = [planner.Member(on.pod(f"l-{number}", "60"), "default/g") for number in range(7)]
    bench._measured(on, large, planner.Refused, 1)
    assert not on.books.nominations
