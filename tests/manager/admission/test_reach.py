"""Whether somebody answers: neither one lost probe nor one lucky one decides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manager.admission import reach

PATIENCE = reach.Patience(away_seconds=10, back_seconds=10, longest_back_seconds=60)


def after(*findings: tuple[float, str], begin: reach.Standing | None = None) -> reach.Standing:
    standing = begin or reach.Standing()
    for now, problem in findings:
        standing = reach.probed(standing, problem, now, PATIENCE)
    return standing


@pytest.mark.parametrize(
    ("findings", "away"),
    [
        pytest.param([(0, "x")], None, id="one failure"),
        pytest.param([(0, "x"), (20, "x")], None, id="two failures, however long"),
        pytest.param([(0, "x"), (1, "x"), (2, "x")], None, id="three failures at once"),
        pytest.param([(0, "x"), (5, "x"), (10, "x")], True, id="three failures for long enough"),
        pytest.param([(0, "x"), (5, ""), (10, "x"), (15, "x")], None, id="an answer in between"),
        pytest.param([(0, ""), (5, ""), (10, "")], False, id="answers for long enough"),
    ],
)
def test_decided_when_it_lasts(findings, away) -> None:
    assert after(*findings).away is away


def test_what_was_decided_stays_until_the_opposite_lasts() -> None:
    gone = after((0, "x"), (5, "x"), (10, "x"))
    assert after((12, ""), (14, "x"), (16, ""), begin=gone).away is True
    assert after((12, ""), (17, ""), (22, ""), begin=gone).away is False


def test_who_comes_and_goes_is_trusted_later_and_later() -> None:
    waits = []
    standing, now = reach.Standing(), 0.0
    for _ in range(5):
        while standing.away is not True:
            standing = reach.probed(standing, "x", now, PATIENCE)
            now += 1
        began = now
        while standing.away:
            standing = reach.probed(standing, "", now, PATIENCE)
            now += 1
        waits.append(round(now - 1 - began))
    assert waits == [10, 20, 40, 60, 60]
    later = now + PATIENCE.memory_seconds
    assert reach.probed(standing, "", later, PATIENCE).times == ()


@given(st.lists(st.tuples(st.booleans(), st.floats(0.1, 20)), max_size=60))
def test_it_is_away_only_after_failures_that_lasted(steps) -> None:
    standing, now, history = reach.Standing(), 0.0, []
    for failed, pause in steps:
        now += pause
        history.append((now, failed))
        before = standing.away
        standing = reach.probed(standing, "x" if failed else "", now, PATIENCE)
        if standing.away is not before:
            run = [t for t, f in history[::-1]]
            same = next((n for n, (_, f) in enumerate(history[::-1]) if f != failed), len(run))
            assert standing.away is failed
            assert same >= 3
            assert now - run[same - 1] >= 10
