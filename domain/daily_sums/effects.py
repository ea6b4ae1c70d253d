"""What agents did on a day, as sums over nodes: suppressed, evicted, throttled. Pure.

Each agent reports its own day in its NodeMetric. A node's account may write anything there, so
what is read is bounded by what one node can do in the time that has passed.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from api.koordinator.metrics import nodemetric

REASONS: Final = frozenset({"cpu-evict", "memory-evict"})
"""Eviction strategies of agents; evictions by any other name count under `(others)`."""
OTHERS: Final = "(others)"
MOST_EVICTIONS: Final = 4000.0
"""Of one node on one day: an agent counts no more pods."""
_MOST_PODS: Final = 1000
"""On one node at one moment."""
_WHOLE: Final = float(2**52)


class Reason(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Evictions of one strategy."""

    evicted: float = 0.0
    would_evict: float = 0.0


class Effects(msgspec.Struct, frozen=True, array_like=True):
    """Sums over nodes; seconds, core-seconds, pod-seconds and pods."""

    watched: float = 0.0
    """Node-seconds that agents watched."""
    enforced: float = 0.0
    """Of these, with suppression enforced and not only observed."""
    known: float = 0.0
    """Of these, while it was known whether the node is above the threshold of suppression."""
    over: float = 0.0
    """Of these, above it."""
    at_limit: float = 0.0
    """Node-seconds with best effort at its limit, or where it would have been."""
    suppressed: float = 0.0
    """Core-seconds that best effort asked for and did not get."""
    would_suppress: float = 0.0
    """Core-seconds that it would not have got, while suppression was only observed."""
    measured: float = 0.0
    """Seconds of online pods of which throttling was measured."""
    throttled: float = 0.0
    """The same times the share of periods in which they were throttled."""
    evicted: float = 0.0
    evicted_online: float = 0.0
    """Evicted pods that are not best effort."""
    would_evict: float = 0.0
    would_evict_online: float = 0.0
    reasons: Mapping[str, Reason] = {}
    """Evictions by strategy."""

    def plus(self, other: "Effects") -> "Effects":
        """Add other sums."""
        return _paired(self, other, lambda one, more: one + more)

    def less(self, other: "Effects") -> "Effects":
        """Take other sums away; nothing falls below zero."""
        return _paired(self, other, lambda one, part: max(one - part, 0.0))

    def most(self, other: "Effects") -> "Effects":
        """Return the larger of each figure."""
        return _paired(self, other, max)

    def rounded(self) -> "Effects":
        """Return whole numbers."""
        return _paired(self, NOTHING, lambda one, _: float(round(one)))


class Card(msgspec.Struct, frozen=True):
    """What one agent reports of a day; nothing of it is checked."""

    date: str
    effects: Effects


NOTHING: Final = Effects()
_FIGURES: Final = tuple(name for name in Effects.__struct_fields__ if name != "reasons")


def _paired(one: Effects, other: Effects, make: Callable[[float, float], float]) -> Effects:
    figures = {name: make(getattr(one, name), getattr(other, name)) for name in _FIGURES}
    reasons = {}
    for name in {*one.reasons, *other.reasons}:
        a, b = one.reasons.get(name, Reason()), other.reasons.get(name, Reason())
        reasons[name] = Reason(make(a.evicted, b.evicted), make(a.would_evict, b.would_evict))
    return Effects(**figures, reasons=reasons)


def card(written: nodemetric.Scorecard | None) -> Card | None:
    """Read what an agent reports of its day; None where it reports nothing."""
    if written is None:
        return None
    reasons: dict[str, Reason] = {}
    for one in written.evictions:
        name = one.strategy if one.strategy in REASONS else OTHERS
        before = reasons.get(name, Reason())
        reasons[name] = Reason(before.evicted + one.evicted, before.would_evict + one.would_evict)
    return Card(
        written.date[:10],
        Effects(
            watched=written.seconds,
            enforced=written.enforced_seconds,
            known=written.known_seconds,
            over=written.over_seconds,
            at_limit=written.at_limit_seconds,
            suppressed=written.suppressed_core_seconds,
            would_suppress=written.would_suppress_core_seconds,
            measured=written.measured_pod_seconds,
            throttled=written.throttled_pod_seconds,
            evicted=written.evicted_pods,
            evicted_online=written.evicted_online_pods,
            would_evict=written.would_evict_pods,
            would_evict_online=written.would_evict_online_pods,
            reasons=reasons,
        ),
    )


def bounded(written: Effects, cores: float, seconds: float) -> Effects:
    """Return what one node with so many cores can have done in so many seconds of the day."""
    watched = _within(written.watched, seconds)
    known = _within(written.known, watched)
    at_limit = _within(written.at_limit, watched)
    suppressed = _within(written.suppressed, cores * at_limit)
    measured = _within(written.measured, watched * _MOST_PODS)
    evicted = _within(written.evicted, MOST_EVICTIONS)
    would_evict = _within(written.would_evict, MOST_EVICTIONS)
    return Effects(
        watched=watched,
        enforced=_within(written.enforced, watched),
        known=known,
        over=_within(written.over, known),
        at_limit=at_limit,
        suppressed=suppressed,
        would_suppress=_within(written.would_suppress, cores * at_limit - suppressed),
        measured=measured,
        throttled=_within(written.throttled, measured),
        evicted=evicted,
        evicted_online=_within(written.evicted_online, evicted),
        would_evict=would_evict,
        would_evict_online=_within(written.would_evict_online, would_evict),
        reasons={
            name: Reason(
                _within(one.evicted, MOST_EVICTIONS), _within(one.would_evict, MOST_EVICTIONS)
            )
            for name, one in written.reasons.items()
        },
    )


def _within(value: float, most: float) -> float:
    """Return a figure between zero and the most; what is no number is zero."""
    if math.isnan(value):
        return 0.0
    return float(min(max(value, 0.0), max(most, 0.0), _WHOLE))
