"""Run the extension points in order; clamp, weigh, merge, and keep every reason."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from extender.framework import (
    cycle,
    extension_points,
    nominations,
    permit,
    protocols,
    verdicts,
    views,
    weighing,
)
from extender.framework.nodes import node_filters, numa, reserved_capacity

ROW: Final = np.zeros(1, dtype=np.intp)
"""The candidate of a view of one node."""

Cycle = cycle.Cycle
Refusal = cycle.Refusal
Weighted = extension_points.Weighted


def alone(row: int) -> verdicts.Rows:
    """Return the candidates of a call about one node."""
    return np.array((row,), dtype=np.intp)


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The joint verdict of all filters: per candidate 0, or 1 + the index of the refusal."""

    codes: verdicts.Codes
    refusals: tuple[Refusal, ...]

    def refusal(self, place: int) -> Refusal | None:
        """Return why a candidate is refused, None if it passes."""
        code = int(self.codes[place])
        return self.refusals[code - 1] if code else None


@dataclasses.dataclass(frozen=True, slots=True)
class Pipeline:
    """The plug-ins of each extension point, in the order in which they are asked."""

    pre_filters: tuple[protocols.PreFilter, ...] = ()
    filters: tuple[protocols.Filter, ...] = ()
    screens: Mapping[str, protocols.Prescreen] = dataclasses.field(default_factory=dict)
    """Those filters that tell at little cost that every node passes."""
    node_filters: tuple[protocols.NodeFilter, ...] = ()
    scorers: tuple[Weighted, ...] = ()
    rankers: tuple[tuple[protocols.Ranker, int], ...] = ()
    """Those who compare candidates, each with its weight."""
    aligned: numa.Aligned = dataclasses.field(default_factory=numa.Aligned)
    reserved: reserved_capacity.ReservedCapacity = dataclasses.field(
        default_factory=reserved_capacity.ReservedCapacity
    )
    reservers: tuple[protocols.Reserver, ...] = ()
    permits: tuple[protocols.Permit, ...] = ()
    selectors: Mapping[str, protocols.VictimSelector] = dataclasses.field(default_factory=dict)
    cluster_selectors: Mapping[str, protocols.ClusterVictimSelector] = dataclasses.field(
        default_factory=dict
    )
    guards: tuple[protocols.VictimGuard, ...] = ()
    companions: tuple[protocols.VictimCompanions, ...] = ()
    diagnosers: Mapping[str, protocols.Diagnoser] = dataclasses.field(default_factory=dict)
    codecs: tuple[protocols.AllocationCodec, ...] = ()
    hints: Mapping[str, protocols.QueueingHints] = dataclasses.field(default_factory=dict)
    sorts: tuple[protocols.QueueSort, ...] = ()
    points: extension_points.PointsByNames = dataclasses.field(init=False, compare=False)
    """Which of them are asked about a pod."""

    def __post_init__(self) -> None:
        """Prepare to find out once who is asked about pods that concern the same plug-ins."""
        object.__setattr__(self, "points", _points(self))

    def become(self, other: "Pipeline") -> None:
        """Ask other plug-ins from now on, as every holder of this pipeline does at once.

        The one change that a pipeline undergoes: no part keeps half of the old one.
        """
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, getattr(other, field.name))

    def names_victims(self, plugin: str) -> bool:
        """Whether pods could leave for a pod that a plug-in, or NUMA alignment, refuses."""
        return bool(selectors_of(self, plugin)) or plugin in self.cluster_selectors

    # -- PreFilter ---------------------------------------------------------------------------

    def cycle(self, pod: views.PodInfo, view: views.View) -> Cycle:
        """Let every plug-in read the pod; the first that refuses it ends that."""
        prepared: dict[str, Any] = {}
        for plugin in self.pre_filters:
            found = plugin.pre_filter(pod, view)
            if isinstance(found, verdicts.Status):
                return Cycle(pod, prepared, Refusal(plugin.name, found))
            if found is not None:
                prepared[plugin.name] = found
        return Cycle(pod, prepared)

    # -- Filter ------------------------------------------------------------------------------

    def filter(self, asked: Cycle, view: views.View, rows: verdicts.Rows, now: float) -> Outcome:
        """Judge candidates; the first refusal of a node is the one that is reported."""
        outcome = self._filter(asked, view, rows, now)
        if not view.nominated or (asked.refused and asked.refused.status.everywhere):
            return outcome
        codes, refusals = outcome.codes, list(outcome.refusals)
        for place in _unsettled(codes, refusals):
            # What is kept for this very pod, or for lesser ones, does not stand in its way.
            row = int(rows[place])
            ignored = nominations.ignored(asked.pod, view, row) if row in view.nominated else ()
            if not ignored:
                continue
            one = view.with_claims(row, remove=ignored)
            refusal = self._filter(self.cycle(asked.pod, one), one, ROW, now).refusal(0)
            codes[place] = 0 if refusal is None else _code(refusal, refusals)
        crowded = nominations.crowded(asked.pod, view, rows, codes)
        if crowded:
            codes[crowded] = _code(Refusal(nominations.NAME, nominations.KEPT), refusals)
        return Outcome(codes, tuple(refusals))

    def _filter(self, asked: Cycle, view: views.View, rows: verdicts.Rows, now: float) -> Outcome:
        outcome = self._filters(asked, view, rows, now)
        if asked.refused is not None or not self.reserved.concerns(asked):
            return outcome
        question = reserved_capacity.Question(asked, view, rows, now)
        return Outcome(
            *self.reserved.joined(
                question,
                (outcome.codes, outcome.refusals),
                lambda changed, one, row: self._filters(changed, one, alone(row), now).refusal(0),
            )
        )

    def _filters(self, asked: Cycle, view: views.View, rows: verdicts.Rows, now: float) -> Outcome:
        codes = np.zeros(rows.size, dtype=np.int16)
        if asked.refused is not None:
            codes[:] = 1
            return Outcome(codes, (asked.refused,))
        refusals: list[Refusal] = []
        points = self.points[asked.concerned]
        for plugin, screen in points.filters:
            prepared = asked.prepared[plugin.name]
            if screen is not None and screen.passes_all(prepared, view, now):
                continue
            judged = _asked_about(view, rows)
            verdict = plugin.filter(prepared, view, judged, now)
            if verdict is None or not np.count_nonzero(verdict.codes):
                continue
            offset = len(refusals)
            refusals.extend(Refusal(plugin.name, status) for status in verdict.statuses)
            found = verdict.codes if judged is rows else verdict.codes[rows]
            fresh = (codes == 0) & (found != 0)
            np.copyto(codes, found + np.int16(offset), where=fresh)
            if np.count_nonzero(codes) == codes.size:
                return Outcome(codes, tuple(refusals))
        node_filters.judge(points, self.aligned, (asked, view, rows), (codes, refusals))
        return Outcome(codes, tuple(refusals))

    # -- Score -------------------------------------------------------------------------------

    def score(
        self, asked: Cycle, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Column:
        """Weigh all scorers for candidates into 0..100, plus TIER for every tier."""
        return weighing.weighed(self.scores(asked, view, rows, now), rows.size)

    def scores(
        self, asked: Cycle, view: views.View, rows: verdicts.Rows, now: float
    ) -> list[tuple[int, verdicts.Score]]:
        """Return the weight and the raw numbers of every scorer with a preference for the pod."""
        found: list[tuple[int, verdicts.Score]] = []
        judged = _asked_about(view, rows)
        for entry in self.points[asked.concerned].scorers:
            prepared = asked.prepared[entry.scorer.name]
            score = entry.scorer.score(prepared, view, judged, now)
            if score is not None:
                found.append((entry.weight, score if judged is rows else score.of(rows)))
        return found + weighing.ranked(self.rankers, asked, view, rows, now)

    # -- Reserve and Permit ------------------------------------------------------------------

    def reserve(
        self, asked: Cycle, view: views.View, row: int
    ) -> dict[str, verdicts.Grant] | Refusal:
        """Ask every reserver for one node; the first that refuses ends it, nothing is kept.

        Where the pod may use what is kept for it, that is tried first.
        """
        refused: Refusal | None = None
        for changed, one, place in self.reserved.shown(asked, view, row):
            answer = self._reserve(changed, one, place)
            if not isinstance(answer, Refusal):
                return answer
            refused = refused or answer
        return refused or self._reserve(asked, view, row)

    def _reserve(
        self, asked: Cycle, view: views.View, row: int
    ) -> dict[str, verdicts.Grant] | Refusal:
        allocations = self.aligned.allocate(asked, view, row)
        if isinstance(allocations, Refusal):
            return allocations
        grants = {name: verdicts.Grant(found) for name, found in allocations.items()}
        for plugin in self.points[asked.concerned].reservers:
            prepared = asked.prepared[plugin.name]
            answer = plugin.reserve(asked.pod, prepared, view, row, allocations)
            if isinstance(answer, verdicts.Status):
                return Refusal(plugin.name, answer)
            if answer is None:
                continue
            grants[plugin.name] = answer
            if answer.allocation is not None:
                allocations[plugin.name] = answer.allocation
        return grants

    def permit(self, asked: Cycle, view: views.View, now: float) -> permit.Permission:
        """Ask everybody whether a pod that is counted on its node may be bound now."""
        answers = (
            (plugin.name, plugin.permit(asked.pod, asked.prepared[plugin.name], view, now))
            for plugin in self.points[asked.concerned].permits
        )
        return permit.joined(answers)

    def permits_of(self, asked: Cycle) -> bool:
        """Whether any plug-in has a say in when a pod is bound."""
        return bool(self.points[asked.concerned].permits)

    # -- waiting pods ------------------------------------------------------------------------

    def line(self, pod: views.PodInfo, view: views.View) -> str:
        """Return what a waiting pod competes for with others, empty where for nothing."""
        return next((line for sort in self.sorts if (line := sort.line(pod, view))), "")

    def frees(self, delta: views.Delta) -> bool:
        """Whether pods that compete may pass after a change."""
        return any(sort.frees(delta) for sort in self.sorts)

    # -- for people --------------------------------------------------------------------------

    def grounds(self, asked: Cycle, view: views.View, row: int, now: float) -> list[str]:
        """Return what spoke for a node, one clause per plug-in, for the record on the pod."""
        rows = alone(row)
        spoken = list(self.points.passed)
        for entry in self.points[asked.concerned].scorers:
            score = entry.scorer.score(asked.prepared[entry.scorer.name], view, rows, now)
            if score is not None:
                spoken.append(f"{entry.scorer.name}: score {int(weighing.normalised(score)[0])}")
        return spoken

    def sentence(
        self, asked: Cycle, view: views.View, row: int, refusal: Refusal, now: float
    ) -> str:
        """Spell a refusal out for people: the reason and the figures behind it."""
        figures = self.diagnose(asked, view, row, refusal, now).figures
        return f"{refusal.status.text}: {figures}" if figures else refusal.status.text

    def diagnose(
        self, asked: Cycle, view: views.View, row: int, refusal: Refusal, now: float
    ) -> verdicts.Diagnosis:
        """Return what stands behind a refusal."""
        if refusal.plugin == numa.NAME:
            return self.aligned.diagnose(asked, view, row)
        plugin, prepared = self._diagnoser(asked, refusal)
        if plugin is None:
            return verdicts.Diagnosis("")
        return plugin.diagnose(prepared, view, row, now)

    def constraints(self, asked: Cycle, view: views.View) -> dict[str, verdicts.Diagnosis]:
        """Return by plug-in what a pod is asked for whichever node it takes."""
        found = [p for p in self.diagnosers.values() if isinstance(p, protocols.PodDiagnoser)]
        return {
            p.name: p.diagnose_pod(asked.prepared[p.name], view)
            for p in extension_points.of(found, tuple(asked.prepared))
        }

    def shortage(
        self, asked: Cycle, view: views.View, rows: verdicts.Rows, refusal: Refusal, now: float
    ) -> verdicts.Shares:
        """Return how far candidates are from passing the plug-in behind a refusal."""
        plugin, prepared = self._diagnoser(asked, refusal)
        if plugin is None:
            return np.zeros(rows.size)
        return plugin.shortage(prepared, view, rows, now)

    def _diagnoser(self, asked: Cycle, refusal: Refusal) -> tuple[protocols.Diagnoser | None, Any]:
        prepared = asked.prepared.get(refusal.plugin)
        return None if prepared is None else self.diagnosers.get(refusal.plugin), prepared


def _points(plugins: Pipeline) -> extension_points.PointsByNames:
    """Return who is asked about a pod, by those that prepared something of it."""
    every = extension_points.Points(
        tuple([(plugin, plugins.screens.get(plugin.name)) for plugin in plugins.filters]),
        plugins.node_filters,
        bool(plugins.aligned.names),
        tuple([entry for entry in plugins.scorers if entry.weight]),
        plugins.reservers,
        plugins.permits,
    )
    return extension_points.PointsByNames(every, plugins.aligned)


def without(plugins: Pipeline, name: str) -> Pipeline:
    """Return the same plug-ins but for one, which judges no pod."""
    return dataclasses.replace(
        plugins,
        pre_filters=tuple(one for one in plugins.pre_filters if one.name != name),
        filters=tuple(one for one in plugins.filters if one.name != name),
        node_filters=tuple(one for one in plugins.node_filters if one.name != name),
        scorers=tuple(one for one in plugins.scorers if one.scorer.name != name),
        rankers=tuple(one for one in plugins.rankers if one[0].name != name),
        reservers=tuple(one for one in plugins.reservers if one.name != name),
        permits=tuple(one for one in plugins.permits if one.name != name),
    )


def selectors_of(plugins: Pipeline, refusing: str) -> tuple[protocols.VictimSelector, ...]:
    """Return who names victims on a node that a plug-in refuses.

    Where NUMA nodes cannot be aligned, whatever any hint provider allocates stands in the way.
    """
    if refusing != numa.NAME:
        found = plugins.selectors.get(refusing)
        return () if found is None else (found,)
    providers = {provider.name for provider in plugins.aligned.providers}
    return tuple(one for name, one in plugins.selectors.items() if name in providers)


def _unsettled(codes: verdicts.Codes, refusals: Sequence[Refusal]) -> list[int]:
    """Return the places of refusals that are not about every node."""
    if not np.count_nonzero(codes):
        return []
    settled = np.array([False, *(one.status.everywhere for one in refusals)])
    places: list[int] = np.flatnonzero((codes != 0) & ~settled[codes]).tolist()
    return places


def _code(refusal: Refusal, refusals: list[Refusal]) -> int:
    """Return the code of a refusal, which is put into the list where it is new."""
    if refusal not in refusals:
        refusals.append(refusal)
    return 1 + refusals.index(refusal)


def _asked_about(view: views.View, rows: verdicts.Rows) -> verdicts.Rows:
    """Return the rows that plug-ins judge for some candidates.

    Going through whole columns is cheaper than picking most of their rows.
    """
    count = view.known.size
    return views.every(count) if 2 * rows.size > count else rows
