"""The total that kube-scheduler would compute: score plug-ins, normalised, weighted and added."""

import functools
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import numpy as np

from domain.scoring import columns as node_columns
from domain.scoring import node_resources, normalize, profile
from domain.scoring import pod as scored_pod

Integers = node_columns.Integers
_Scored = tuple[Integers, Integers]

POINT = 10
"""Worth of one point of an extender of weight 1: its scores are 0 to 10, the total's 0 to 100."""


class PluginScores(msgspec.Struct, frozen=True, gc=False):
    """What one score plug-in said of each candidate row."""

    plugin: str
    weight: int
    raw: Integers
    """Before NormalizeScore."""
    normalized: Integers
    """0 to 100."""

    @property
    def weighted(self) -> Integers:
        """The contribution to the total."""
        return self.normalized * self.weight


class Scores(msgspec.Struct, frozen=True, gc=False):
    """The in-tree total of every candidate row and the plug-ins that it is the sum of."""

    rows: Integers
    plugins: tuple[PluginScores, ...]
    total: Integers

    @property
    def best(self) -> Integers:
        """The candidate rows with the highest total, in the order of the candidates."""
        return self.rows[self.best_places]

    @property
    def best_places(self) -> Integers:
        """The places among the candidates of those rows."""
        found: Integers = (self.total == self.total.max(initial=0)).nonzero()[0]
        return found


def with_points(scores: Scores, source: str, points: Integers, weight: int) -> Scores:
    """Add the points of an extender, as the scheduler does: each counts ten times its weight."""
    added = PluginScores(source, weight * POINT, points, points)
    return Scores(scores.rows, (*scores.plugins, added), scores.total + added.weighted)


def choose(scores: Scores, seed: int, avoided: frozenset[int] = frozenset()) -> int:
    """Return the place among the candidates of the highest total; the seed decides between equals.

    Avoided rows lose against their equals: there this pod's last attempt failed after the filter.
    """
    best: list[int] = scores.best_places.tolist()
    if avoided:
        best = [place for place in best if int(scores.rows[place]) not in avoided] or best
    return best[seed % len(best)]


def score(
    settings: profile.ScoringProfile,
    pod: scored_pod.PodScoring,
    nodes: node_columns.NodeColumns,
    compared: node_columns.PodColumns,
    rows: Integers,
) -> Scores:
    """Score the candidate rows: those that passed every filter, the scheduler's and ours.

    What plug-ins skip, and what is the same on every node, does not appear.
    """
    inputs = _Inputs(settings, pod, node_resources.Taken(nodes, rows), compared, rows)
    plugins = []
    nothing, total = constant(0, len(rows)), np.zeros(len(rows), dtype=np.int64)
    for name, weight, scorer in _scorers(settings.weights):
        found = scorer(inputs)
        if found is None:
            continue
        raw, normalized = found
        plugins.append(PluginScores(name, weight, raw, normalized))
        if normalized is not nothing:
            total += normalized if weight == 1 else normalized * weight
    return Scores(rows, tuple(plugins), total)


class _Inputs(msgspec.Struct, frozen=True, gc=False):
    """Everything that any plug-in reads."""

    settings: profile.ScoringProfile
    pod: scored_pod.PodScoring
    taken: node_resources.Taken
    compared: node_columns.PodColumns
    rows: Integers


def _fit(given: _Inputs) -> _Scored:
    raw = node_resources.fit_scores(given.settings.fit, given.pod, given.taken)
    return raw, raw


def _balance(given: _Inputs) -> _Scored | None:
    settings, pod = given.settings, given.pod
    if settings.release.balance_skips_best_effort and not any(
        map(pod.requests.get, settings.balanced)
    ):
        return None
    raw = node_resources.balance_scores(
        settings.balanced, settings.release.balance_gain, pod, given.taken
    )
    return raw, raw


def _taints(given: _Inputs) -> _Scored:
    if given.compared.intolerable is None:
        return constant(0, len(given.rows)), constant(normalize.HIGHEST, len(given.rows))
    raw = given.compared.intolerable.take(given.rows)
    return raw, normalize.reversed_proportional(raw)


def _node_affinity(given: _Inputs) -> _Scored | None:
    if given.pod.preferences is None:
        return None
    raw = _taken(given.compared.preferred, given.rows)
    return raw, normalize.proportional(raw)


def _images(given: _Inputs) -> _Scored:
    if given.compared.image_bytes is None:
        return constant(0, len(given.rows)), constant(0, len(given.rows))
    raw = given.compared.image_bytes.take(given.rows)
    return raw, normalize.image_scores(raw, given.pod.image_count)


def _spread(given: _Inputs) -> _Scored | None:
    if given.compared.spread is None:
        return None
    raw = normalize.spread_raw(given.compared.spread, given.rows)
    return raw, normalize.spread_scores(raw)


_Scorer = Callable[[_Inputs], _Scored | None]
_SCORERS: Final[Mapping[str, _Scorer]] = {
    profile.FIT: _fit,
    profile.BALANCE: _balance,
    profile.TAINTS: _taints,
    profile.NODE_AFFINITY: _node_affinity,
    profile.IMAGES: _images,
    profile.SPREAD: _spread,
}
"""Each returns raw and normalised scores; None where the plug-in skips the pod."""


@functools.lru_cache(maxsize=64)
def _scorers(weights: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int, _Scorer], ...]:
    """Return the plug-ins that do not score all nodes alike, with their weights."""
    return tuple((name, weight, _SCORERS[name]) for name, weight in weights if name in _SCORERS)


@functools.lru_cache(maxsize=64)
def constant(value: int, size: int) -> Integers:
    """Return so many times the same number, always the same array; it cannot be written to."""
    found = np.full(size, value, dtype=np.int64)
    found.flags.writeable = False
    return found


def _taken(figures: Integers | None, rows: Integers) -> Integers:
    return np.zeros(len(rows), dtype=np.int64) if figures is None else figures.take(rows)
