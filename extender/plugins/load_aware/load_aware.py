"""Keep pods away from nodes that are busier than they look, and prefer the cooler ones."""

import functools
from typing import Any

import numpy as np

from api import names
from api.koordinator.qos import Band
from domain import wording
from domain.usage import load
from extender.framework import verdicts, views
from extender.plugins.load_aware import inspection, thresholds
from extender.state import deltas, records

NAME = "LoadAware"

STALE = verdicts.Status("node load report is too old")
_NEVER = load.UNLIMITED
_REMEMBERED = 8192
"""Demands whose estimate is kept; each holds texts of a few kilobytes at most."""


def busy(resource: str, *, window: bool = False) -> verdicts.Status:
    """Return the reason for a resource whose usage, perhaps over a window, is too high."""
    which = "aggregated " if window else ""
    return verdicts.Status(f"{which}node {resource} usage exceeds the load-aware threshold")


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
        self._reasons = (
            *(busy(name) for name in self.universe),
            *(busy(name, window=True) for name in self.universe),
            STALE,
        )
        self._delays = bool(
            arguments.seconds_after_scheduled
            or arguments.seconds_after_initialized
            or arguments.customizable
        )
        self.estimate = functools.lru_cache(maxsize=_REMEMBERED)(self._estimate)

    # -- what a pod will use ---------------------------------------------------------------

    def _estimate(self, requirements: records.PodRequirements) -> load.Vector:
        factors = dict(self._arguments.factors)
        if self._arguments.customizable:
            factors |= thresholds.factors(requirements.scaling_factors)
        amounts = load.estimate(
            dict(requirements.requests), dict(requirements.limits), requirements.band, factors
        )
        return load.vector(amounts, self.universe)

    def resident(self, pod: records.PodRecord) -> load.Resident:
        """Return what matters of a pod on a node."""
        requirements = pod.requirements
        return load.Resident(
            pod.key,
            self.estimate(requirements),
            requirements.band is Band.PROD,
            pod.assigned_at,
            _due(pod, self._arguments) if self._delays else None,
        )

    # -- what is known of a node -----------------------------------------------------------

    def report(self, facts: views.NodeInfo) -> load.Report | None:
        """Return the report of a node over the resources of these arguments."""
        return None if facts.report is None else load.restated(facts.report, self.universe)

    def sums(self, facts: views.NodeInfo) -> load.Sums | None:
        """Return what the pods of a node add to its report; None without a report."""
        report = self.report(facts)
        if report is None:
            return None
        return load.accumulate(
            report,
            map(self.resident, facts.pods),
            self._width,
            include_system=self._arguments.prod_includes_system,
        )

    def node(self, info: views.NodeInfo) -> tuple[tuple[int, ...], None]:
        """Return the figures of one node in the layout described above."""
        return self._figures(info), None

    def start(self) -> None:
        """Keep nothing of the cluster as a whole."""

    def cluster(self, old: None, delta: deltas.Delta) -> None:
        """Keep nothing of the cluster as a whole."""

    def _figures(self, facts: views.NodeInfo) -> tuple[int, ...]:
        report, sums = self.report(facts), self.sums(facts)
        total = load.vector(dict(facts.node.total), self.universe)
        zero = (0,) * self._width
        if report is None or sums is None:
            free = (_NEVER, 0, *(_NEVER,) * self._width)
            return (*free, *free, 0, *total, *zero, *zero)
        profile = thresholds.profile(facts.node.thresholds, self._arguments.profile)
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
        group, compares_prod = profile.chosen(prod=prod)
        if not group.active():
            return (_NEVER, 0, *(_NEVER,) * self._width)
        fresh_until = self._fresh_until(report) if self._arguments.filter_expired else _NEVER
        if report.usage is None:
            return (fresh_until, 0, *(_NEVER,) * self._width)
        used = load.expected(
            report, sums, prod=compares_prod, kind=group.kind, duration=group.duration
        )
        rooms = (
            load.room(offered, group.percent.get(name, 0), taken)
            for name, offered, taken in zip(self.universe, total, used, strict=True)
        )
        return (fresh_until, int(bool(group.kind)), *rooms)

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

    def inspect(self, facts: views.NodeInfo) -> dict[str, Any]:
        """Return what is added up, what was measured, and the thresholds that hold here."""
        profile = thresholds.profile(facts.node.thresholds, self._arguments.profile)
        return inspection.inspected(self, facts, profile)

    # -- verbs -----------------------------------------------------------------------------

    def filter(
        self, request: views.PodInfo, view: views.View, now: float
    ) -> verdicts.Verdict | None:
        """Refuse nodes on which the pod would push usage over a threshold."""
        if request.requirements.daemon:
            return None
        summary, start = self._side(request, view)
        codes = np.zeros(summary.shape[1], dtype=np.int16)
        amounts = self.estimate(request.requirements)
        for index in reversed(range(self._width)):
            np.copyto(codes, index + 1, where=summary[start + 2 + index] < amounts[index])
        windowed = summary[start + 1] != 0
        if windowed.any():
            codes[windowed & (codes != 0)] += self._width
        stale = summary[start] <= _milliseconds(now)
        codes[stale] = 0 if self._arguments.schedule_when_expired else len(self._reasons)
        return verdicts.Verdict(codes, self._reasons)

    def _side(self, request: views.PodInfo, view: views.View) -> tuple[verdicts.Column, int]:
        """Return the summary and where in it the figures for such a pod start."""
        prod = request.requirements.band is Band.PROD
        return view.figures[NAME], 0 if prod else 2 + self._width

    def shortage(self, request: views.PodInfo, view: views.View, now: float) -> verdicts.Shares:
        """Say what share of the pod's estimate is too much on each node; all of it where stale."""
        summary, start = self._side(request, view)
        worst = np.zeros(summary.shape[1])
        for index, amount in enumerate(self.estimate(request.requirements)):
            lacking = amount - summary[start + 2 + index].astype(np.float64)
            np.maximum(worst, lacking / max(amount, 1), out=worst)
        worst[summary[start] <= _milliseconds(now)] = 1.0
        return worst

    def diagnose(
        self, request: views.PodInfo, view: views.View, row: int, now: float
    ) -> verdicts.Diagnosis:
        """Say how full the node would be, per resource that a threshold restricts."""
        summary, start = self._side(request, view)
        until, room = summary[start, row], summary[start + 2 : start + 2 + self._width, row]
        name = view.names[row]
        if until <= _milliseconds(now):
            return _stale(name, now - until / 1000 if until else None)
        facts = view.node(row)
        report, sums = self.report(facts), self.sums(facts)
        if report is None or sums is None:
            return verdicts.Diagnosis("")
        profile = thresholds.profile(facts.node.thresholds, self._arguments.profile)
        group, compares_prod = profile.chosen(prod=request.requirements.band is Band.PROD)
        used = load.expected(
            report, sums, prod=compares_prod, kind=group.kind, duration=group.duration
        )
        total = load.vector(dict(facts.node.total), self.universe)
        clauses, helps = [], []
        for index, amount in enumerate(self.estimate(request.requirements)):
            if room[index] >= amount:
                continue
            resource = self.universe[index]
            percent = group.percent.get(resource, 0)
            show = functools.partial(wording.amount, resource)
            named = functools.partial(wording.named, resource)
            clauses.append(
                f"{resource}: {show(used[index])} of {show(total[index])} is used or expected, "
                f"{show(amount)} more would pass {percent} %"
            )
            left = int(room[index])
            helps.append(f"{named(amount - left)} less in use on {name}")
            if left > 0:
                helps.append(f"a pod that is expected to use {named(left)} or less")
        if helps:
            helps.append(f"a higher threshold ({names.ANNOTATION_USAGE_THRESHOLDS} on the node)")
        return verdicts.Diagnosis("; ".join(clauses), tuple(helps))

    def score(self, request: views.PodInfo, view: views.View, now: float) -> verdicts.Score | None:
        """Prefer nodes that stay emptier with the pod on them."""
        arguments, width = self._arguments, self._width
        summary = view.figures[NAME]
        fresh = 2 * (2 + width)
        totals = summary[fresh + 1 : fresh + 1 + width]
        start = fresh + 1 + width * (1 if request.requirements.band is Band.PROD else 2)
        used = summary[start : start + width]
        weighed = np.zeros(summary.shape[1], dtype=np.int64)
        lowest = np.full(summary.shape[1], 100, dtype=np.int64)
        for index, amount in enumerate(self.estimate(request.requirements)):
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
        return verdicts.Score(values)


def _milliseconds(now: float) -> int:
    return round(now * 1000)


def _stale(node: str, late: float | None) -> verdicts.Diagnosis:
    helps = (f"a report from the agent of {node}: look whether it runs there",)
    if late is None:
        return verdicts.Diagnosis("its agent has not reported yet", helps)
    return verdicts.Diagnosis(f"the report should have been renewed {late:.0f} s ago", helps)


def _due(pod: records.PodRecord, arguments: load.Arguments) -> float | None:
    """Return until when the estimate of a pod counts even if a measurement exists."""
    requirements = pod.requirements
    scheduled, initialized = arguments.seconds_after_scheduled, arguments.seconds_after_initialized
    if arguments.customizable:
        scheduled = thresholds.seconds(requirements.seconds_after_scheduled, scheduled)
        initialized = thresholds.seconds(requirements.seconds_after_initialized, initialized)
    return load.due_time(
        pod.assigned_at,
        pod.initialized_at if pod.initialized_at >= 0 else None,
        scheduled,
        initialized,
    )
