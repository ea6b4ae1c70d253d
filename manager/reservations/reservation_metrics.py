"""What Reservations keep, what owners use of it, and which wait, as gauges.

Every replica exports them. Reservations beyond `MOST` count in the sums only, so that tenants with
many of them do not fill a collector.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

from api.koordinator import scheduling
from api.wire import quantity
from domain.pods import resources
from kube.informers import store
from manager.reservations import objects
from process.runtime import clock as clocks
from process.runtime import metrics

MOST: Final = 2000
"""Reservations with metrics of their own, the oldest."""
MOST_RESOURCES: Final = 32
"""Resources of the sums."""
PERIOD_SECONDS: Final = 15.0
OVERDUE_SECONDS: Final = 60.0
"""How long a Reservation may be Available beyond its end before it counts as overdue."""
_SUMS: Final[Mapping[str, str]] = {
    "reserved": "What Available Reservations reserve",
    "allocated": "What owners request of what Available Reservations reserve",
    "unused": "What Available Reservations keep and no owner uses",
    "waiting": "What Reservations without a node ask for",
}
_UNITS: Final = ": cpu in cores, memory in bytes, everything else in pieces."

Rows = dict[tuple[str, ...], float]


@dataclasses.dataclass(slots=True)
class Figures:
    """The values of all gauges."""

    phases: Rows
    reserved: Rows = dataclasses.field(default_factory=dict)
    allocated: Rows = dataclasses.field(default_factory=dict)
    unused: Rows = dataclasses.field(default_factory=dict)
    waiting: Rows = dataclasses.field(default_factory=dict)
    shares: Rows = dataclasses.field(default_factory=dict)
    """By Reservation and node: the largest used part of any resource."""
    longest_wait: float = 0.0
    """Seconds that the oldest Pending one waits."""
    overdue: int = 0
    hidden: int = 0


def sum_tables(registry: metrics.Registry) -> dict[str, metrics.Table]:
    """Return the gauge of each sum by its name."""
    return {
        name: registry.table(f"koord_reservation_{name}", about + _UNITS, ("resource",))
        for name, about in _SUMS.items()
    }


def figures(found: Iterable[objects.ReservationObject], now: float) -> Figures:
    """Return the values; `now` is in seconds since the epoch."""
    values = Figures({(phase,): 0.0 for phase in scheduling.PHASES})
    for one in sorted(found, key=lambda one: (one.created, one.name)):
        # The status is free text for those that may write it: an unknown phase adds no series.
        phase = (one.phase if one.phase in scheduling.PHASES else scheduling.PENDING,)
        values.phases[phase] += 1
        if one.phase == scheduling.AVAILABLE:
            _available(values, one, now)
        elif one.phase == scheduling.PENDING and not one.fault:
            values.longest_wait = max(values.longest_wait, now - one.created)
            _add(values.waiting, one.requests)
    return values


def _available(values: Figures, one: objects.ReservationObject, now: float) -> None:
    reserved, allocated = _amounts(one.allocatable), _amounts(one.allocated)
    _add(values.reserved, reserved)
    _add(values.allocated, {key: allocated.get(key, 0) for key in reserved})
    left = {key: max(0, value - allocated.get(key, 0)) for key, value in reserved.items()}
    _add(values.unused, left)
    values.overdue += one.expires_at is not None and now > one.expires_at + OVERDUE_SECONDS
    if len(values.shares) >= MOST:
        values.hidden += 1
        return
    parts = (allocated.get(key, 0) / value for key, value in reserved.items() if value > 0)
    values.shares[one.name, one.node] = max(parts, default=0.0)


def _amounts(written: Mapping[str, str]) -> dict[str, int]:
    try:
        return resources.amounts(written)
    except quantity.QuantityError:
        return {}


def _add(rows: Rows, amounts: Mapping[str, int]) -> None:
    for resource, value in sorted(amounts.items()):
        key = (resource,)
        if key in rows or len(rows) < MOST_RESOURCES:
            figure = value / 1000 if quantity.is_milli(resource) else float(value)
            rows[key] = rows.get(key, 0.0) + figure


@dataclasses.dataclass(frozen=True, slots=True)
class ReservationMetrics:
    """The gauges and what they are read from."""

    seen: store.Store[objects.ReservationObject]
    clock: clocks.Clock
    registry: metrics.Registry

    async def run(self) -> None:
        """Work until cancelled."""
        table, gauge = self.registry.table, self.registry.gauge
        sums = sum_tables(self.registry)
        phases = table("koord_reservation_objects", "Reservations by phase.", ("phase",))
        shares = table(
            "koord_reservation_used_ratio",
            "How much owners use of an Available Reservation: the largest part of any resource.",
            ("reservation", "node"),
        )
        longest = gauge(
            "koord_reservation_longest_wait_seconds", "How long the oldest Pending one waits."
        )
        overdue = gauge(
            "koord_reservation_overdue", "Reservations that have expired and are still Available."
        )
        hidden = gauge(
            "koord_reservation_hidden_series", f"Reservations beyond the {MOST} that are shown."
        )
        while True:
            values = figures(self.seen, self.clock.now())
            for name, rows in sums.items():
                rows.replace(getattr(values, name))
            phases.replace(values.phases)
            shares.replace(values.shares)
            longest.set(values.longest_wait)
            overdue.set(values.overdue)
            hidden.set(values.hidden)
            await self.clock.sleep(PERIOD_SECONDS)
