"""Keep pods away from nodes that are busier than they look, and prefer the cooler ones."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from api import durations, quantity
from api.qos import Band
from domain import load
from extender import framework, records

NAME = "LoadAware"

BUSY = framework.Reason("node usage exceeds the load-aware threshold")
BUSY_WINDOW = framework.Reason("aggregated node usage exceeds the load-aware threshold")
STALE = framework.Reason("node load report is too old")
REASONS = (BUSY, BUSY_WINDOW, STALE)

_BUSY, _BUSY_WINDOW, _STALE = 1, 2, 3
_NEVER = load.UNLIMITED


class LoadAware:
    """Filters and scores by measured plus expected usage.

    The summary of a node holds, for prod pods and for all others, until when its report is
    fresh, whether it measures by a window, and how much room the thresholds leave per resource;
    then until when the report may be scored by, the totals, and expected usage for both.
    """

    name = NAME

    def __init__(self, arguments: load.Arguments) -> None:
        self._arguments = arguments
        self.universe = arguments.universe()
        self._width = len(self.universe)
        self.columns = 2 * (2 + self._width) + 1 + 3 * self._width
        self._delays = bool(
            arguments.seconds_after_scheduled
            or arguments.seconds_after_initialized
            or arguments.customizable
        )
        self.estimate = functools.lru_cache(maxsize=16384)(self._estimate)

    # -- what a pod will use ---------------------------------------------------------------

    def _estimate(self, demand: records.Demand) -> load.Vector:
        factors = dict(self._arguments.factors)
        if self._arguments.customizable:
            factors |= _factors(demand.scaling_factors)
        amounts = load.estimate(dict(demand.requests), dict(demand.limits), demand.band, factors)
        return load.vector(amounts, self.universe)

    def resident(self, pod: records.PodRecord) -> load.Resident:
        """Return what matters of a pod on a node."""
        demand = pod.demand
        return load.Resident(
            pod.key,
            self.estimate(demand),
            demand.band is Band.PROD,
            pod.assigned_at,
            self._due(pod) if self._delays else None,
        )

    def _due(self, pod: records.PodRecord) -> float | None:
        demand, arguments = pod.demand, self._arguments
        scheduled, initialized = (
            arguments.seconds_after_scheduled,
            arguments.seconds_after_initialized,
        )
        if arguments.customizable:
            scheduled = _seconds(demand.seconds_after_scheduled, scheduled)
            initialized = _seconds(demand.seconds_after_initialized, initialized)
        return load.due_time(
            pod.assigned_at,
            pod.initialized_at if pod.initialized_at >= 0 else None,
            scheduled,
            initialized,
        )

    # -- what is known of a node -----------------------------------------------------------

    def sums(self, facts: framework.NodeFacts) -> load.Sums | None:
        """Return what the pods of a node add to its report; None without a report."""
        if facts.report is None:
            return None
        return load.accumulate(
            facts.report,
            map(self.resident, facts.pods),
            self._width,
            include_system=self._arguments.prod_includes_system,
        )

    def summarize(self, facts: framework.NodeFacts) -> tuple[int, ...]:
        """Return the figures of one node in the layout described above."""
        report, sums = facts.report, self.sums(facts)
        total = load.vector(dict(facts.node.total), self.universe)
        zero = (0,) * self._width
        if report is None or sums is None:
            free = (_NEVER, 0, *(_NEVER,) * self._width)
            return (*free, *free, 0, *total, *zero, *zero)
        profile = _profile(facts.node.thresholds, self._arguments.profile)
        limits = (self._limits(profile, report, sums, total, prod=prod) for prod in (True, False))
        prod_limits, other_limits = limits
        bases = (self._score_base(report, sums, prod=prod) for prod in (True, False))
        prod_base, other_base = bases
        scored_until = 0 if report.usage is None else self._fresh_until(report)
        return (*prod_limits, *other_limits, scored_until, *total, *prod_base, *other_base)

    def _fresh_until(self, report: load.Report) -> int:
        if report.updated_at is None:
            return 0
        return round((report.updated_at + self._arguments.expiration_seconds) * 1000)

    def _limits(
        self,
        profile: load.Profile,
        report: load.Report,
        sums: load.Sums,
        total: load.Vector,
        *,
        prod: bool,
    ) -> tuple[int, ...]:
        thresholds, compares_prod = profile.chosen(prod=prod)
        if not thresholds.active():
            return (_NEVER, 0, *(_NEVER,) * self._width)
        fresh_until = self._fresh_until(report) if self._arguments.filter_expired else _NEVER
        if report.usage is None:
            return (fresh_until, 0, *(_NEVER,) * self._width)
        used = load.expected(
            report, sums, prod=compares_prod, kind=thresholds.kind, duration=thresholds.duration
        )
        rooms = (
            load.room(offered, thresholds.percent.get(name, 0), taken)
            for name, offered, taken in zip(self.universe, total, used, strict=True)
        )
        return (fresh_until, int(bool(thresholds.kind)), *rooms)

    def _score_base(self, report: load.Report, sums: load.Sums, *, prod: bool) -> load.Vector:
        arguments = self._arguments
        if report.usage is None:
            return (0,) * self._width
        return load.expected(
            report,
            sums,
            prod=prod and arguments.score_prod_usage,
            kind=arguments.score_kind,
            duration=arguments.score_duration,
        )

    # -- verbs -----------------------------------------------------------------------------

    def filter(
        self, request: framework.Request, view: framework.View, now: float
    ) -> framework.Verdict | None:
        """Refuse nodes on which the pod would push usage over a threshold."""
        if request.demand.daemon:
            return None
        summary = view.summaries[NAME]
        start = 0 if request.demand.band is Band.PROD else 2 + self._width
        busy = np.zeros(summary.shape[1], dtype=np.bool_)
        for index, amount in enumerate(self.estimate(request.demand)):
            busy |= summary[start + 2 + index] < amount
        codes = np.where(busy, np.where(summary[start + 1] != 0, _BUSY_WINDOW, _BUSY), 0)
        stale = summary[start] <= _milliseconds(now)
        if self._arguments.schedule_when_expired:
            codes[stale] = 0
        else:
            codes[stale] = _STALE
        return framework.Verdict(codes.astype(np.int16), REASONS)

    def figures(
        self, request: framework.Request, view: framework.View, row: int, now: float
    ) -> str:
        """Say how full the node would be, per resource that a threshold restricts."""
        summary = view.summaries[NAME][:, row]
        start = 0 if request.demand.band is Band.PROD else 2 + self._width
        if summary[start] <= _milliseconds(now):
            return f"the report should have been renewed {now - summary[start] / 1000:.0f} s ago"
        facts, room = view.facts(row), summary[start + 2 : start + 2 + self._width]
        report, sums = facts.report, self.sums(facts)
        if report is None or sums is None:
            return ""
        profile = _profile(facts.node.thresholds, self._arguments.profile)
        thresholds, compares_prod = profile.chosen(prod=request.demand.band is Band.PROD)
        used = load.expected(
            report, sums, prod=compares_prod, kind=thresholds.kind, duration=thresholds.duration
        )
        total = load.vector(dict(facts.node.total), self.universe)
        return "; ".join(
            f"{name}: {quantity.text(name, used[index])} of {quantity.text(name, total[index])} is "
            f"used or expected, {quantity.text(name, amount)} more would pass "
            f"{thresholds.percent.get(name, 0)} %"
            for index, (name, amount) in enumerate(
                zip(self.universe, self.estimate(request.demand), strict=True)
            )
            if room[index] < amount
        )

    def score(
        self, request: framework.Request, view: framework.View, now: float
    ) -> framework.Score | None:
        """Prefer nodes that stay emptier with the pod on them."""
        arguments, width = self._arguments, self._width
        summary = view.summaries[NAME]
        fresh = 2 * (2 + width)
        totals = summary[fresh + 1 : fresh + 1 + width]
        start = fresh + 1 + width * (1 if request.demand.band is Band.PROD else 2)
        used = summary[start : start + width]
        weighed = np.zeros(summary.shape[1], dtype=np.int64)
        lowest = np.full(summary.shape[1], 100, dtype=np.int64)
        for index, amount in enumerate(self.estimate(request.demand)):
            weight = arguments.weights.get(self.universe[index], 0)
            if not weight and not arguments.dominant_weight:
                continue
            free = totals[index] - used[index] - amount
            free[free < 0] = 0
            share = free * 100 // np.maximum(totals[index], 1)
            weighed += weight * share
            np.minimum(lowest, share, out=lowest)
        weights = sum(arguments.weights.values()) + arguments.dominant_weight
        if not weights:
            return None
        values = (weighed + arguments.dominant_weight * lowest) // weights
        values[summary[fresh] <= _milliseconds(now)] = 0
        return framework.Score(values)


def _milliseconds(now: float) -> int:
    return round(now * 1000)


def _factors(text: str) -> dict[str, int]:
    document = records.annotated(text)
    readable = all(isinstance(value, int) for value in document.values())
    return document if readable else {}


def _seconds(text: str, otherwise: float | None) -> float | None:
    digits = text.removeprefix("+")
    return int(digits) if digits.isascii() and digits.isdecimal() else otherwise


@functools.lru_cache(maxsize=4096)
def _override(text: str) -> Mapping[str, load.Thresholds]:
    """Read a node's own thresholds; a group that is empty or unreadable is absent."""
    document = records.annotated(text)
    found: dict[str, load.Thresholds] = {}
    for group, key in (("usage", "usageThresholds"), ("prod", "prodUsageThresholds")):
        percent = document.get(key)
        if isinstance(percent, dict) and percent:
            found[group] = load.Thresholds(_percent(percent))
    window = document.get("aggregatedUsage")
    if isinstance(window, dict) and window.get("usageThresholds"):
        kind = str(window.get("usageAggregationType") or "")
        if kind:
            found["aggregated"] = load.Thresholds(
                _percent(window["usageThresholds"]),
                kind,
                durations.seconds(str(window.get("usageAggregatedDuration") or "0")),
            )
    return found


def _percent(raw: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(value) for name, value in raw.items()}


def _profile(text: str, base: load.Profile) -> load.Profile:
    if not text:
        return base
    try:
        own = _override(text)
    except (ValueError, TypeError, AttributeError):
        return base
    return load.Profile(
        usage=own.get("usage", base.usage),
        prod=own.get("prod", base.prod),
        aggregated=own.get("aggregated", base.aggregated),
    )
