"""Figures of other plug-ins, computed beside those in force until every node has them.

New arguments may give a plug-in other columns than the old ones. Calls are answered by what is in
force until the new figures are complete; then all of it changes in one step.
"""

import collections
import itertools
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence

import numpy as np

from extender.framework import verdicts, views
from extender.state import deltas
from extender.state.table import columns


class Replacement:
    """What the state trackers of new plug-ins keep, not shown to anybody yet."""

    def __init__(
        self,
        trackers: Sequence[views.StateTracker],
        kept: frozenset[str],
        missing: set[str],
        told: Callable[[], Iterator[deltas.Delta]],
    ) -> None:
        """`kept` names trackers that stay as they are; `told` leads from nothing to what is known.

        `missing` are the nodes whose figures have to be computed. What `told` returns must not
        change with what happens later: it is followed a few steps at a time.
        """
        self.trackers = tuple(trackers)
        self._new = tuple(tracker for tracker in trackers if tracker.name not in kept)
        self.missing = missing if self._new else set()
        self._figures = {
            tracker.name: np.zeros((tracker.columns, 0), dtype=np.int64) for tracker in self._new
        }
        self._values: dict[str, dict[str, object]] = {}
        starts = {tracker.name: tracker.start() for tracker in self._new}
        self._cluster = {name: value for name, value in starts.items() if value is not None}
        self._since = collections.deque[deltas.Delta]()
        self._past: Iterator[deltas.Delta] | None = told() if self._cluster else None

    @property
    def is_behind(self) -> bool:
        """Whether the values of the cluster lack something of what is known."""
        return self._past is not None

    def advance(self, delta: deltas.Delta) -> None:
        """Bring the values of the cluster up to a change."""
        if self._past is not None:
            self._since.append(delta)
        else:
            views.advance(self._cluster, self._new, delta)

    def catch_up(self, most: int | None = None) -> None:
        """Take in what was known before, then what has changed since, at most so many changes."""
        if self._past is None:
            return
        taken = 0
        for delta in itertools.islice(self._past, most):
            views.advance(self._cluster, self._new, delta)
            taken += 1
        while self._since and (most is None or taken < most):
            views.advance(self._cluster, self._new, self._since.popleft())
            taken += 1
        if most is None or taken < most:
            self._past = None

    def compute(self, name: str, index: int, info: views.NodeInfo) -> None:
        """Compute the figures of one node."""
        values: dict[str, object] = {}
        for tracker in self._new:
            figures, sparse = tracker.node(info)
            self._wide(tracker.name, index)[:, index] = figures
            if sparse is not None:
                values[tracker.name] = sparse
        self._values[name] = values
        self.missing.discard(name)

    def forget(self, name: str, index: int) -> None:
        """Forget a node that is gone, or no longer what it was."""
        for tracker in self._new:
            self._wide(tracker.name, index)[:, index] = 0
        self._values.pop(name, None)
        self.missing.discard(name)

    def _wide(self, name: str, index: int) -> verdicts.Column:
        """Return a matrix that has a place for this row."""
        matrix = self._figures[name]
        if index >= matrix.shape[1]:
            wider = np.zeros((matrix.shape[0], max(2 * matrix.shape[1], index + 1)), dtype=np.int64)
            wider[:, : matrix.shape[1]] = matrix
            matrix = self._figures[name] = wider
        return matrix

    def hand_over(
        self,
        before: Sequence[views.StateTracker],
        present: columns.Columns,
        cluster: MutableMapping[str, object],
    ) -> frozenset[str]:
        """Put new figures and values in the place of the old ones; return whose have changed."""
        kept = {one.name for one in self.trackers} - {one.name for one in self._new}
        going = frozenset(one.name for one in before) - kept
        for name in going:
            present.drop(name)
            cluster.pop(name, None)
        for tracker in self._new:
            present.adopt(tracker.name, self._figures[tracker.name])
        cluster.update(self._cluster)
        return going

    def values(
        self, name: str, before: Mapping[str, object], going: frozenset[str]
    ) -> dict[str, object]:
        """Return the sparse values of a node, the new ones in the place of those that go."""
        kept = {key: value for key, value in before.items() if key not in going}
        return kept | self._values.get(name, {})
