"""What mid pods get: the smaller of what is predicted and what is unused, up to a cap."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.lending import midtier

NODE = midtier.Holding(
    capacity=64_000, reclaimable=20_000, unused=12_000, outside=4_000, requested=40_000
)


@pytest.mark.parametrize(
    ("rule", "changed", "expected", "terms"),
    [
        pytest.param({}, {}, 12_000, ("unused", "share of unallocated"), id="unused-is-less"),
        pytest.param(
            {},
            {"unused": 30_000},
            20_000,
            ("reclaimable", "share of unallocated"),
            id="prediction-is-less",
        ),
        pytest.param({}, {"unused": -5}, 0, None, id="never-negative"),
        pytest.param({"unallocated_percent": 50}, {}, 22_000, None, id="with-half-of-unallocated"),
        pytest.param(
            {"unallocated_percent": 50},
            {"requested": 70_000},
            12_000,
            None,
            id="nothing-unallocated",
        ),
        pytest.param({"cap_percent": 10}, {}, 6_400, None, id="capped"),
        pytest.param(
            {"static": True, "static_percent": 25}, {}, 16_000, ("fixed share",), id="fixed-share"
        ),
        pytest.param(
            {"static": True, "static_percent": 25, "cap_percent": 10}, {}, 6_400, None, id="both"
        ),
    ],
)
def test_lend(rule, changed, expected, terms) -> None:
    lending = midtier.lend(midtier.Rule(**rule), dataclasses.replace(NODE, **changed))
    assert lending.value == expected
    assert lending.capped is (sum(amount for _, amount in lending.terms) > lending.cap)
    if terms is not None:
        assert tuple(name for name, _ in lending.terms) == terms


amounts = st.integers(0, 1 << 45)


@given(
    rule=st.builds(
        midtier.Rule,
        static=st.booleans(),
        cap_percent=st.integers(0, 100),
        static_percent=st.integers(0, 100),
        unallocated_percent=st.integers(0, 100),
    ),
    node=st.builds(
        midtier.Holding,
        capacity=amounts,
        reclaimable=amounts,
        unused=st.integers(-(1 << 45), 1 << 45),
        outside=amounts,
        requested=amounts,
    ),
)
def test_never_more_than_the_cap(rule: midtier.Rule, node: midtier.Holding) -> None:
    lending = midtier.lend(rule, node)
    assert 0 <= lending.value <= lending.cap <= node.capacity
