"""Whether the node of a bind that Permit holds is as it was when it was checked."""

import collections
import contextlib
from collections.abc import Iterator
from typing import Final

from extender.state import cluster_state, deltas

_OF_PERMIT: Final = frozenset({deltas.GANG_PLAN, deltas.UNSCHEDULED_POD, deltas.POD_GROUP})
"""Kinds of objects that matter to Permit alone, which is asked anew after every wait."""


class HeldNodes:
    """Follows the nodes on which binds are held: once for all of them, since there are hundreds."""

    def __init__(self, cluster: cluster_state.ClusterState) -> None:
        self._holders = collections.Counter[str]()
        self._changes = collections.Counter[str]()
        """By node: how often it has changed while binds were held on it."""
        self._general = 0
        """How often something has changed that may concern every node."""
        cluster.followers.append(self._note)

    @contextlib.contextmanager
    def held(self, node: str) -> Iterator[None]:
        """Follow a node within the block."""
        self._holders[node] += 1
        try:
            yield
        finally:
            self._holders[node] -= 1
            if not self._holders[node]:
                del self._holders[node]
                self._changes.pop(node, None)

    def changes(self, node: str) -> tuple[int, int]:
        """Return a value that is another one after each change that may concern a held node."""
        return self._changes.get(node, 0), self._general

    def _note(self, delta: deltas.Delta) -> None:
        if not self._holders:
            return
        match delta:
            case deltas.ClaimDelta(_, before, after):
                for node in {claim.node for claim in (before, after) if claim is not None}:
                    self._changed(node)
            case deltas.NodeDelta(name) | deltas.ReportDelta(name):
                self._changed(name)
            case deltas.ObjectDelta(kind) if kind in _OF_PERMIT:
                pass
            case deltas.ObjectDelta() if delta.node:
                self._changed(delta.node)
            case _:
                self._general += 1

    def _changed(self, node: str) -> None:
        if node in self._holders:
            self._changes[node] += 1
