"""Scores of devices and nodes: spread (LeastAllocated) or pack (MostAllocated)."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

from domain.devices.requests import requests

Amounts = requests.Amounts
BEST: Final = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Scoring:
    """How devices are preferred."""

    weights: tuple[tuple[str, int], ...]
    """Resources that count, and how much each does."""
    packs: bool = False
    """MostAllocated: prefer what is in use already."""


def device(scoring: Scoring, request: Amounts, total: Amounts, free: Amounts) -> int:
    """Score one device, or the sum of several, from 0 to 100."""
    score = weight = 0
    for name, counts in scoring.weights:
        size = total.get(name, 0)
        if not size:
            continue
        left = free.get(name, 0)
        used = size - left + request.get(name, 0) if size >= left else size
        score += counts * _one(scoring, used, size)
        weight += counts
    return score // weight if weight else 0


def _one(scoring: Scoring, used: int, size: int) -> int:
    if scoring.packs:
        return min(used, size) * BEST // size
    return 0 if used > size else (size - used) * BEST // size


def summed(amounts: Iterable[Amounts]) -> Amounts:
    """Return the sum over several devices."""
    total: dict[str, int] = {}
    for one in amounts:
        for name, value in one.items():
            total[name] = total.get(name, 0) + value
    return total


def pool(
    scoring: Scoring, request: Amounts, total: Mapping[int, Amounts], free: Mapping[int, Amounts]
) -> int:
    """Score all devices of one type on a node for what a pod takes of each."""
    return device(scoring, request, summed(total.values()), summed(free.values()))
