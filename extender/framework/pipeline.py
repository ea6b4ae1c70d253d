"""Run filters, scorers and reservers in order; clamp, weigh, and keep every reason."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from extender.framework import protocols, verdicts, views

BEST = verdicts.BEST


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """A status together with the plug-in that gave it."""

    plugin: str
    status: verdicts.Status


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The joint verdict of all filters: per row 0, or 1 + the index of the refusal."""

    codes: verdicts.Codes
    refusals: tuple[Refusal, ...]

    def refusal(self, row: int) -> Refusal | None:
        """Return why a row is refused, None if it passes."""
        code = int(self.codes[row])
        return self.refusals[code - 1] if code else None


@dataclasses.dataclass(frozen=True, slots=True)
class Weighted:
    """A scorer and how much it counts."""

    scorer: protocols.Scorer
    weight: int


@dataclasses.dataclass(frozen=True, slots=True)
class Pipeline:
    """The plug-ins in the order in which they are asked."""

    filters: tuple[protocols.Filter, ...]
    scorers: tuple[Weighted, ...]
    reservers: tuple[protocols.Reserver, ...]

    def become(self, other: "Pipeline") -> None:
        """Ask other plug-ins from now on, as whoever holds this pipeline does at once.

        The one change that a pipeline undergoes: nobody keeps half of the old one.
        """
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, getattr(other, field.name))

    def filter(self, request: views.PodInfo, view: views.View, now: float) -> Outcome:
        """Ask every filter; the first refusal of a node is the one that is reported."""
        codes = np.zeros(view.known.size, dtype=np.int16)
        refusals: list[Refusal] = []
        for plugin in self.filters:
            verdict = plugin.filter(request, view, now)
            if verdict is None or not np.count_nonzero(verdict.codes):
                continue
            offset = len(refusals)
            refusals.extend(Refusal(plugin.name, status) for status in verdict.statuses)
            fresh = (codes == 0) & (verdict.codes != 0) & view.known
            np.copyto(codes, verdict.codes + np.int16(offset), where=fresh)
            if np.count_nonzero(codes) == np.count_nonzero(view.known):
                break
        return Outcome(codes, tuple(refusals))

    def score(
        self,
        request: views.PodInfo,
        view: views.View,
        rows: Sequence[int] | npt.NDArray[np.intp],
        now: float,
    ) -> verdicts.Column:
        """Weigh all scorers for the rows of one call into 0..100."""
        picked = np.asarray(rows, dtype=np.intp)
        total = np.zeros(picked.size, dtype=np.int64)
        weights = 0
        for entry in self.scorers:
            score = entry.scorer.score(request, view, now)
            if score is None or entry.weight == 0:
                continue
            total += entry.weight * _normalised(score, picked)
            weights += entry.weight
        return total // weights if weights else total

    def reserve(
        self, request: views.PodInfo, view: views.View, row: int, now: float
    ) -> tuple[protocols.Allocation, ...] | Refusal:
        """Ask every reserver for one node; the first that refuses ends it, nothing is kept."""
        granted: list[protocols.Allocation] = []
        for plugin in self.reservers:
            answer = plugin.reserve(request, view, row, now)
            if isinstance(answer, verdicts.Status):
                return Refusal(plugin.name, answer)
            if answer is not None:
                granted.append(answer)
        return tuple(granted)

    def grounds(self, request: views.PodInfo, view: views.View, row: int, now: float) -> list[str]:
        """Return what spoke for a node, one clause per plug-in, for the record on the pod."""
        spoken = [f"{plugin.name}: passed" for plugin in self.filters]
        for entry in self.scorers:
            score = entry.scorer.score(request, view, now)
            if score is not None:
                spoken.append(f"{entry.scorer.name}: score {_normalised_one(score, row)}")
        return spoken

    def sentence(
        self,
        request: views.PodInfo,
        view: views.View,
        row: int,
        refusal: Refusal,
        now: float,
    ) -> str:
        """Spell a refusal out for people: the reason and the figures behind it."""
        figures = self.diagnose(request, view, row, refusal, now).figures
        return f"{refusal.status.reason}: {figures}" if figures else refusal.status.reason

    def diagnose(
        self,
        request: views.PodInfo,
        view: views.View,
        row: int,
        refusal: Refusal,
        now: float,
    ) -> verdicts.Diagnosis:
        """Return what stands behind a refusal."""
        plugin = self._filter_named(refusal.plugin)
        return plugin.diagnose(request, view, row, now) if plugin else verdicts.Diagnosis("")

    def shortage(
        self, request: views.PodInfo, view: views.View, refusal: Refusal, now: float
    ) -> verdicts.Shares:
        """Return how far every row is from passing the plug-in behind a refusal."""
        plugin = self._filter_named(refusal.plugin)
        return plugin.shortage(request, view, now) if plugin else np.zeros(view.known.size)

    def _filter_named(self, name: str) -> protocols.Filter | None:
        return next((entry for entry in self.filters if entry.name == name), None)


def _normalised(score: verdicts.Score, picked: npt.NDArray[np.intp]) -> verdicts.Column:
    values = score.values[picked]
    if score.scale:
        highest = int(values.max(initial=0))
        values = values * BEST // highest if highest else values
    # Not `clip`, which takes longer to find out what it was given than to do its work.
    clamped: verdicts.Column = np.minimum(np.maximum(values, 0), BEST)
    return clamped if score.more_is_better else BEST - clamped


def _normalised_one(score: verdicts.Score, row: int) -> int:
    """Return the same for one row alone."""
    value = int(score.values[row])
    if score.scale and value > 0:
        value = BEST
    clamped = max(0, min(value, BEST))
    return clamped if score.more_is_better else BEST - clamped
