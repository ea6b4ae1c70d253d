"""The total that kube-scheduler would compute: score plug-ins, normalised, weighted and added."""

import dataclasses

import numpy as np

from domain.scoring import columns as node_columns
from domain.scoring import node_resources, normalize, profile
from domain.scoring import pod as scored_pod

Integers = node_columns.Integers

POINT = 10
"""Worth of one point of an extender of weight 1: its scores are 0 to 10, the total's 0 to 100."""


@dataclasses.dataclass(frozen=True, slots=True)
class PluginScores:
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


@dataclasses.dataclass(frozen=True, slots=True)
class Scores:
    """The in-tree total of every candidate row and the plug-ins that it is the sum of."""

    rows: Integers
    plugins: tuple[PluginScores, ...]
    total: Integers

    @property
    def best(self) -> Integers:
        """The candidate rows with the highest total, in the order of the candidates."""
        return self.rows[self.total == self.total.max()] if len(self.rows) else self.rows


def with_points(scores: Scores, source: str, points: Integers, weight: int) -> Scores:
    """Add the points of an extender, as the scheduler does: each counts ten times its weight."""
    added = PluginScores(source, weight * POINT, points, points)
    return Scores(scores.rows, (*scores.plugins, added), scores.total + added.weighted)


def choose(scores: Scores, seed: int, avoided: frozenset[int] = frozenset()) -> int:
    """Return the row with the highest total; the seed decides between equals.

    Avoided rows lose against their equals: there this pod's last attempt failed after the filter.
    """
    best = scores.best.tolist()
    welcome = [row for row in best if row not in avoided]
    chosen: int = (welcome or best)[seed % len(welcome or best)]
    return chosen


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
    inputs = _Inputs(settings, pod, nodes, compared, rows)
    plugins = tuple(
        PluginScores(name, weight, *found)
        for name, weight in settings.weights
        if (found := _plugin(name, inputs)) is not None
    )
    total = np.zeros(len(rows), dtype=np.int64)
    for one in plugins:
        total += one.weighted
    return Scores(rows, plugins, total)


@dataclasses.dataclass(frozen=True, slots=True)
class _Inputs:
    """Everything that any plug-in reads."""

    settings: profile.ScoringProfile
    pod: scored_pod.PodScoring
    nodes: node_columns.NodeColumns
    compared: node_columns.PodColumns
    rows: Integers


def _plugin(name: str, given: _Inputs) -> tuple[Integers, Integers] | None:
    """Return raw and normalised scores; None where the plug-in skips the pod."""
    match name:
        case profile.FIT:
            raw = node_resources.fit_scores(given.settings.fit, given.pod, given.nodes, given.rows)
            return raw, raw
        case profile.BALANCE:
            return _balance(given)
        case profile.TAINTS:
            raw = _taken(given.compared.intolerable, given.rows)
            return raw, normalize.reversed_proportional(raw)
        case profile.NODE_AFFINITY if given.pod.preferences is not None:
            raw = _taken(given.compared.preferred, given.rows)
            return raw, normalize.proportional(raw)
        case profile.IMAGES:
            raw = _taken(given.compared.image_bytes, given.rows)
            return raw, normalize.image_scores(raw, given.pod.image_count)
        case profile.SPREAD if given.compared.spread is not None:
            raw = normalize.spread_raw(given.compared.spread, given.rows)
            return raw, normalize.spread_scores(raw)
    return None


def _balance(given: _Inputs) -> tuple[Integers, Integers] | None:
    settings, pod = given.settings, given.pod
    if settings.release.balance_skips_best_effort and not any(
        pod.requests.get(name) for name in settings.balanced
    ):
        return None
    raw = node_resources.balance_scores(
        settings.balanced, settings.release.balance_gain, pod, given.nodes, given.rows
    )
    return raw, raw


def _taken(figures: Integers | None, rows: Integers) -> Integers:
    return np.zeros(len(rows), dtype=np.int64) if figures is None else figures.take(rows)
