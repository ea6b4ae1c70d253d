"""Daily sums: exact, bounded, and the same after they were written and read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.wire import untrusted
from domain.daily_sums import sums

FIGURES = st.floats(0, 1e6, width=32)
TEAMS = st.builds(sums.Team, FIGURES, FIGURES, FIGURES, FIGURES, FIGURES, st.integers(0, 9))
RATES = st.builds(
    sums.Rates,
    st.builds(sums.Cluster, st.just(1.0), FIGURES, FIGURES, FIGURES, FIGURES),
    st.dictionaries(st.sampled_from(["a", "b", "c"]), TEAMS),
)


def test_rates_become_sums_and_evictions_are_counted_as_they_are():
    rates = sums.Rates(sums.Cluster(1.0, 4.0, 2.0, 1.0, 0.5), {"a": sums.Team(1, 2, 3, 4, 5, 6)})
    days = sums.added(sums.added((), "2026-07-01", rates, 10), "2026-07-01", rates, 20)
    (day,) = days
    assert day.cluster == sums.Cluster(30.0, 120.0, 60.0, 30.0, 15.0)
    assert day.teams == {"a": sums.Team(30, 60, 90, 120, 150, 12)}


def test_the_oldest_days_go_and_the_smallest_teams_count_together():
    days = ()
    for number in range(1, 21):
        days = sums.added(days, f"2026-07-{number:02}", sums.Rates(sums.Cluster(1.0), {}), 1)
    assert [one.date for one in days] == [f"2026-07-{number:02}" for number in range(7, 21)]
    teams = {f"t{number:03}": sums.Team(held=float(number)) for number in range(300)}
    for _ in range(3):
        days = sums.added(days, "2026-07-20", sums.Rates(sums.Cluster(1.0), teams), 1)
    last = days[-1].teams
    assert len(last) == sums.MOST_TEAMS
    assert sum(one.held for one in last.values()) == 3 * sum(range(300))
    assert last["t299"].held == 3 * 299


def test_a_full_report_fits_into_a_config_map():
    teams = {f"{'n' * 59}{number:04}": sums.Team(*[1e8 + 0.1] * 6) for number in range(300)}
    days = ()
    for number in range(1, 21):
        rates = sums.Rates(sums.Cluster(1e6, 1e9, 1e9, 1e9, 1e9), teams)
        days = sums.added(days, f"2026-07-{number:02}", rates, 1)
    text = sums.text(days)
    assert len(text) < 700 << 10
    read = sums.read({sums.KEY: text})
    assert sums.text(read) == text


@settings(max_examples=25)
@given(st.lists(st.tuples(RATES, st.integers(0, 90)), max_size=5))
def test_what_was_written_is_read(many):
    days = ()
    for rates, seconds in many:
        days = sums.added(days, "2026-07-01", rates, seconds)
    read = sums.read({sums.KEY: sums.text(days)})
    assert sums.text(read) == sums.text(days)


@pytest.mark.parametrize("text", ["[", "{}", '[{"date": 5}]', '[{"date": "d", "cluster": ["x"]}]'])
def test_what_was_tampered_with_is_refused(text):
    with pytest.raises(untrusted.ReadError):
        sums.read({sums.KEY: text})
    assert sums.read(None) == ()
