import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.koordinator.metadata.qos import Band
from domain.lending import colocation


@pytest.mark.parametrize(
    ("allocatable", "requested", "percent", "expected"),
    [
        pytest.param(128_000, 100_000, 30, 8_400, id="128-cores-100-requested-lend-8.4"),
        pytest.param(128_000, 80_000, 30, 14_400, id="128-cores-80-requested-lend-14.4"),
        pytest.param(128_000, 128_000, 30, 0, id="full-node-lends-nothing"),
        pytest.param(128_000, 140_000, 30, 0, id="overbooked-node-lends-nothing"),
        pytest.param(128_000, 100_000, 0, 0, id="zero-percent-lends-nothing"),
        pytest.param(128_000, 100_000, -5, 0, id="negative-percent-lends-nothing"),
        pytest.param(128_000, 100_000, 150, 42_000, id="more-than-everything-is-legal"),
        pytest.param(1_001, 0, 33, 330, id="cut-not-rounded"),
    ],
)
def test_lendable(allocatable: int, requested: int, percent: int, expected: int) -> None:
    assert colocation.lendable(allocatable, requested, percent) == expected


amounts = st.integers(min_value=0, max_value=1 << 50)


@given(allocatable=amounts, requested=amounts, percent=st.integers(-10, 200))
def test_lendable_stays_between_nothing_and_the_share(
    allocatable: int, requested: int, percent: int
) -> None:
    lent = colocation.lendable(allocatable, requested, percent)
    assert 0 <= lent * 100 <= max(allocatable - requested, 0) * max(percent, 0)


@given(allocatable=amounts, requested=amounts, more=amounts, percent=st.integers(0, 200))
def test_lendable_falls_when_more_is_requested(
    allocatable: int, requested: int, more: int, percent: int
) -> None:
    before = colocation.lendable(allocatable, requested, percent)
    assert colocation.lendable(allocatable, requested + more, percent) <= before


@pytest.mark.parametrize(
    ("written", "cpu", "memory"),
    [
        pytest.param("usage", "usage", "usage", id="usage"),
        pytest.param("request", "usage", "request", id="request-is-no-basis-for-cpu"),
        pytest.param("maxUsageRequest", "maxUsageRequest", "maxUsageRequest", id="max"),
        pytest.param("overcommitRatio", "overcommitRatio", "overcommitRatio", id="ratio"),
        pytest.param("something", "usage", "usage", id="unknown-is-usage"),
    ],
)
def test_policies(written: str, cpu: str, memory: str) -> None:
    assert colocation.cpu_policy(written) == cpu
    assert colocation.memory_policy(written) == memory


POD = colocation.Amount(4_000, 8)
USED = colocation.Amount(1_000, 9)
NIL = colocation.NOTHING


@pytest.mark.parametrize(
    ("band", "usage", "exclusive", "expected"),
    [
        pytest.param(Band.PROD, USED, False, (POD, USED, (4_000, 9), POD, POD), id="measured"),
        pytest.param(Band.MID, USED, False, (POD, USED, (4_000, 9), POD, NIL), id="mid-is-online"),
        pytest.param(Band.NONE, None, False, (POD, POD, NIL, POD, POD), id="not-measured-yet"),
        pytest.param(
            Band.PROD, USED, True, (POD, (4_000, 9), (4_000, 9), POD, POD), id="exclusive"
        ),
        pytest.param(Band.FREE, USED, False, (NIL, NIL, NIL, POD, NIL), id="free-only-holds"),
        pytest.param(Band.BATCH, USED, False, (NIL,) * 5, id="batch"),
    ],
)
def test_demand_of_a_pod(
    band: Band, usage: colocation.Amount | None, exclusive: bool, expected: object
) -> None:
    assert colocation.demand(band, POD, usage, exclusive=exclusive) == expected


def test_demand_of_a_measured_pod_that_is_not_listed() -> None:
    assert colocation.unlisted(Band.PROD, USED) == (NIL, USED, USED, NIL, NIL)
    assert colocation.unlisted(Band.BATCH, USED) == colocation.NO_DEMAND


