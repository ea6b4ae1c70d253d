"""One node judged with plain integers, since vectors of one cost as much as vectors of hundreds."""

import operator
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
    short = list(map(operator.lt, column[2:], amounts))
    if True not in short:
        return 0
    code = short.index(True) + 1
    return code + len(amounts) if column[1] else code


def score(
    weights: Sequence[int], dominant: int, column: Sequence[int], amounts: load.Vector, now: int
) -> int:
    """Return how empty a node stays with the pod on it, 0 to 100.

    `weights` are by resource, `dominant` is that of the fullest one. The column begins with until
    when the report may be scored by and the totals, and ends with the expected usage, per resource.
    """
    if column[0] <= now:
        return 0
    width = len(amounts)
    weighed, lowest = 0, 100
    for weight, total, used, amount in zip(
        weights, column[1 : 1 + width], column[-width:], amounts, strict=True
    ):
        if not weight and not dominant:
            continue
        share = max(total - used - amount, 0) * 100 // max(total, 1)
        weighed += weight * share
        lowest = min(lowest, share)
    return (weighed + dominant * lowest) // (sum(weights) + dominant)
