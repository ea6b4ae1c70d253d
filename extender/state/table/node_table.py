"""NodeTable: rows of nodes, their columns, and which figures are late."""

import itertools
from collections.abc import (
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from typing import Final

import msgspec

from domain.usage import load
from extender.framework import views
from extender.state import claims, deltas, lending, records
from extender.state.table import columns, replacement, rows

_CHANGES_PER_ROW: Final = 10
"""Changes that other plug-ins take in, in the time in which one node's figures are computed."""
_Seen = tuple[str, records.NodeRecord | None, tuple[claims.Claim, ...], load.Report | None]
"""What was known under the name of a node at one moment."""


class NodeTable:
    """What is known under every node name, with columns kept in step."""

    def __init__(self, trackers: Sequence[views.StateTracker], resources: Sequence[str]) -> None:
        self.trackers = tuple(trackers)
        self.resources = {name: index for index, name in enumerate(resources)}
        self.rows: dict[str, rows.Row] = {}
        self.known: dict[str, int] = {}
        self.late = rows.Late()
        self.nominated: dict[str, rows.Row] = {}
        """Nodes with capacity that is kept for pods which are not placed yet."""
        self._kept = rows.Kept()
        self.next: replacement.Replacement | None = None
        """Figures of other plug-ins, which no reader sees yet."""
        self.members = 0
        self._frame: tuple[object, views.View] | None = None
        """What views show, as long as nodes neither come nor go."""
        heights = {"known": 1, "allocatable": len(resources), "requested": len(resources)}
        heights |= {tracker.name: tracker.columns for tracker in trackers}
        self.columns = columns.Columns(heights)

    def copy(
        self, forks: Mapping[str, rows.Row], trackers: Sequence[views.StateTracker]
    ) -> "NodeTable":
        """Return the same for another state with these forks of all rows, and these trackers."""
        other = NodeTable(trackers, tuple(self.resources))
        # In the same order, which the order of arrival is for some readers.
        other.rows = {name: forks[name] for name in self.rows}
        other.nominated = {name: other.rows[name] for name in self.nominated}
        other.known, other.late = dict(self.known), self.late.copy()
        other.members, other.columns = self.members, self.columns.copy()
        return other

    # -- reading ---------------------------------------------------------------------------

    def view(
        self,
        rules: lending.LendingRules,
        cluster: Mapping[str, object],
        version: int,
    ) -> views.View:
        """Return a read-only snapshot, valid until the next change."""
        layout = self.columns.layout, self.members, id(rules)
        if self._frame is None or self._frame[0] != layout:
            self._frame = layout, self._framed(rules)
        return msgspec.structs.replace(
            self._frame[1], cluster=cluster, nominated=self.nominations(), version=version
        )

    def _framed(self, rules: lending.LendingRules) -> views.View:
        """Return a snapshot without what every change makes another one."""
        shown = self.columns.shown
        return views.View(
            names=self.columns.names,
            known=shown("known")[0] != 0,
            rows=self.known,
            resources=self.resources,
            allocatable=shown("allocatable"),
            requested=shown("requested"),
            figures={tracker.name: shown(tracker.name) for tracker in self.trackers},
            # It keeps the rules alive, so that no others are taken for them.
            node=lambda index: self.info(index, rules),
            values=self.values,
            trackers=self.trackers,
            members=self.members,
            born=self.columns.born(),
            revisions=self.columns.revisions(),
            lowest=self.columns.lowest,
        )

    def info(self, index: int, rules: lending.LendingRules) -> views.NodeInfo:
        """Return all that is known of a node."""
        return self.rows[self.columns.names[index]].info(rules)

    def values(self, index: int) -> Mapping[str, object]:
        """Return the sparse values of a node."""
        return self.rows[self.columns.names[index]].values

    def nominations(self) -> dict[int, tuple[claims.Claim, ...]]:
        """Return the claims for pods that are not placed yet, by row; changes make another dict."""
        return self._kept.shown(self.nominated, self.rows)

    def objects(self, name: str) -> Collection[tuple[str, str]]:
        """Return kind and key of the objects that a node's figures depend on."""
        row = self.rows.get(name)
        return tuple(row.objects) if row else ()

    def present(self) -> Iterator[tuple[str, records.NodeRecord | None]]:
        """Return the node under every name."""
        return ((name, row.node) for name, row in self.rows.items())

    def history(
        self, nodes: Iterable[tuple[str, records.NodeRecord | None]]
    ) -> Iterator[deltas.Delta]:
        """Yield what leads from nothing to these nodes and what lives under them."""
        for name, node in nodes:
            live = self.rows.get(name)
            for ident, claim in (live.claims if live else {}).items():
                yield deltas.ClaimDelta(ident, None, claim)
            if node is not None:
                yield deltas.NodeDelta(name, None, node)
            if live is not None and live.report is not None:
                yield deltas.ReportDelta(name, None, live.report)

    def stale(self) -> int:
        """Return how many nodes' figures have to be computed."""
        following = self.next
        if following is None:
            return len(self.late)
        return len(self.late) + len(following.missing) + following.is_behind

    def content(self) -> dict[str, tuple[object, ...]]:
        """Return everything by node name, independent of the order of arrival."""
        return {
            name: (*row.content(), self.columns.figures(row.index))
            for name, row in self.rows.items()
        }

    # -- changing --------------------------------------------------------------------------

    def row(self, name: str) -> rows.Row:
        """Return the row of a name, a new one where there is none."""
        if name not in self.rows:
            self.rows[name] = rows.Row(name, self.columns.allot(name))
        return self.rows[name]

    def drop_if_empty(self, row: rows.Row) -> None:
        """Give a row back of which nothing is known any more."""
        if not row.empty():
            return
        del self.rows[row.name]
        self._kept.moved = True
        self.columns.release(row.index)
        self.late.discard(row.name)

    def count(self, row: rows.Row, claim: claims.Claim, sign: int) -> None:
        """Add or take away what a claim holds."""
        if claim.kind in claims.FIRM:
            requested = self.columns["requested"]
            for name, value in claim.pod.requirements.requests:
                dimension = self.resources.get(name)
                if dimension is not None:
                    requested[dimension, row.index] += sign * value
        else:
            self._kept.changed.add(row.name)
            if row.nominated:
                self.nominated[row.name] = row
            else:
                self.nominated.pop(row.name, None)
        self.touch(row)

    def set_node(self, row: rows.Row, node: records.NodeRecord | None) -> None:
        """Let a node come, go or change."""
        before, row.node = row.node, node
        self._kept.moved = self._kept.moved or (before is None) is not (node is None)
        self.columns["known"][0, row.index] = node is not None
        column = self.columns["allocatable"][:, row.index]
        column[:] = 0
        if node is None:
            del self.known[row.name]
            self.members += 1
            self._forget_figures(row)
            self.drop_if_empty(row)
            return
        if before is None or before.uid != node.uid:
            # Also where a machine was set up anew under its name: nothing of the old one holds.
            self.known[row.name] = row.index
            self.members += 1
            self.columns.bear(row.index, self.members)
        for name, value in node.allocatable:
            dimension = self.resources.get(name)
            if dimension is not None:
                column[dimension] = value
        self.touch(row)

    # -- figures ---------------------------------------------------------------------------

    def touch(self, row: rows.Row) -> None:
        """Note that the figures of a node are late."""
        row.changed()
        if row.node is not None:
            self.late.change(row.name)

    def _forget_figures(self, row: rows.Row) -> None:
        self.late.discard(row.name)
        row.values, row.figures = {}, {}
        if self.next is not None:
            self.next.forget(row.name, row.index)
        for tracker in self.trackers:
            self.columns[tracker.name][:, row.index] = 0

    def compute(self, names: set[str], most: int, rules: lending.LendingRules) -> int:
        """Compute the figures of some of these nodes; return of how many."""
        count = min(most, len(names))
        for _ in range(count):
            row = self.rows[names.pop()]
            info = row.info(rules)
            values: dict[str, object] = {}
            for tracker in self.trackers:
                figures, sparse = tracker.node(info)
                if row.figures.get(tracker.name) != figures:
                    self.columns.set(tracker.name, row.index, figures)
                    row.figures[tracker.name] = figures
                if sparse is not None:
                    values[tracker.name] = sparse
            row.values = values
            self.columns.revise(row.index)
            if self.next is not None:
                self.next.compute(row.name, row.index, info)
        return count

    def refresh(self, most: int | None, rules: lending.LendingRules) -> int:
        """Compute the figures of at most so many nodes, what changed first; return of how many."""
        left = due = self.stale() if most is None else most
        missing = self.next.missing if self.next else set()
        for names in (self.late.changed, self.late.ruled, missing):
            if names:
                left -= self.compute(names, left, rules)
        if self.next is not None and (most is None or left > 0):
            self.next.catch_up(None if most is None else _CHANGES_PER_ROW * left)
        return due - left

    def prepare(
        self,
        trackers: Sequence[views.StateTracker],
        kept: frozenset[str],
        objects: Iterable[deltas.Delta],
    ) -> None:
        """Begin to keep figures for other plug-ins."""

        def told() -> Iterator[deltas.Delta]:
            # Objects such as quotas first: what claims mean depends on them.
            return itertools.chain(tuple(objects), _history(_seen(self.rows)))

        self.next = replacement.Replacement(trackers, kept, set(self.known), told)

    def adopt(self, cluster: MutableMapping[str, object]) -> bool:
        """Show the figures of the other plug-ins; False while nodes are missing, or none wait."""
        found = self.next
        if found is None or found.missing or found.is_behind:
            return False
        going = found.hand_over(self.trackers, self.columns, cluster)
        for name, row in self.rows.items():
            row.values, row.figures = found.values(name, row.values, going), {}
            self.columns.revise(row.index)
        self.trackers, self.next, self._frame = found.trackers, None, None
        return True


def _seen(known: Mapping[str, rows.Row]) -> list[_Seen]:
    """Return what is known of nodes and what lives under them, as it is now."""
    return [(name, row.node, tuple(row.claims.values()), row.report) for name, row in known.items()]


def _history(seen: Iterable[_Seen]) -> Iterator[deltas.Delta]:
    """Yield what leads from nothing to these nodes and what lives under them."""
    for name, node, held, report in seen:
        for claim in held:
            yield deltas.ClaimDelta(claim.id, None, claim)
        if node is not None:
            yield deltas.NodeDelta(name, None, node)
        if report is not None:
            yield deltas.ReportDelta(name, None, report)
