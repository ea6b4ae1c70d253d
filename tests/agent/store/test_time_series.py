"""Windows, percentiles and rates."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.store import time_series
from tests.reference import cases

FIGURES = ("avg", "p50", "p90", "p95", "p99")


def aggregates(case: cases.Case):
    points = case.given["points"]
    found = time_series.summary(value for _, value in points)
    series = time_series.Series(1e9, most=len(points) + 1)
    for at, value in sorted(points, key=lambda point: point[0]):
        series.add(at / 1000, value)
    if not points:
        return {"missing": sorted(set(FIGURES) - set(found)), "count": len(series)}
    covered = series.covered(-math.inf, math.inf) * 1000
    return [*(found[name] for name in FIGURES), series.newest[1], len(series), covered]


def recorded(case: cases.Case):
    out = case.expected
    if not case.given["points"]:
        missing = [name for name in FIGURES if "error" in out[name]]
        return {"missing": sorted(missing), "count": out["count"]}
    figures = [out[name] for name in (*FIGURES, "last", "countValue", "durationMs")]
    return pytest.approx(figures, rel=1e-9)


@pytest.mark.vectors
def test_aggregates_agree_with_the_recorded_ones():
    cases.check("node_metric_aggregate", aggregates, recorded, {})


@given(st.lists(st.floats(0, 1e6), min_size=1), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_a_percentile_is_a_sample_with_enough_below(values, share):
    ordered = sorted(values)
    found = time_series.percentile(ordered, share)
    assert found in values
    assert sum(value <= found for value in values) >= math.floor(len(values) * share) - 1


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_figures_of_a_summary_are_ordered(values):
    found = time_series.summary(values)
    quantiles = [found[name] for name in time_series.PERCENTILES]
    assert quantiles == sorted(quantiles)
    assert min(values) * 0.999 <= found["avg"] <= max(values) * 1.001


@given(
    st.lists(st.tuples(st.floats(0, 30), st.floats(0, 100)), max_size=300),
    st.floats(1, 60),
    st.floats(0, 60),
)
def test_a_window_holds_what_a_plain_list_would(steps, keep, length):
    series, plain, at = time_series.Series(keep), [], 0.0
    for pause, value in steps:
        at += pause
        series.add(at, value)
        plain = [(t, v) for t, v in [*plain, (at, value)] if t >= at - keep]
    assert len(series) == len(plain)
    start = at - length
    assert list(series.window(start, at)) == [v for t, v in plain if start <= t <= at]
    # Of several samples of one moment the first one stands.
    assert series.newest == (next(p for p in plain if p[0] == plain[-1][0]) if plain else None)


def test_a_series_stays_small():
    series = time_series.Series(10)
    for second in range(10_000):
        series.add(second, 1.0)
    assert len(series) == 11
    assert len(series._times) < 200


def test_a_long_series_holds_means_over_equal_parts():
    series = time_series.Series(100_000.0, most=100)
    for second in range(10_000):
        series.add(second, float(second % 10))
    assert 50 <= len(series) <= 100
    values = series.window(0, 10_000)
    assert sum(values) / len(values) == pytest.approx(4.5, rel=0.1)
    assert series.covered(0, 10_000) > 9500
    assert series.newest == (9999, 9.0)


def test_a_series_that_got_shorter_is_fine_again():
    series = time_series.Series(10_000.0, most=100)
    for second in range(1000):
        series.add(second, 1.0)
    series.keep_seconds = 20.0
    for second in range(1000, 1100):
        series.add(second, 1.0)
    assert len(series.window(1080, 1100)) == 20


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_sample(value):
    series = time_series.Series(10)
    series.add(1, value)
    assert not len(series)
    assert series.newest is None


def test_all_series_together_stay_within_their_bound():
    samples = time_series.Histories(most_total=20_000)
    for second in range(600):
        for number in range(100):
            samples.add(("pod", str(number), "cpu"), second, 1.0 + second % 2, 10_000)
        samples.prune(second)
    assert samples.samples <= 20_000 * 1.1
    assert samples.average(("pod", "7", "cpu"), 0, 600) == pytest.approx(1.5, rel=0.02)
    for second in range(600, 700):
        samples.add(("pod", "7", "cpu"), second, 1.0, 100)
    samples.prune(20_000)
    assert len(samples) == 0


def test_series_are_fine_again_once_there_is_room():
    samples = time_series.Histories(most_total=5000)
    for second in range(400):
        for number in range(50 if second < 200 else 1):
            samples.add(str(number), second, 1.0, 300 if number else 100)
        samples.prune(second)
    for second in range(400, 2000):
        samples.add("0", second, 1.0, 100)
        samples.prune(second)
    assert len(samples.get("0").window(1900, 2000)) == 100


def test_what_went_meanwhile_is_not_kept():
    samples = time_series.Histories()
    samples.add(("a",), 0, 1.0, 10)
    samples.add(("b",), 100, 1.0, 10)
    words = samples.words()
    samples.prune(100)
    assert [one.key for one in samples.kept(words)] == [("b",)]


def test_a_churn_of_keys_is_bounded():
    samples = time_series.Histories(most_series=50)
    for number in range(200):
        samples.add(str(number), 0.0, 1.0, 10)
    assert len(samples) == 50
    assert samples.refused == 150
    samples.prune(1000)
    samples.add("new", 1000, 1.0, 10)
    assert len(samples) == 1


def test_series_are_kept_and_taken_back_later():
    samples, again = time_series.Histories(), time_series.Histories()
    for second in range(100):
        samples.add(("node", "cpu"), second, float(second), 60)
        samples.add("unnamed", second, 1.0, 60)
    assert again.restore(samples.kept(), later=1000.0, now=1110.0) == 1
    series = again.get(("node", "cpu"))
    assert list(series.window(0, 2000)) == [float(second) for second in range(50, 100)]
    assert series.newest == (1099.0, 99.0)
    again.add(("node", "cpu"), 1120.0, 5.0, 60)
    assert list(series.window(1060, 2000)) == [*map(float, range(60, 100)), 5.0]


def test_samples_of_the_future_are_not_taken_back():
    samples, again = time_series.Histories(), time_series.Histories()
    for second in range(100):
        samples.add(("node", "cpu"), second, 1.0, 1000)
    again.restore(samples.kept(), later=0.0, now=50.0)
    assert again.get(("node", "cpu")).newest == (50.0, 1.0)
    assert again.restore(samples.kept(), later=0.0, now=50.0) == 0
    nothing = time_series.Histories()
    assert nothing.restore(samples.kept(), later=5000.0, now=50.0) == 0


def test_a_quantile_of_an_interval():
    samples = time_series.Histories()
    for second in range(101):
        samples.add("a", second, float(second), 1000)
    assert samples.quantile("a", 0.9, 41, 100) == 94.0
    assert samples.quantile("a", 0.9, 200, 300) is None
    assert samples.quantile("b", 0.9, 0, 300) is None


def test_a_sample_from_the_past_is_dropped():
    series = time_series.Series(10)
    series.add(5, 1.0)
    series.add(4, 9.0)
    assert list(series.window(0, 10)) == [1.0]


def test_series_without_news_are_forgotten():
    histories = time_series.Histories()
    histories.add("a", 0, 1.0, keep_seconds=10)
    histories.add("b", 100, 2.0, keep_seconds=10)
    histories.prune(100)
    assert histories.get("a") is None
    assert histories.average("b", 90, 100) == 2.0
    assert histories.average("a", 0, 100) is None
    assert histories.newest("b", since=100) == 2.0
    assert histories.newest("b", since=101) is None
    assert len(histories) == 1


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([(0, 100)], [None]),
        ([(0, 100), (2, 104)], [None, 2.0]),
        ([(0, 100), (1, 90), (2, 95)], [None, None, 5.0]),
        ([(0, 100), (30, 200), (31, 201)], [None, None, 1.0]),
        ([(0, 100), (0, 200)], [None, None]),
    ],
    ids=["first", "growing", "went back", "long gap", "same moment"],
)
def test_rates(readings, expected):
    counters = time_series.Counters(longest_gap=20)
    assert [counters.rate("c", at, value) for at, value in readings] == expected


def test_counters_of_the_departed_are_forgotten():
    counters = time_series.Counters(longest_gap=20)
    counters.rate("gone", 0, 1)
    counters.prune(100)
    assert counters._last == {}


def test_new_series_take_the_place_of_those_without_news():
    found = time_series.Histories(most_series=10)
    for at in range(100):
        found.add("stays", float(at), 1.0, 300.0)
        found.add(("pod", str(at)), float(at), 1.0, 300.0)
    # Whoever came in the last minute fills the place; later ones wait until that is over.
    assert len(found) <= 10
    assert found.get("stays") is not None
    found.prune(100.0)
    assert found.crowded
    for at in range(200, 205):
        found.add("stays", float(at), 1.0, 300.0)
        found.add(("pod", str(at)), float(at), 1.0, 300.0)
    assert found.get(("pod", "204")) is not None
    for at in (210.0, 220.0, 230.0):
        found.prune(at)
    assert not found.crowded
