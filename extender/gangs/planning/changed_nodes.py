"""Which nodes of a state have changed since a plan was begun, but by keeping its places. Pure."""

import contextlib
from collections.abc import Iterator
from typing import Final

from extender.framework import views
from extender.state import cluster_state, deltas

PLANS: Final = frozenset({deltas.GANG_PLAN, deltas.UNSCHEDULED_POD, deltas.POD_GROUP})
"""Kinds of objects on which no filter depends that judges a member for a plan."""


class ChangedNodes:
    """Follows a state from when a plan is begun until its places are kept."""

    def __init__(self, begun: views.View | None) -> None:
        """`begun`: the state as it was then; None: nothing is known of it."""
        self._trackers = begun.trackers if begun is not None else None
        self._names = set[str]()
        self._everything = begun is None
        self._is_own = False

    @contextlib.contextmanager
    def own(self) -> Iterator[None]:
        """Within the block the plan itself changes the state."""
        self._is_own = True
        try:
            yield
        finally:
            self._is_own = False

    def look(self, present: views.View) -> None:
        """Take in which plug-ins keep figures by now; the state tells of no change of these."""
        if present.trackers is not self._trackers:
            self._everything = True

    def any(self) -> bool:
        """Whether anything has changed."""
        return self._everything or bool(self._names)

    def concerns(self, node: str) -> bool:
        """Whether a node may be another one by now than the plan has seen."""
        return self._everything or node in self._names

    def note(self, delta: deltas.Delta) -> None:
        """Take in a change of the state."""
        if self._is_own:
            return
        match delta:
            case deltas.ClaimDelta(_, before, after):
                self._names.update(claim.node for claim in (before, after) if claim is not None)
            case deltas.NodeDelta(name) | deltas.ReportDelta(name):
                self._names.add(name)
            case deltas.ObjectDelta(kind) if kind in PLANS:
                pass
            case deltas.ObjectDelta() if delta.node:
                self._names.add(delta.node)
            case _:
                self._everything = True


@contextlib.contextmanager
def following(cluster: cluster_state.ClusterState) -> Iterator[ChangedNodes]:
    """Return what takes in every change of a state within the block."""
    found = ChangedNodes(cluster.view())
    cluster.followers.append(found.note)
    try:
        yield found
    finally:
        cluster.followers.remove(found.note)
