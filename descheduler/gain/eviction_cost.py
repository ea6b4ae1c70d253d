"""What it costs to evict a pod, in points, each with its ground. Pure.

    1     the eviction itself
    0..1  priority class: free and batch 0, mid 0.5, prod and none 1
    0..5  minutes that its last start took
    0..1  how often containers have restarted, a tenth each
    0..1  days that it has run
    0..1  one divided by the evictions that its tightest disruption budget allows
    -1..1 the annotations pod-deletion-cost and eviction-cost, which are numbers without a unit

A cost is never below a tenth.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from api.koordinator.metadata import annotations, qos
from descheduler.model import budgets, objects, podinfo

EVICTION: Final = 1.0
LEAST: Final = 0.1
_BANDS: Final = {qos.Band.FREE: 0.0, qos.Band.BATCH: 0.0, qos.Band.MID: 0.5}
_IMPORTANT: Final = 1.0
_MINUTE, _DAY = 60.0, 86_400.0
_LONGEST_START: Final = 5.0
_RESTART: Final = 0.1
_HALF_COST: Final = 100
"""The annotated cost at which half a point is reached."""

Parts = Mapping[str, float]
"""By ground; they add up to the cost."""


def parts(pod: podinfo.Pod, now: float, slack: int | None) -> Parts:
    """Return what the cost of a pod is made of; `slack` is what its tightest budget allows.

    Without a budget slack is None. The parts that are nothing are left out.
    """
    restarts = sum(one.restarts for one in pod.containers)
    age = now - pod.started if pod.started >= 0 else 0.0
    found = {
        "eviction": EVICTION,
        "priority": _BANDS.get(pod.importance, _IMPORTANT),
        "start": min(max(pod.restarts_cost_seconds, 0.0) / _MINUTE, _LONGEST_START),
        "restarts": min(restarts * _RESTART, 1.0),
        "age": min(max(age, 0.0) / _DAY, 1.0),
        "budget": 1.0 / slack if slack else 0.0,
        "annotation": _annotated(pod.annotations),
    }
    return {ground: points for ground, points in found.items() if points}


def total(found: Parts) -> float:
    """Return the cost."""
    return max(sum(found.values()), LEAST)


def _annotated(notes: Mapping[str, str]) -> float:
    """Bring numbers of any size between -1 and 1; their order is kept."""
    if not notes:
        return 0.0
    written = annotations.deletion_cost(notes) + annotations.eviction_cost(notes)
    return written / (abs(written) + _HALF_COST)


class Slack:
    """Evictions that disruption budgets still allow, less those that the round has decided."""

    def __init__(self, known: Iterable[objects.Budget]) -> None:
        self._budgets = budgets.Budgets(known)
        self._used: collections.Counter[str] = collections.Counter()

    def of(self, pod: podinfo.Pod) -> int | None:
        """Return how many evictions the tightest budget of a pod allows, None without a budget."""
        return min((one.allowed - self._used[one.key] for one in self._of(pod)), default=None)

    def take(self, pod: podinfo.Pod) -> None:
        """Count the eviction of a pod."""
        self._used.update(one.key for one in self._of(pod))

    def _of(self, pod: podinfo.Pod) -> Sequence[objects.Budget]:
        return self._budgets.of(pod)
