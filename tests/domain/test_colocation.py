import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import colocation


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