demands = st.lists(
    st.builds(
        colocation.demand,
        st.sampled_from(Band),
        st.builds(colocation.Amount, amounts, amounts),
        st.none() | st.builds(colocation.Amount, amounts, amounts),
        exclusive=st.booleans(),
    ),
    max_size=6,
)


@given(demands)
def test_sums_do_not_depend_on_the_order(parts: list[colocation.Demand]) -> None:
    total = colocation.summed(parts)
    assert total == colocation.summed(reversed(parts))
    for index in range(4):
        assert total[index].cpu == sum(part[index].cpu for part in parts)
        assert total[index].memory == sum(part[index].memory for part in parts)


def holding(**changed: int) -> colocation.Holding:
    figures = {
        "capacity": 64_000,
        "allocatable": 62_000,
        "reserved": 2_000,
        "system": 3_000,
        "requested": 40_000,
        "used": 20_000,
        "peak": 45_000,
        "firm": 42_000,
    }
    return colocation.Holding(**{**figures, **changed})


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param({"policy": "usage", "reclaim_percent": 60}, 15_400, id="usage"),
        pytest.param({"policy": "request", "reclaim_percent": 90}, 15_600, id="request"),
        pytest.param({"policy": "maxUsageRequest", "reclaim_percent": 90}, 9_600, id="max"),
        pytest.param({"policy": "overcommitRatio", "overcommit_percent": 30}, 6_000, id="ratio"),
        pytest.param({"reclaim_percent": 10}, 0, id="never-negative"),
        pytest.param({"reclaim_percent": 120}, 53_800, id="margin-may-be-negative"),
        pytest.param({"reclaim_percent": 60, "cap_percent": 10}, 6_400, id="capped"),
        pytest.param({"reclaim_percent": 60, "cap_percent": 90}, 15_400, id="cap-not-reached"),
    ],
)
def test_lend(rule: dict[str, object], expected: int) -> None:
    policy = colocation.Policy(rule.get("policy", "usage"))
    lending = colocation.lend(colocation.Rule(**{**rule, "policy": policy}), holding())
    assert lending.value == expected
    if lending.cap is None:
        first, *taken = (value for _, value in lending.terms)
        share = 100 if lending.percent is None else lending.percent
        assert lending.value == max(first - sum(taken), 0) * share // 100


def test_what_is_reserved_counts_where_the_system_uses_less() -> None:
    rule = colocation.Rule(reclaim_percent=60)
    assert colocation.lend(rule, holding(reserved=5_000)).value == 13_400


@given(
    rule=st.builds(
        colocation.Rule,
        policy=st.sampled_from(colocation.Policy),
        reclaim_percent=st.integers(0, 100),
        overcommit_percent=st.integers(0, 100),
    ),
    figures=st.fixed_dictionaries(
        {
            field: st.integers(0, 1 << 40)
            for field in ("reserved", "system", "requested", "used", "peak", "firm")
        }
    ),
)
def test_never_lends_more_than_there_is(rule: colocation.Rule, figures: dict[str, int]) -> None:
    assert 0 <= colocation.lend(rule, holding(**figures)).value <= 64_000


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, None, False, id="absent"),
        pytest.param(None, 0, True, id="appears"),
        pytest.param(1, None, True, id="goes"),
        pytest.param(100, 110, False, id="exactly-the-threshold"),
        pytest.param(100, 111, True, id="more"),
        pytest.param(100, 89, True, id="less"),
        pytest.param(0, 1, True, id="anything-from-nothing"),
        pytest.param(0, 0, False, id="still-nothing"),
    ],
)
def test_differs(old: int | None, new: int | None, expected: bool) -> None:
    assert colocation.differs(old, new, 0.1) is expected


def test_is_stale() -> None:
    assert colocation.is_stale(None, 1000.0, 60)
    assert not colocation.is_stale(940.0, 1000.0, 60)
    assert colocation.is_stale(939.0, 1000.0, 60)


@given(seconds=st.integers(1, 3600), name=st.text(max_size=20))
def test_nodes_are_refreshed_at_times_of_their_own_and_never_late(seconds: int, name: str) -> None:
    assert 0.9 * seconds <= colocation.refresh_after(seconds, name) <= seconds


def test_refreshes_are_spread() -> None:
    times = {colocation.refresh_after(300, f"node-{number}") for number in range(100)}
    assert len(times) > 80
