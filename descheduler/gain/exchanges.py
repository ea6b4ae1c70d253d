"""Which nodes pods have left for which others lately, so that no two nodes exchange pods. Pure."""

import collections
from collections.abc import Iterable

from descheduler.framework.planning import history


class Exchanges:
    """Moves of the last while between nodes; grows with the moves of the round."""

    def __init__(self, moves: Iterable[history.Moved], now: float, seconds: float) -> None:
        self._sources: dict[str, set[str]] = collections.defaultdict(set)
        for move in moves:
            if now - move.at < seconds:
                self.add(move.node, move.target)

    def add(self, source: str, target: str) -> None:
        """Take in a move; where a node is not known, nothing is."""
        if source and target:
            self._sources[target].add(source)

    def sources_of(self, node: str) -> frozenset[str]:
        """Return the nodes that pods have left for this one: to move one there would be a swap."""
        return frozenset(self._sources.get(node, ()))
