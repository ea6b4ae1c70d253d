"""Gauges of Reservations: sums, phases, shares, waits, and their bounds."""

import pytest

from manager.reservations import reservation_metrics as gauges
from tests.manager.reservations import reserved

NOW = reserved.CREATED + 600.0


def of(*found, now=NOW):
    return gauges.figures(found, now)


def test_sums_count_what_is_available_in_cores_and_bytes():
    used = reserved.placed(allocated={"cpu": "3", "memory": "2Gi"})
    values = of(
        reserved.read("a", status=used),
        reserved.read("b", status=reserved.placed(allocated={"cpu": "6"})),
        reserved.read("c", status={**used, "phase": "Succeeded"}),
    )
    gib = float(1 << 30)
    assert values.reserved == {("cpu",): 8.0, ("memory",): 16 * gib}
    assert values.allocated == {("cpu",): 9.0, ("memory",): 2 * gib}
    # What an owner requests beyond one Reservation is not unused capacity of another.
    assert values.unused == {("cpu",): 1.0, ("memory",): 14 * gib}
    assert values.shares == {("a", "n1"): 0.75, ("b", "n1"): 1.5}
    assert values.phases["Available",] == 2
    assert values.phases["Succeeded",] == 1


def test_what_waits_is_counted_with_its_age():
    values = of(reserved.read(), reserved.read("odd", template={"spec": {"containers": 7}}))
    assert values.longest_wait == 600.0
    assert values.waiting == {("cpu",): 4.0, ("memory",): float(8 << 30)}
    assert values.phases["Pending",] == 2


@pytest.mark.parametrize(
    ("after", "overdue"),
    [pytest.param(30, 0, id="in time"), pytest.param(90, 1, id="a minute late")],
)
def test_available_beyond_their_end_are_overdue(after, overdue):
    found = reserved.read(spec={"ttl": "10m"}, status=reserved.placed())
    assert of(found, now=NOW + after).overdue == overdue


def test_phases_and_resources_that_tenants_invent_add_no_series(monkeypatch):
    many = {f"example.com/r{i}": "1" for i in range(100)}
    strange = reserved.read("x", status={"phase": "Dreaming"})
    values = of(strange, reserved.read("y", status=reserved.placed(allocatable=many)))
    assert len(values.reserved) == gauges.MOST_RESOURCES
    assert len(values.phases) == 5
    monkeypatch.setattr(gauges, "MOST", 1)
    one, two = (reserved.read(name, status=reserved.placed()) for name in "ab")
    values = of(one, two)
    assert (len(values.shares), values.hidden) == (1, 1)
