"""Load arithmetic: worked figures and properties."""

import math

import hypothesis
import pytest
from hypothesis import strategies as st

from api import names
from api.koordinator.metadata import qos
from domain.usage import load

GI = 1 << 30
FACTORS = {"cpu": 85, "memory": 70}
WIDTH = 2


@pytest.mark.parametrize(
    ("requests", "limits", "band", "factors", "expected"),
    [
        pytest.param(
            {"cpu": 4000, "memory": 8 * GI},
            {"cpu": 4000, "memory": 8 * GI},
            qos.Band.PROD,
            FACTORS,
            {"cpu": 3400, "memory": 6012954214},
            id="request equals limit",
        ),
        pytest.param(
            {"cpu": 4000}, {"cpu": 8000}, qos.Band.PROD, {"cpu": 85}, {"cpu": 6800}, id="limit"
        ),
        pytest.param({"cpu": 4000}, {}, qos.Band.NONE, {"cpu": 80}, {"cpu": 3200}, id="no limit"),
        pytest.param(
            {}, {"cpu": 4000}, qos.Band.PROD, {"cpu": 110}, {"cpu": 4000}, id="never over a limit"
        ),
        pytest.param(
            {names.BATCH_CPU: 8000},
            {},
            qos.Band.BATCH,
            FACTORS,
            {"cpu": 6800, "memory": 200 << 20},
            id="batch",
        ),
        pytest.param(
            {names.MID_CPU: 1000},
            {},
            qos.Band.MID,
            FACTORS,
            {"cpu": 850, "memory": 0},
            id="mid has no guess",
        ),
        pytest.param({"cpu": 9}, {}, qos.Band.FREE, FACTORS, {"cpu": 0, "memory": 0}, id="free"),
        pytest.param(
            {}, {}, qos.Band.PROD, FACTORS, {"cpu": 250, "memory": 200 << 20}, id="guesses"
        ),
    ],
)
def test_estimate(requests, limits, band, factors, expected):
    assert load.estimate(requests, limits, band, factors) == expected


def test_worked_example():
    report = load.Report(
        updated_at=1000.0,
        interval=60.0,
        usage=(30000, 100 * GI),
        system=(0, 0),
        windows=(),
        pods={"ns/a": (True, (1000, 2 * GI))},
    )
    residents = [
        load.Resident("ns/a", (6800, 12025908429), True, 970.0),
        load.Resident("ns/c", (8500, 200 << 20), True, 100.0),
    ]
    sums = load.accumulate(report, residents, WIDTH, include_system=False)
    assert sums.node_delta == (14300, 12025908429 - 2 * GI + (200 << 20))
    before = load.basis(report, prod=False).expected(sums)
    full = load.plus(before, (3400, 6012954214))
    assert full == (47700, 123475276595)
    assert load.room(load.full(64000, 65), before[0]) < 3400
    assert load.room(load.full(64000, 75), before[0]) >= 3400


@pytest.mark.parametrize(
    ("kind", "duration", "expected"),
    [
        pytest.param("p95", 0.0, (3, 3), id="longest window"),
        pytest.param("p95", 300.0, (2, 2), id="exact window"),
        pytest.param("p95", 60.0, None, id="exact window is missing"),
        pytest.param("p50", 0.0, (1, 1), id="kind is missing: plain usage"),
    ],
)
def test_aggregated_usage(kind, duration, expected):
    windows = (load.Window(300.0, {"p95": (2, 2)}), load.Window(600.0, {"p95": (3, 3)}))
    report = load.Report(0.0, 60.0, (1, 1), (0, 0), windows, {})
    assert report.aggregated(kind, duration) == expected


def test_a_missing_exact_window_falls_back_to_the_sum_of_estimates():
    report = load.Report(0.0, 60.0, (1, 1), (0, 0), (), {})
    sums = load.Sums((0, 0), (5, 5), (0, 0), (7, 8))
    assert load.basis(report, prod=False, kind="p95", duration=300.0).expected(sums) == (7, 8)


@pytest.mark.parametrize(
    ("after_scheduled", "after_initialized", "initialized", "due"),
    [
        pytest.param(None, None, 50.0, None, id="off"),
        pytest.param(30, None, 50.0, 130.0, id="after scheduling"),
        pytest.param(30, 20, 50.0, 70.0, id="initialisation wins"),
        pytest.param(30, 20, None, 130.0, id="not initialised yet"),
        pytest.param(0, 0, 50.0, None, id="zero is off"),
    ],
)
def test_until_when_an_estimate_counts(after_scheduled, after_initialized, initialized, due):
    assert load.due_time(100.0, initialized, after_scheduled, after_initialized) == due


@hypothesis.given(
    total=st.integers(1, 1 << 52), percent=st.integers(1, 100), used=st.integers(0, 1 << 52)
)
def test_room_is_the_largest_amount_that_keeps_the_rounded_share(total, percent, used):
    def share(amount):
        return (200 * amount + total) // (2 * total)

    free = load.room(load.full(total, percent), used)
    assert share(used + free) <= percent
    assert share(used + free + 1) > percent
    assert math.isclose(used + free, (percent + 0.5) / 100 * total, rel_tol=1e-9, abs_tol=1.01)


def test_nothing_is_restricted_without_a_threshold_or_a_capacity():
    assert load.full(0, 50) is load.full(9, 0) is None
    assert load.room(None, 7) == load.UNLIMITED


@pytest.mark.parametrize("prod", [True, False])
def test_which_thresholds_decide(prod):
    usage, aggregated = load.Thresholds({"cpu": 65}), load.Thresholds({"cpu": 50}, "p95")
    profile = load.Profile(usage, load.Thresholds({"cpu": 40}), aggregated)
    chosen, compares_prod = profile.chosen(prod=prod)
    assert (chosen.percent["cpu"], compares_prod) == ((40, True) if prod else (50, False))
    plain = load.Profile(usage, load.Thresholds({"cpu": 0}), load.Thresholds())
    assert plain.chosen(prod=prod) == (usage, False)


def _report(universe, cpu, memory):
    def over(scale):
        amounts = {"cpu": cpu * scale, "memory": memory * scale}
        return tuple(amounts.get(name, 0) for name in universe)

    return load.Report(
        1.0,
        60.0,
        over(4),
        over(1),
        (load.Window(300.0, {"p95": over(5)}),),
        {"a/p": (True, over(2)), "a/q": (False, None)},
        universe,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(("cpu", "memory"), ("cpu", "gpu", "memory"), id="one more"),
        pytest.param(("cpu", "gpu", "memory"), ("cpu", "memory"), id="one less"),
        pytest.param(("cpu", "gpu", "memory"), ("cpu", "disk", "memory"), id="another"),
        pytest.param(("memory", "cpu"), ("cpu", "memory"), id="another order"),
        pytest.param(("cpu", "memory"), ("cpu", "memory"), id="the same"),
    ],
)
def test_a_report_is_restated_over_other_resources(before, after):
    assert load.restated(_report(before, 3, 7), after) == _report(after, 3, 7)


def test_a_report_of_unnamed_resources_stays_as_it_is():
    report = _report((), 3, 7)
    assert load.restated(report, ("cpu",)) is report
