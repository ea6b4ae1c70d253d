"""NodeResourcesFitPlus: pack some resources and spread others, as the arguments say of each.

Of every configured resource a node has two figures: what it offers, and what its pods request. CPU
(millicores) and memory (bytes) are counted as NonZeroRequested of kube-scheduler's NodeInfo.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from api import names
from api.wire import quantity
from extender.framework import verdicts, views

NAME: Final = "NodeResourcesFitPlus"
MOST: Final = "MostAllocated"
LEAST: Final = "LeastAllocated"
Resources = Mapping[str, tuple[str, int]]
"""Strategy and weight by resource; a resource with another strategy scores 0."""
Prepared = tuple[tuple[int, int], ...]
"""Place of each configured resource that a pod requests, and the amount that counts."""


class NodeResourcesFitPlus:
    """Scores 0..100: the mean over the requested resources, weighed by the arguments."""

    name = NAME

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._names = tuple(resources)
        self.columns = 2 * len(resources)

    # -- state -------------------------------------------------------------------------------

    def node(self, info: views.NodeInfo) -> views.Figures:
        """Return what a node offers of every resource, then what its pods request."""
        offered = dict(info.node.allocatable)
        held = [
            _requested(claim.pod.requirements, self._names)
            for claim in info.claims
            if claim.kind in views.FIRM
        ]
        used = tuple(map(sum, zip(*held, strict=True))) if held else (0,) * len(self._names)
        return (*(offered.get(name, 0) for name in self._names), *used), None

    def start(self) -> None:
        """Keep nothing of the cluster as a whole."""

    def cluster(self, old: None, delta: views.Delta) -> None:
        """Keep nothing of the cluster as a whole."""

    # -- score -------------------------------------------------------------------------------

    def pre_filter(self, pod: views.PodInfo, view: views.View) -> Prepared:
        """Return which configured resources a pod requests, and how much of them."""
        del view
        wanted = {name for name, value in pod.requirements.requests if value > 0}
        amounts = dict(pod.requirements.sequential)
        return tuple(
            (place, amounts.get(name, 0))
            for place, name in enumerate(self._names)
            if name in wanted
        )

    def score(
        self, prepared: Prepared, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Score:
        """Return the weighted mean; 100 for a pod that requests nothing of what is configured."""
        del now
        if not prepared:
            return verdicts.Score(np.full(rows.size, verdicts.BEST, dtype=np.int64))
        figures = view.gathered(NAME, rows)
        total = np.zeros(rows.size, dtype=np.int64)
        weights = 0
        for place, amount in prepared:
            strategy, weight = self._resources[self._names[place]]
            weights += weight
            offered = figures[place]
            asked = figures[len(self._names) + place] + amount
            total += weight * _score(strategy, asked, offered)
        return verdicts.Score(total // max(weights, 1))

    # -- for people --------------------------------------------------------------------------

    def inspect(self, facts: views.NodeInfo) -> dict[str, Any]:
        """Return what a node offers of every configured resource, and what is requested."""
        figures, _ = self.node(facts)
        count = len(self._names)
        return {
            name: {
                "type": self._resources[name][0],
                "weight": self._resources[name][1],
                "allocatable": quantity.text(name, figures[place]),
                "requested": quantity.text(name, figures[count + place]),
            }
            for place, name in enumerate(self._names)
        }


def _score(strategy: str, asked: verdicts.Column, offered: verdicts.Column) -> verdicts.Column:
    """Return 0..100 by node, truncated; 0 where nothing is offered."""
    whole = np.maximum(offered, 1)
    if strategy == MOST:
        part = np.minimum(asked, offered)
    elif strategy == LEAST:
        part = np.maximum(offered - asked, 0)
    else:
        return np.zeros(offered.size, dtype=np.int64)
    score: verdicts.Column = np.where(offered > 0, part * verdicts.BEST // whole, 0)
    return score


@views.PodRequirements.remembered(8192)
def _requested(requirements: views.PodRequirements, resources: tuple[str, ...]) -> tuple[int, ...]:
    """Return what a pod on a node requests of some resources."""
    cpu, memory = requirements.nonzero
    amounts = dict(requirements.requests) | {names.CPU: cpu, names.MEMORY: memory}
    return tuple([amounts.get(name, 0) for name in resources])
