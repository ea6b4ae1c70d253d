"""Windows, percentiles and rates."""

import gzip
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import history

REFERENCE = Path(__file__).parents[1] / "reference" / "node_metric_aggregate.jsonl.gz"
FIGURES = {"avg": "avg", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}


def test_aggregates_agree_with_the_reference():
    with gzip.open(REFERENCE, "rt") as lines:
        for number, line in enumerate(lines):
            vector = json.loads(line)
            points, expected = vector["in"]["points"], vector["out"]
            found = history.summary(value for _, value in points)
            if not points:
                assert not found, number
                continue
            for name, key in FIGURES.items():
                assert math.isclose(found[name], expected[key], rel_tol=1e-12), (number, name)
            series = history.Series(1e9)
            for at, value in sorted(points):
                series.add(at / 1000, value)
            assert len(series) == expected["count"], number
            covered = series.covered(-math.inf, math.inf) * 1000
            assert round(covered) == max(p[0] for p in points) - min(p[0] for p in points), number


@given(st.lists(st.floats(0, 1e6), min_size=1), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_a_percentile_is_a_sample_with_enough_below(values, share):
    ordered = sorted(values)
    found = history.percentile(ordered, share)
    assert found in values
    assert sum(value <= found for value in values) >= math.floor(len(values) * share) - 1


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_figures_of_a_summary_are_ordered(values):
    found = history.summary(values)
    quantiles = [found[name] for name in history.PERCENTILES]
    assert quantiles == sorted(quantiles)
    assert min(values) * 0.999 <= found["avg"] <= max(values) * 1.001


@given(
    st.lists(st.tuples(st.floats(0, 30), st.floats(0, 100)), max_size=300),
    st.floats(1, 60),
    st.floats(0, 60),
)
def test_a_window_holds_what_a_plain_list_would(steps, keep, length):
    series, plain, at = history.Series(keep), [], 0.0
    for pause, value in steps:
        at += pause
        series.add(at, value)
        plain = [(t, v) for t, v in [*plain, (at, value)] if t >= at - keep]
    assert len(series) == len(plain)
    start = at - length
    assert list(series.window(start, at)) == [v for t, v in plain if start <= t <= at]
    assert series.newest == (plain[-1] if plain else None)


def test_a_series_stays_small():
    series = history.Series(10)
    for second in range(10_000):
        series.add(second, 1.0)
    assert len(series) == 11
    assert len(series._times) < 200


def test_a_sample_from_the_past_is_dropped():
    series = history.Series(10)
    series.add(5, 1.0)
    series.add(4, 9.0)
    assert list(series.window(0, 10)) == [1.0]


def test_series_without_news_are_forgotten():
    histories = history.Histories()
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
    counters = history.Counters(longest_gap=20)
    assert [counters.rate("c", at, value) for at, value in readings] == expected


def test_counters_of_the_departed_are_forgotten():
    counters = history.Counters(longest_gap=20)
    counters.rate("gone", 0, 1)
    counters.prune(100)
    assert counters._last == {}
