"""Recorded load and made-up day curves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.simulation.load import series
from tests import draws

GIB = 1 << 30
WEB = series.Asks("shop/web", 4.0, 8 * GIB, series.Use(1.5, 2 * GIB))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("seconds,pod,cpu,memory\n0,shop/web,500m,1Gi\n60,shop/web,2,3Gi\n", id="csv"),
        pytest.param(
            '{"seconds": 60, "pod": "shop/web", "cpu": 2, "memory": "3Gi"}\n\n'
            '{"seconds": 0, "pod": "shop/web", "cpu": "500m", "memory": "1Gi"}\n',
            id="jsonl",
        ),
    ],
)
def test_a_figure_holds_until_the_next_one(text):
    found = series.read(text)
    assert found.until == 60
    uses = [found.use(WEB, at) for at in (0, 59, 60, 4000)]
    assert uses == [(0.5, GIB), (0.5, GIB), (2.0, 3 * GIB), (2.0, 3 * GIB)]


def test_a_namespace_stands_for_its_pods_and_others_stay_as_measured():
    found = series.read("seconds,pod,cpu,memory\n0,shop/*,1,1Gi\n")
    assert found.use(WEB, 5) == (1.0, GIB)
    other = WEB._replace(key="x/y")
    assert found.use(other, 5) == other.measured
    assert found.use(other._replace(measured=None), 5) == (4.0, 8 * GIB)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no rows"),
        ("seconds,pod,cpu\n0,a/b,1\n", "column memory is missing"),
        ("seconds,pod,cpu,memory\nx,a/b,1,1\n", "row 2: seconds"),
        ("seconds,pod,cpu,memory\n0,web,1,1\n", "row 2: pod: write namespace/name"),
        ("seconds,pod,cpu,memory\n0,a/b,much,1\n", "row 2: cpu"),
        ("seconds,pod,cpu,memory\n0,a/b,1,-5\n", "row 2: memory"),
        ("seconds,pod,cpu,memory\n-1,a/b,1,1\n", "row 2: seconds"),
        ('{"seconds": 0}', "row 1: pod"),
        ("{", "row 1: it is no JSON"),
    ],
)
def test_what_cannot_be_used_names_row_and_field(text, why):
    with pytest.raises(series.SeriesError, match=why):
        series.read(text)


@settings(max_examples=draws.at_least(30))
@given(st.integers(0, 10 * 86_400), st.integers(0, 999))
def test_a_day_curve_stays_between_its_bounds_and_repeats(seconds, name):
    pod = WEB._replace(key=f"shop/{name}")
    cpu, memory = series.DayCurve().use(pod, seconds)
    assert 0.8 - 1e-9 <= cpu <= 2.4 + 1e-9
    assert memory == 4 * GIB
    assert series.DayCurve().use(pod, seconds + 86_400).cpu == pytest.approx(cpu, abs=1e-6)
