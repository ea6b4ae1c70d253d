"""Run the extension points in order; clamp, weigh, merge, and keep every reason."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from extender.framework import cycle, nominations, numa, permit, protocols, verdicts, views

BEST = verdicts.BEST
TIER = 1 << 20
"""What a tier counts for: more than any weighed total, the scheduler's own included."""

ROW: Final = np.zeros(1, dtype=np.intp)
"""The candidate of a view of one node."""

Cycle = cycle.Cycle
Refusal = cycle.Refusal


def alone(row: int) -> verdicts.Rows:
    """Return the candidates of a call about one node."""
    return np.array((row,), dtype=np.intp)


class _Named(Protocol):
    name: str


Point = TypeVar("Point", bound=_Named)


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The joint verdict of all filters: per candidate 0, or 1 + the index of the refusal."""

    codes: verdicts.Codes
    refusals: tuple[Refusal, ...]

    def refusal(self, place: int) -> Refusal | None:
        """Return why a candidate is refused, None if it passes."""
        code = int(self.codes[place])
        return self.refusals[code - 1] if code else None


@dataclasses.dataclass(frozen=True, slots=True)
class Weighted:
    """A scorer and how much it counts."""

    scorer: protocols.Scorer
    weight: int


@dataclasses.dataclass(frozen=True, slots=True)
class Pipeline:
    """The plug-ins of each extension point, in the order in which they are asked."""

    pre_filters: tuple[protocols.PreFilter, ...] = ()
    filters: tuple[protocols.Filter, ...] = ()
    screens: Mapping[str, protocols.Prescreen] = dataclasses.field(default_factory=dict)
    """Those filters that tell at little cost that every node passes."""
    node_filters: tuple[protocols.NodeFilter, ...] = ()
    scorers: tuple[Weighted, ...] = ()
    aligned: numa.Aligned = dataclasses.field(default_factory=numa.Aligned)
    reservers: tuple[protocols.Reserver, ...] = ()
    permits: tuple[protocols.Permit, ...] = ()
    selectors: Mapping[str, protocols.VictimSelector] = dataclasses.field(default_factory=dict)
    cluster_selectors: Mapping[str, protocols.ClusterVictimSelector] = dataclasses.field(
        default_factory=dict
    )
    guards: tuple[protocols.VictimGuard, ...] = ()
    diagnosers: Mapping[str, protocols.Diagnoser] = dataclasses.field(default_factory=dict)
    codecs: tuple[protocols.AllocationCodec, ...] = ()
    hints: Mapping[str, protocols.QueueingHints] = dataclasses.field(default_factory=dict)
    sorts: tuple[protocols.QueueSort, ...] = ()

    def become(self, other: "Pipeline") -> None:
        """Ask other plug-ins from now on, as every holder of this pipeline does at once.

        The one change that a pipeline undergoes: nobody keeps half of the old one.
        """
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, getattr(other, field.name))

    def names_victims(self, plugin: str) -> bool:
        """Whether anybody could leave for a pod that a plug-in refuses."""
        return plugin in self.selectors or plugin in self.cluster_selectors

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
        if not view.nominated or not np.count_nonzero(outcome.codes):
            return outcome
        codes, refusals = outcome.codes, list(outcome.refusals)
        for place in np.flatnonzero(codes).tolist():
            # What is kept for this very pod, or for lesser ones, does not stand in its way.
            row = int(rows[place])
            ignored = nominations.ignored(asked.pod, view, row) if row in view.nominated else ()
            if not ignored:
                continue
            one = view.with_claims(row, remove=ignored)
            refusal = self._filter(self.cycle(asked.pod, one), one, ROW, now).refusal(0)
            if refusal is None:
                codes[place] = 0
                continue
            if refusal not in refusals:
                refusals.append(refusal)
            codes[place] = 1 + refusals.index(refusal)
        return Outcome(codes, tuple(refusals))

    def _filter(self, asked: Cycle, view: views.View, rows: verdicts.Rows, now: float) -> Outcome:
        codes = np.zeros(rows.size, dtype=np.int16)
        if asked.refused is not None:
            codes[:] = 1
            return Outcome(codes, (asked.refused,))
        refusals: list[Refusal] = []
        judged = _asked_about(view, rows)
        for plugin in self.filters:
            prepared = asked.prepared.get(plugin.name)
            screen = self.screens.get(plugin.name)
            if prepared is None or (screen and screen.passes_all(prepared, view, now)):
                continue
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
        self._filter_nodes(asked, view, rows, (codes, refusals))
        return Outcome(codes, tuple(refusals))

    def _filter_nodes(
        self,
        asked: Cycle,
        view: views.View,
        rows: verdicts.Rows,
        judged: tuple[verdicts.Codes, list[Refusal]],
    ) -> None:
        """Look at the survivors one by one where a plug-in has to."""
        plugins = _concerned(self.node_filters, asked)
        aligned = self.aligned.concerns(asked)
        if not plugins and not aligned:
            return
        codes, refusals = judged
        numbers: dict[Refusal, int] = {}
        for place in np.flatnonzero(codes == 0).tolist() if plugins else ():
            row = int(rows[place])
            for plugin in plugins:
                status = plugin.filter_node(asked.prepared[plugin.name], view, row)
                if status is not None:
                    codes[place] = _number(Refusal(plugin.name, status), numbers, refusals)
                    break
        if not aligned:
            return
        left = np.flatnonzero(codes == 0)
        trials = self.aligned.trials(asked, view, rows[left])
        left = left if trials is None else left[trials]
        if not left.size:
            return
        found, known = self.aligned.refusals(asked, view, rows[left])
        for number in np.unique(found[found > 0]).tolist():
            code = _number(known[number - 1], numbers, refusals)
            codes[left[found == number]] = code

    # -- Score -------------------------------------------------------------------------------

    def score(
        self, asked: Cycle, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Column:
        """Weigh all scorers for candidates into 0..100, plus TIER for every tier."""
        total = np.zeros(rows.size, dtype=np.int64)
        tiers: verdicts.Column | None = None
        weights = 0
        judged = _asked_about(view, rows)
        for entry in self.scorers:
            prepared = asked.prepared.get(entry.scorer.name)
            if prepared is None or entry.weight == 0:
                continue
            score = entry.scorer.score(prepared, view, judged, now)
            if score is None:
                continue
            if judged is not rows:
                score = score.of(rows)
            total += entry.weight * _normalised(score)
            weights += entry.weight
            if score.tiers is not None:
                tiers = score.tiers if tiers is None else np.maximum(tiers, score.tiers)
        weighed = total // weights if weights else total
        return weighed if tiers is None else weighed + tiers * TIER

    # -- Reserve and Permit ------------------------------------------------------------------

    def reserve(
        self, asked: Cycle, view: views.View, row: int
    ) -> dict[str, verdicts.Grant] | Refusal:
        """Ask every reserver for one node; the first that refuses ends it, nothing is kept."""
        allocations = self.aligned.allocate(asked, view, row)
        if isinstance(allocations, Refusal):
            return allocations
        grants = {name: verdicts.Grant(found) for name, found in allocations.items()}
        for plugin in _concerned(self.reservers, asked):
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
            for plugin in _concerned(self.permits, asked)
        )
        return permit.joined(answers)

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
        spoken = [f"{plugin.name}: passed" for plugin in self.filters]
        for entry in self.scorers:
            prepared = asked.prepared.get(entry.scorer.name)
            if prepared is None:
                continue
            score = entry.scorer.score(prepared, view, rows, now)
            if score is not None:
                spoken.append(f"{entry.scorer.name}: score {int(_normalised(score)[0])}")
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
            p.name: p.diagnose_pod(asked.prepared[p.name], view) for p in _concerned(found, asked)
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


def _number(refusal: Refusal, numbers: dict[Refusal, int], refusals: list[Refusal]) -> int:
    """Return the code of a refusal, which is put into the list where it is new."""
    if refusal not in numbers:
        refusals.append(refusal)
        numbers[refusal] = len(refusals)
    return numbers[refusal]


def _asked_about(view: views.View, rows: verdicts.Rows) -> verdicts.Rows:
    """Return the rows that plug-ins judge for some candidates.

    Going through whole columns is cheaper than picking most of their rows.
    """
    count = view.known.size
    return views.every(count) if 2 * rows.size > count else rows


def _concerned(plugins: Sequence[Point], asked: Cycle) -> list[Point]:
    """Return the plug-ins that have something to say about a pod."""
    return [plugin for plugin in plugins if plugin.name in asked.prepared]


def _normalised(score: verdicts.Score) -> verdicts.Column:
    values = score.values
    if score.scale:
        highest = int(values.max(initial=0))
        values = values * BEST // highest if highest else values
    # Not `clip`, which takes longer to find out what it was given than to do its work.
    clamped: verdicts.Column = np.minimum(np.maximum(values, 0), BEST)
    return clamped if score.more_is_better else BEST - clamped
