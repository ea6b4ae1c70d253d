"""How much each NUMA zone of a node may lend to batch pods.

What is known per node only is divided evenly and rounded up in thousandths, of a core as of a
byte; amounts in here are therefore milli-cores and thousandths of a byte.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from domain.lending import colocation

MEMORY_SCALE: Final = 1000
"""Memory is counted in this many parts of a byte."""

Share = tuple[colocation.Amount, ...]
"""One amount per zone."""


class Demand(NamedTuple):
    """What pods hold of one zone, each figure the sum over pods."""

    requested: colocation.Amount = colocation.NOTHING
    used: colocation.Amount = colocation.NOTHING
    peak: colocation.Amount = colocation.NOTHING
    firm: colocation.Amount = colocation.NOTHING


class Held(NamedTuple):
    """One pod, or one measurement of a pod that is gone, before it is divided."""

    demand: colocation.Demand
    bound: tuple[int, ...] = ()
    """The zones it is bound to; empty where it may run on all of them."""
    measured: bool = True


def spread(amount: colocation.Amount, among: int) -> colocation.Amount:
    """Return the part of an amount that falls to one of several zones, rounded up."""
    memory = amount.memory * MEMORY_SCALE
    return colocation.Amount(-(-amount.cpu // among), -(-memory // among))


def demands(pods: Iterable[Held], count: int) -> tuple[Demand, ...]:
    """Sum what pods hold of each zone; a binding to a zone that does not exist counts for all."""
    totals = [Demand()] * count
    for pod in pods:
        named = dict.fromkeys(zone for zone in pod.bound if 0 <= zone < count)
        bound = tuple(named) or range(count)
        part = _part(pod, len(bound))
        for zone in bound:
            totals[zone] = _sum(totals[zone], part)
    return tuple(totals)


def _part(pod: Held, among: int) -> Demand:
    requested, used, peak, firm = (spread(amount, among) for amount in pod.demand[:4])
    # Unlike on the node as a whole, a pod that was not measured yet weighs with its request here.
    return Demand(requested, used, peak if pod.measured else requested, firm)


def _sum(one: Demand, other: Demand) -> Demand:
    return Demand(*(left.plus(right) for left, right in zip(one, other, strict=True)))


class Zone(NamedTuple):
    """One zone of a node, in the units of the node."""

    capacity: colocation.Amount
    demand: Demand = Demand()


def lend(
    rules: tuple[colocation.Rule, colocation.Rule],
    zones: Sequence[Zone],
    system: colocation.Amount,
    reserved: colocation.Amount,
) -> Share:
    """Return what each zone lends: cpu and memory by the rules, in the units of the node."""
    outside = spread(system, len(zones)), spread(reserved, len(zones))
    return tuple(
        colocation.Amount(
            _one(rules[0], 0, zone, outside, 1),
            _one(rules[1], 1, zone, outside, MEMORY_SCALE),
        )
        for zone in zones
    )


def _one(
    rule: colocation.Rule,
    part: int,
    zone: Zone,
    outside: tuple[colocation.Amount, colocation.Amount],
    scale: int,
) -> int:
    system, reserved = (amount[part] for amount in outside)
    capacity, held = zone.capacity[part], zone.demand
    bound = capacity if rule.cap_percent is None else int(capacity * (rule.cap_percent / 100.0))
    if rule.policy is colocation.Policy.OVERCOMMIT_RATIO:
        free = colocation.lendable(capacity * scale, held.firm[part], rule.overcommit_percent)
        return _least(rule, free // scale, bound)
    margin = int(capacity * ((100 - rule.reclaim_percent) / 100.0))
    left = (capacity - margin) * scale
    match rule.policy:
        case colocation.Policy.REQUEST:
            left -= reserved + held.requested[part]
        case colocation.Policy.MAX_USAGE_REQUEST:
            left -= max(system, reserved) + held.peak[part]
        case _:
            left -= max(system, reserved) + held.used[part]
    return _least(rule, -(-max(left, 0) // scale), bound)


def _least(rule: colocation.Rule, value: int, bound: int) -> int:
    return value if rule.cap_percent is None else min(value, bound)
