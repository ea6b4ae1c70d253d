"""Measured load of nodes, of all pods and of prod pods alone, as moves leave it. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from api.koordinator.metadata import qos
from descheduler.framework.nodes import node_load
from descheduler.gain import load_spread
from descheduler.gain.options import Options
from descheduler.model import nodeinfo, picture, podinfo

_PROD: Final = qos.Band.PROD


class Loads:
    """The loads that moves are judged by; nodes whose NodeMetric is old are left out."""

    def __init__(
        self, options: Options, seen: picture.Picture, nodes: Iterable[nodeinfo.Node]
    ) -> None:
        self.resources = tuple(options.resources)
        self._seen = seen
        found = node_load.read(seen, nodes, self.resources, options.usage_seconds)
        weights = np.array([options.resources[name] for name in self.resources], dtype=np.float64)
        self._load = found
        self._all, self._prod = (
            load_spread.LoadSpread(found.rows, used + found.arriving, found.capacity, weights)
            for used in (found.usage, found.prod)
        )

    def of(self, *, prod: bool) -> load_spread.LoadSpread:
        """Return the load of all pods and the system, or of prod pods alone."""
        return self._prod if prod else self._all

    def percents(self, node: str) -> Mapping[str, float]:
        """Return the load of a node in percent by resource, nothing where it is not measured."""
        if not self._all.knows(node):
            return {}
        found = self._all.load(node).tolist()
        return {name: round(one, 1) for name, one in zip(self.resources, found, strict=True)}

    def used_by(self, pod: podinfo.Pod) -> load_spread.Amounts | None:
        """Return what a pod uses; None where that is not measured."""
        report = self._seen.usage.get(pod.node)
        used = report.by_pod.get(pod.key) if report is not None else None
        return None if used is None else self._load.amounts(used)

    def move(self, pod: podinfo.Pod, target: str) -> None:
        """Let a pod use on another node what it uses; one that is not measured uses nothing."""
        amounts = self.used_by(pod)
        if amounts is None:
            return
        self._all.move(amounts, pod.node, target)
        if pod.band is _PROD:
            self._prod.move(amounts, pod.node, target)
