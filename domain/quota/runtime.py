"""Runtime quota: what each child of one parent may use of one resource, by water filling. Pure.

Every child first has what it asks for up to its minimum (one that does not lend has the minimum in
any case). What is left goes to those who ask for more, by weight and largest remainder; who gets
more than it asks for gives the rest back to the others. Higher priority is served first: the next
lower one shares what is left. Integers throughout, so figures add up exactly.
"""

import dataclasses
from collections.abc import Sequence

from domain.quota import model


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """The children of one parent in one resource, in the order of their names."""

    requests: Sequence[int]
    """Limited requests."""
    first: Sequence[int]
    """What each keeps whatever others ask for: its minimum, scaled, or what is guaranteed."""
    weights: Sequence[int]
    lends: Sequence[bool]
    priorities: Sequence[int]


def scaled(total: int, minimums: Sequence[int]) -> Sequence[int]:
    """Return the minimums scaled down to a total that is smaller than all of them."""
    together = sum(minimums)
    if total >= together:
        return minimums
    return [max(total, 0) * minimum // together for minimum in minimums]


def share(total: int, column: Column, told: list[list[model.Round]] | None = None) -> list[int]:
    """Share a total out among children; `told` receives the rounds of each child."""
    first, requests = column.first, column.requests
    given = [
        min(request, minimum) if lends else minimum
        for request, minimum, lends in zip(requests, first, column.lends, strict=True)
    ]
    if told is not None:
        told += [[] for _ in given]
    remaining = total - sum(given)
    tiers: dict[int, list[int]] = {}
    for child, priority in enumerate(column.priorities):
        if requests[child] > first[child] and column.weights[child] > 0:
            tiers.setdefault(priority, []).append(child)
    for priority in sorted(tiers, reverse=True):
        joined = tiers[priority]
        while remaining > 0 and joined:
            before = remaining
            parts = split(remaining, [column.weights[child] for child in joined])
            weights = sum(column.weights[child] for child in joined)
            remaining, wanting = 0, []
            for child, part in zip(joined, parts, strict=True):
                back = max(0, given[child] + part - requests[child])
                given[child] += part - back
                remaining += back
                if given[child] < requests[child]:
                    wanting.append(child)
                if told is not None:
                    told[child].append(model.Round(priority, before, weights, part, back))
            joined = wanting
    return given


def split(amount: int, weights: Sequence[int]) -> list[int]:
    """Split an amount by positive weights and largest remainder, the earlier first where equal."""
    together = sum(weights)
    parts = [amount * weight // together for weight in weights]
    left = amount - sum(parts)
    if left:
        rests = [-(amount * weight % together) for weight in weights]
        for child in sorted(range(len(weights)), key=rests.__getitem__)[:left]:
            parts[child] += 1
    return parts
