"""Scores joined: normalised to 0..100, weighed, with tiers that outrank any weight. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from extender.framework import cycle, protocols, verdicts, views

TIER: Final = 1 << 20
"""What a tier counts for: more than any weighed total, the scheduler's own included."""


def ranked(
    rankers: Iterable[tuple[protocols.Ranker, int]],
    asked: cycle.Cycle,
    view: views.View,
    rows: verdicts.Rows,
    now: float,
) -> list[tuple[int, verdicts.Score]]:
    """Return the weight and the numbers of every ranker with a preference for the pod."""
    found: list[tuple[int, verdicts.Score]] = []
    for ranker, weight in rankers:
        prepared = asked.prepared.get(ranker.name)
        order = None if prepared is None else ranker.rank(prepared, view, rows, now)
        if order is not None:
            found.append((weight, order))
    return found


def weighed(parts: Sequence[tuple[int, verdicts.Score]], size: int) -> verdicts.Column:
    """Join the numbers of scorers about so many candidates into 0..100, plus TIER per tier."""
    if len(parts) == 1:
        # As most often: what weighing leaves as it is.
        only = parts[0][1]
        values = normalised(only)
        return values if only.tiers is None else values + only.tiers * TIER
    total = np.zeros(size, dtype=np.int64)
    tiers: verdicts.Column | None = None
    weights = 0
    for weight, score in parts:
        total += weight * normalised(score)
        weights += weight
        if score.tiers is not None:
            tiers = score.tiers if tiers is None else np.maximum(tiers, score.tiers)
    joined = total // weights if weights else total
    return joined if tiers is None else joined + tiers * TIER


def normalised(score: verdicts.Score) -> verdicts.Column:
    """Return the numbers of a scorer within 0..100; more is better."""
    values = score.values
    if score.scale:
        highest = int(values.max(initial=0))
        values = values * verdicts.BEST // highest if highest else values
    # Not `clip`, which takes longer to find out what it was given than to do its work.
    clamped: verdicts.Column = np.minimum(np.maximum(values, 0), verdicts.BEST)
    return clamped if score.more_is_better else verdicts.BEST - clamped
