"""Keep pods away from nodes that are busier than they look, and prefer the cooler ones."""

from typing import Any

import msgspec
import numpy as np

from api.koordinator.metadata.qos import Band
from domain.usage import load
from extender.framework import verdicts, views
from extender.plugins.load_aware import (
    diagnosis,
    estimation,
    inspection,
    measured,
    node_sums,
    one_node,
)

NAME = "LoadAware"

STALE = verdicts.Status("node load report is too old")
_NEVER = load.UNLIMITED


def busy(resource: str, *, window: bool = False) -> verdicts.Status:
    """Return the reason for a resource whose usage, perhaps over a window, is too high."""
    which = "aggregated " if window else ""
    return verdicts.Status(f"{which}node {resource} usage exceeds the load-aware threshold")


class Expected(msgspec.Struct, frozen=True):
    """What a pod is expected to use, as PreFilter estimates it."""

    amounts: load.Vector
    prod: bool
    daemon: bool
    """Pods of DaemonSets are not filtered."""


class LoadAware:
    """Filters and scores by measured plus expected usage.

    The summary of a node holds, for prod pods and for all others, until when its report is
    fresh, whether it measures by a window, and how much room the thresholds leave per resource;
    then until when the report may be scored by, the totals, and expected usage for both.
    """

    name = NAME
    page = "LoadAwareScheduling"

    def __init__(self, arguments: load.Arguments) -> None:
        self._arguments = arguments
        self.universe = arguments.universe()
        self._width = len(self.universe)
        self.expires = arguments.filter_expired and arguments.schedule_when_expired
        self.columns = 2 * (2 + self._width) + 1 + 3 * self._width
        self._reasons = (
            *(busy(name) for name in self.universe),
            *(busy(name, window=True) for name in self.universe),
            STALE,
        )
        estimator = estimation.Estimator(arguments)
        self.estimate, self.resident = estimator.estimate, estimator.resident
        weights = [arguments.weights.get(name, 0) for name in self.universe]
        self._weights_listed, self._weights = weights, np.array(weights)
        self._weight = sum(weights) + arguments.dominant_weight
        side, fresh = 2 + self._width, 2 * (2 + self._width)
        scored = fresh + 1 + self._width
        # By whether a pod is a prod pod, no before yes.
        self._sides = slice(side, fresh), slice(0, side)
        self._offered = slice(fresh, scored)
        self._taken = (
            slice(scored + self._width, scored + 2 * self._width),
            slice(scored, scored + self._width),
        )
        self._reader = measured.Reader(arguments)
        self._node_sums = node_sums.NodeSums(
            self.resident, self._width, include_system=arguments.prod_includes_system
        )

    # -- what is known of a node -----------------------------------------------------------

    def report(self, facts: views.NodeInfo) -> load.Report | None:
        """Return the report of a node over the resources of these arguments."""
        return None if facts.report is None else load.restated(facts.report, self.universe)

    def sums(self, facts: views.NodeInfo) -> load.Sums | None:
        """Return what the pods of a node add to its report; None without a report."""
        report = self.report(facts)
        return None if report is None else self._sums(report, facts)

    def _sums(self, report: load.Report, facts: views.NodeInfo) -> load.Sums:
        return self._node_sums.of(facts.node.name, report, facts.pods)

    def node(self, info: views.NodeInfo) -> tuple[tuple[int, ...], None]:
        """Return the figures of one node in the layout described above."""
        return self._figures(info), None

    def start(self) -> None:
        """Keep nothing of the cluster as a whole."""

    def cluster(self, old: None, delta: views.Delta) -> None:
        """Keep nothing of the cluster as a whole."""

    def _figures(self, facts: views.NodeInfo) -> tuple[int, ...]:
        report = self.report(facts)
        if report is not None and report.usage is not None:
            return self._reader.of(facts.node, report).figures(self._sums(report, facts))
        free = (_NEVER, 0, *(_NEVER,) * self._width)
        prod = other = free
        if report is not None:
            profile, late = self._reader.profile(facts.node), self._reader.filtered_until(report)
            prod, other = (
                (late, *free[1:]) if profile.chosen(prod=side)[0].active() else free
                for side in (True, False)
            )
        total = load.vector(dict(facts.node.total), self.universe)
        return (*prod, *other, 0, *total, *(0,) * 2 * self._width)

    def shown(self, info: views.NodeInfo) -> dict[str, Any]:
        """Return what is added up on a node."""
        return inspection.counted(self, info)

    def inspect(self, facts: views.NodeInfo) -> dict[str, Any]:
        """Return what is added up, what was measured, and the thresholds that hold here."""
        profile = self._reader.profile(facts.node)
        return inspection.inspected(self, facts, profile)

    # -- extension points ------------------------------------------------------------------

    def pre_filter(self, pod: views.PodInfo, view: views.View) -> Expected:
        """Estimate what the pod will use."""
        del view
        wanted = pod.requirements
        return Expected(self.estimate(wanted), wanted.band is Band.PROD, wanted.daemon)

    def filter(
        self, prepared: Expected, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Verdict | None:
        """Refuse nodes on which the pod would push usage over a threshold."""
        if prepared.daemon:
            return None
        if rows.size == 1:
            column = view.figures[NAME][self._sides[prepared.prod], rows.item()].tolist()
            code = one_node.filter_code(column, prepared.amounts, _milliseconds(now))
            code = self._code_of_stale if code == one_node.STALE else code
            return verdicts.Verdict(np.array((code,), dtype=np.int16), self._reasons)
        until, windowed, *room = view.gathered(NAME, rows, self._sides[prepared.prod])
        codes = np.zeros(rows.size, dtype=np.int16)
        for index in reversed(range(self._width)):
            np.copyto(codes, index + 1, where=room[index] < prepared.amounts[index])
        if np.count_nonzero(windowed):
            codes[(windowed != 0) & (codes != 0)] += self._width
        stale = until <= _milliseconds(now)
        if np.count_nonzero(stale):
            codes[stale] = self._code_of_stale
        return verdicts.Verdict(codes, self._reasons)

    @property
    def _code_of_stale(self) -> int:
        return 0 if self._arguments.schedule_when_expired else len(self._reasons)

    def passes_all(self, prepared: Expected, view: views.View, now: float) -> bool:
        """Whether every report is fresh, and every node has room for what the pod may use."""
        if prepared.daemon:
            return True
        lowest = view.lowest(NAME)
        if lowest is None:
            return False
        column = lowest[self._sides[prepared.prod]]
        return not one_node.filter_code(column, prepared.amounts, _milliseconds(now))

    def shortage(
        self, prepared: Expected, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Shares:
        """Say what share of the pod's estimate is too much on each node; all of it where stale."""
        until, _, *room = view.gathered(NAME, rows, self._sides[prepared.prod])
        worst = np.zeros(rows.size)
        for index, amount in enumerate(prepared.amounts):
            lacking = amount - room[index].astype(np.float64)
            np.maximum(worst, lacking / max(amount, 1), out=worst)
        worst[until <= _milliseconds(now)] = 1.0
        return worst

    def diagnose(
        self, prepared: Expected, view: views.View, row: int, now: float
    ) -> verdicts.Diagnosis:
        """Say how full the node would be, per resource that a threshold restricts."""
        until, _, *room = view.figures[NAME][self._sides[prepared.prod], row].tolist()
        name = view.names[row]
        if until <= _milliseconds(now):
            return _stale(name, now - until / 1000 if until else None)
        facts = view.node(row)
        report, sums = self.report(facts), self.sums(facts)
        if report is None or sums is None:
            return verdicts.Diagnosis("")
        profile = self._reader.profile(facts.node)
        group, compares_prod = profile.chosen(prod=prepared.prod)
        used = load.basis(
            report, prod=compares_prod, kind=group.kind, duration=group.duration
        ).expected(sums)
        total = load.vector(dict(facts.node.total), self.universe)
        places = zip(self.universe, room, used, total, strict=True)
        return diagnosis.shortfalls(name, group.percent, places, prepared.amounts)

    def score(
        self, prepared: Expected, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Score | None:
        """Prefer nodes that stay emptier with the pod on them."""
        if not self._weight:
            return None
        arguments, moment = self._arguments, _milliseconds(now)
        offered, taken = self._offered, self._taken[prepared.prod]
        if rows.size == 1:
            column = view.figures[NAME][offered.start : taken.stop, rows.item()].tolist()
            dominant, amounts = arguments.dominant_weight, prepared.amounts
            value = one_node.score(self._weights_listed, dominant, column, amounts, moment)
            return verdicts.Score(np.array((value,), dtype=np.int64))
        figures = view.gathered(NAME, rows, offered)
        until, totals = figures[0], figures[1:]
        shares = totals - view.gathered(NAME, rows, taken)
        shares -= np.array(prepared.amounts, dtype=np.int64)[:, np.newaxis]
        np.maximum(shares, 0, out=shares)
        shares *= 100
        shares //= np.maximum(totals, 1)
        values = self._weights @ shares
        if arguments.dominant_weight:
            values += arguments.dominant_weight * shares.min(axis=0, initial=100)
        values //= self._weight
        stale = until <= moment
        if np.count_nonzero(stale):
            values[stale] = 0
        return verdicts.Score(values)

    def could_help(self, prepared: Expected | None, delta: views.Delta) -> bool:
        """Look again at what is measured, at pods that left, and at nodes."""
        del prepared
        match delta:
            case views.ReportDelta() | views.NodeDelta():
                return True
            case views.ClaimDelta():
                return delta.before is not None
            case _:
                return False


def _milliseconds(now: float) -> int:
    return round(now * 1000)


def _stale(node: str, late: float | None) -> verdicts.Diagnosis:
    helps = (f"a report from the agent of {node}: look whether it runs there",)
    if late is None:
        return verdicts.Diagnosis("its agent has not reported yet", helps)
    return verdicts.Diagnosis(f"the report should have been renewed {late:.0f} s ago", helps)
