"""One node judged with plain integers, since vectors of one cost as much as vectors of hundreds."""

from collections.abc import Sequence
from typing import Final

from domain.usage import load

STALE: Final = -1
"""What stands for a report that is too old."""


def filter_code(column: Sequence[int], amounts: load.Vector, now: int) -> int:
    """Return 0 for a node that passes, 1 + the index of the resource that it is short of, or STALE.

    The column holds until when the report is fresh, whether it measures by a window, and the room
    per resource; a node that measures by a window has its reasons behind the others. `now` is in
    milliseconds.
    """
    if column[0] <= now:
        return STALE
    width = len(amounts)
    code = next((at + 1 for at in range(width) if column[2 + at] < amounts[at]), 0)
    return code + width if code and column[1] else code


def score(
    arguments: load.Arguments,
    universe: Sequence[str],
    column: Sequence[int],
    amounts: load.Vector,
    now: int,
) -> int:
    """Return how empty a node stays with the pod on it, 0 to 100.

    The column begins with until when the report may be scored by and the totals, and ends with the
    expected usage, per resource of the universe.
    """
    if column[0] <= now:
        return 0
    weights, dominant = arguments.weights, arguments.dominant_weight
    width = len(amounts)
    used = column[len(column) - width :]
    weighed, lowest = 0, 100
    for at, name in enumerate(universe):
        weight = weights.get(name, 0)
        if not weight and not dominant:
            continue
        total = column[1 + at]
        share = max(total - used[at] - amounts[at], 0) * 100 // max(total, 1)
        weighed += weight * share
        lowest = min(lowest, share)
    return (weighed + dominant * lowest) // (sum(weights.values()) + dominant)
