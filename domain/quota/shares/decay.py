"""Time-decayed share of what ElasticQuotas borrow: who has borrowed much lately borrows less now.

Water filling is fair at an instant only: of one spare device the same quota would always get it.
A counter per quota adds up what it uses beyond its minimum, in amounts times seconds, and forgets
half of that in every half-life. The weights of siblings then favor those who have borrowed less per
weight, at most 64 to 1; with equal counters they are the written ones. Pure: time is a parameter.

Weights follow the counters that objects carry, so every process that reads the objects shares out
alike. Counters are written once per `period`, so that shares do not move with every pod.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from domain.quota import model

Amounts = model.Amounts

_PERIODS: Final = 24
"""How many times in a half-life counters are written."""
_STRONGEST: Final = 6.0
"""Binary logarithm of the most that a quota is favored over a sibling."""
_SCALE: Final = 1 << 32
"""Sum of the weights of siblings after decay, before they are favored."""
LARGEST: Final = float(1 << 80)
"""Counters beyond this are cut: no quota has borrowed so much."""


class Counter(NamedTuple):
    """What one quota has borrowed up to a moment (seconds since the epoch), by resource.

    Amounts times seconds: thousandths of a core times seconds for cpu.
    """

    borrowed: Mapping[str, float]
    at: float


def period(half_life: float) -> float:
    """Return how many seconds pass between two counters that are written."""
    return half_life / _PERIODS


def borrowed(figures: model.Figures) -> dict[str, int]:
    """Return what a quota uses beyond its minimum, by resource."""
    return {
        key: over
        for key, used in figures.used.items()
        if (over := used - figures.scaled_minimum.get(key, 0)) > 0
    }


def advanced(counter: Counter, borrows: Amounts, now: float, half_life: float) -> Counter:
    """Return the counter at a later moment, if this much was borrowed all the time since.

    Exact for any length of time: two steps give what one step gives. Time that runs backward adds
    nothing.
    """
    seconds = now - counter.at
    if seconds <= 0:
        return counter
    left = 0.5 ** (seconds / half_life)
    gained = half_life / math.log(2) * (1 - left)
    found = {}
    for key in sorted({*counter.borrowed, *borrows}):
        amount = counter.borrowed.get(key, 0.0) * left + borrows.get(key, 0) * gained
        if amount >= 1:
            found[key] = min(amount, LARGEST)
    return Counter(found, now)


def whole(counter: Counter) -> dict[str, int]:
    """Return the counter as whole amounts times seconds, as a status says it."""
    return {key: round(amount) for key, amount in counter.borrowed.items()}


def weights(
    written: Sequence[int], counters: Sequence[Counter | None], resource: str, half_life: float
) -> list[int]:
    """Return the weights of siblings in one resource after what they have borrowed."""
    latest = max((one.at for one in counters if one is not None), default=0.0)
    spent = [
        _spent(counter, resource, latest, half_life) / weight if weight > 0 else 0.0
        for weight, counter in zip(written, counters, strict=True)
    ]
    most, least = max(spent, default=0.0), min(spent, default=0.0)
    if most <= least:
        return list(written)
    together = sum(weight for weight in written if weight > 0)
    return [
        max(1, round(weight / together * _SCALE * 2 ** (_STRONGEST * (1 - each / most))))
        if weight > 0
        else 0
        for weight, each in zip(written, spent, strict=True)
    ]


def _spent(counter: Counter | None, resource: str, latest: float, half_life: float) -> float:
    """Return what was borrowed, as it counts at the moment of the latest counter of all."""
    if counter is None:
        return 0.0
    amount = max(0.0, min(float(counter.borrowed.get(resource, 0)), LARGEST))
    left: float = 0.5 ** (max(0.0, latest - counter.at) / half_life)
    return amount * left
