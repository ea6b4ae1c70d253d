"""What NUMA zones lend: node figures divided evenly, pods where they are bound."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.koordinator.metadata.qos import Band
from domain.lending import colocation, zones

POD = colocation.Amount(4_000, 10)


def held(*bound: int, usage: colocation.Amount | None = None) -> zones.Held:
    demand = colocation.demand(Band.PROD, POD, usage, exclusive=False)
    return zones.Held(demand, bound, measured=usage is not None)


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        pytest.param((), (1_334, 1_334, 1_334), id="unbound-on-all-rounded-up"),
        pytest.param((1,), (0, 4_000, 0), id="bound-to-one"),
        pytest.param((0, 2), (2_000, 0, 2_000), id="bound-to-two"),
        pytest.param((7,), (1_334, 1_334, 1_334), id="no-such-zone"),
        pytest.param((0, 7), (4_000, 0, 0), id="one-of-them-exists"),
    ],
)
def test_pods_are_divided(bound: tuple[int, ...], expected: tuple[int, ...]) -> None:
    found = zones.demands([held(*bound)], 3)
    assert tuple(part.requested.cpu for part in found) == expected
    assert [part.peak for part in found] == [part.requested for part in found]


def test_a_measured_pod_weighs_with_its_use() -> None:
    (only,) = zones.demands([held(usage=colocation.Amount(1_000, 12))], 1)
    assert only.used == (1_000, 12_000)
    assert only.peak == (4_000, 12_000)


USAGE = colocation.Rule(reclaim_percent=60)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({}, 32_000 - 12_800 - 1_500 - 4_000, id="usage"),
        pytest.param(
            {"policy": colocation.Policy.REQUEST}, 32_000 - 12_800 - 500 - 8_000, id="request"
        ),
        pytest.param(
            {"policy": colocation.Policy.MAX_USAGE_REQUEST},
            32_000 - 12_800 - 1_500 - 9_000,
            id="max",
        ),
        pytest.param(
            {"policy": colocation.Policy.OVERCOMMIT_RATIO, "overcommit_percent": 30},
            6_000,
            id="ratio",
        ),
        pytest.param({"cap_percent": 10}, 3_200, id="capped"),
        pytest.param({"reclaim_percent": 0}, 0, id="never-negative"),
    ],
)
def test_lend(changed: dict[str, object], expected: int) -> None:
    rule = dataclasses.replace(USAGE, **changed)
    demand = zones.Demand(*((value, value) for value in (8_000, 4_000, 9_000, 12_000)))
    demand = zones.Demand(*(colocation.Amount(*pair) for pair in demand))
    whole = zones.Zone(colocation.Amount(32_000, 0), demand)
    system, reserved = colocation.Amount(3_000, 0), colocation.Amount(1_000, 0)
    for share in zones.lend((rule, USAGE), (whole, whole), system, reserved):
        assert share.cpu == expected


def test_memory_is_divided_in_parts_of_a_byte_and_offered_in_whole_ones() -> None:
    empty = zones.Zone(colocation.Amount(0, 100))
    rule = colocation.Rule()
    shares = zones.lend((rule, rule), (empty,) * 3, colocation.Amount(0, 10), colocation.NOTHING)
    assert [share.memory for share in shares] == [97, 97, 97]


@given(
    count=st.integers(1, 8),
    pods=st.lists(
        st.tuples(
            st.lists(st.integers(0, 9), max_size=3, unique=True),
            st.integers(0, 64_000),
            st.booleans(),
        ),
        max_size=8,
    ),
)
def test_the_zones_together_hold_what_the_node_holds(count, pods) -> None:
    """Rounding up makes it at most a thousandth per pod and zone more, and never less."""
    parts = [
        zones.Held(
            colocation.demand(
                Band.PROD,
                colocation.Amount(cpu, cpu),
                colocation.Amount(cpu // 2, cpu) if measured else None,
                exclusive=False,
            ),
            tuple(bound),
            measured=measured,
        )
        for bound, cpu, measured in pods
    ]
    total = colocation.summed(part.demand for part in parts)
    found = zones.demands(parts, count)
    for name in ("requested", "used", "firm"):
        spread = sum(getattr(zone, name).cpu for zone in found)
        assert 0 <= spread - getattr(total, name).cpu <= count * len(pods)
