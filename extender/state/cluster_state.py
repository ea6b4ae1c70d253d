"""ClusterState: the one mutable picture of the cluster.

Only `apply` changes it, and every delta has an inverse. Whoever decides is shown a view whose
arrays cannot be written; what-if is a state of its own that is thrown away.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from domain.usage import load
from extender.framework import protocols, views
from extender.state import columns, deltas, lending, records


class _Row:
    """What is known under one node name, the node itself perhaps not yet."""

    __slots__ = ("index", "name", "node", "pods", "report")

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.node: records.NodeRecord | None = None
        self.report: load.Report | None = None
        self.pods: dict[str, records.PodRecord] = {}

    def empty(self) -> bool:
        return self.node is None and self.report is None and not self.pods


class _Late:
    """Nodes whose summaries do not say how things are: changed ones, and all after new rules."""

    __slots__ = ("changed", "ruled")

    def __init__(self) -> None:
        self.changed: set[str] = set()
        self.ruled: set[str] = set()

    def __len__(self) -> int:
        return len(self.changed) + len(self.ruled)

    def change(self, name: str) -> None:
        self.changed.add(name)
        self.ruled.discard(name)

    def discard(self, name: str) -> None:
        self.changed.discard(name)
        self.ruled.discard(name)


class ClusterState:
    """Nodes, their pods and their reports, with columns kept in step."""

    def __init__(
        self, summarizers: Sequence[protocols.StateTracker], resources: Sequence[str]
    ) -> None:
        self._summarizers = tuple(summarizers)
        self._resources = {name: index for index, name in enumerate(resources)}
        self._rows: dict[str, _Row] = {}
        self._known: dict[str, int] = {}
        self._placed: dict[str, records.PodRecord] = {}
        self._lending = lending.LendingRules()
        self._late = _Late()
        self._members = 0
        self._view: views.View | None = None
        # Told every change of this very state, after it was made.
        self.followers: list[Callable[[deltas.Delta], None]] = []
        heights = {"known": 1, "allocatable": len(resources), "requested": len(resources)}
        heights |= {plugin.name: plugin.columns for plugin in summarizers}
        self._columns = columns.Columns(heights)

    # -- reading ---------------------------------------------------------------------------

    def placed(self, uid: str) -> records.PodRecord | None:
        """Return the record under which a pod is counted on a node."""
        return self._placed.get(uid)

    def placements(self) -> Mapping[str, records.PodRecord]:
        """Return every counted pod by uid."""
        return self._placed

    def rules(self) -> lending.LendingRules:
        """Return the lending rules in force."""
        return self._lending

    def node(self, name: str) -> records.NodeRecord | None:
        """Return a known node."""
        row = self._rows.get(name)
        return row.node if row else None

    def report(self, name: str) -> load.Report | None:
        """Return the latest report of a node's agent."""
        row = self._rows.get(name)
        return row.report if row else None

    def pods_on(self, name: str) -> tuple[records.PodRecord, ...]:
        """Return the pods that are counted on a node."""
        row = self._rows.get(name)
        return tuple(row.pods.values()) if row else ()

    def nodes(self) -> list[str]:
        """Return the names of all known nodes."""
        return list(self._known)

    def stale_rows(self) -> int:
        """Return how many nodes' summaries would have to be computed before the next view."""
        return len(self._late)

    def view(self, node: str = "") -> views.View:
        """Return a read-only picture, valid until the next change.

        After new lending rules, other nodes than this one may be shown by the old ones for a while.
        """
        if node in self._late.ruled:
            self._late.change(node)
        self._summarize(self._late.changed, len(self._late.changed))
        if self._view is not None:
            return self._view
        shown = self._columns.shown
        self._view = views.View(
            names=self._columns.names,
            known=shown("known")[0] != 0,
            rows=self._known,
            resources=self._resources,
            allocatable=shown("allocatable"),
            requested=shown("requested"),
            summaries={plugin.name: shown(plugin.name) for plugin in self._summarizers},
            facts=self._facts,
            members=self._members,
            born=self._columns.born(),
        )
        return self._view

    def _empty(self) -> "ClusterState":
        other = ClusterState(self._summarizers, tuple(self._resources))
        other.apply(deltas.LendingDelta(other.rules(), self._lending))
        return other

    def what_if(self, nodes: Iterable[records.NodeRecord]) -> "ClusterState":
        """Return a state of just these nodes, with the pods and reports that live under them."""
        other = self._empty()
        for node in nodes:
            other.apply(deltas.NodeDelta(node.name, None, node))
            live = self._rows.get(node.name)
            if live is None:
                continue
            if live.report is not None:
                other.apply(deltas.ReportDelta(node.name, None, live.report))
            for uid, pod in live.pods.items():
                other.apply(deltas.PodDelta(uid, None, pod))
        return other

    def rebuilt(self) -> "ClusterState":
        """Return a state built anew from the same objects."""
        other = self._empty()
        for uid, pod in self._placed.items():
            other.apply(deltas.PodDelta(uid, None, pod))
        for name, row in self._rows.items():
            if row.node is not None:
                other.apply(deltas.NodeDelta(name, None, row.node))
            if row.report is not None:
                other.apply(deltas.ReportDelta(name, None, row.report))
        return other

    def _facts(self, index: int) -> views.NodeInfo:
        row = self._rows[self._columns.names[index]]
        assert row.node is not None
        return views.NodeInfo(
            node=row.node,
            report=row.report,
            pods=tuple(row.pods.values()),
            policy=self._lending.policy(row.node),
        )

    # -- changing --------------------------------------------------------------------------

    def apply(self, delta: deltas.Delta) -> None:
        """Make one change; the only way to change anything."""
        self._view = None
        match delta:
            case deltas.PodDelta():
                _check(delta, self._placed.get(delta.uid))
                self._move(delta)
            case deltas.NodeDelta():
                _check(delta, self.node(delta.name))
                self._set_node(delta)
            case deltas.ReportDelta():
                _check(delta, self.report(delta.name))
                self._set_report(delta)
            case deltas.LendingDelta():
                _check(delta, self._lending)
                self._lending = delta.after
                # A call must not wait for all of them: whoever keeps the picture brings them after.
                self._late.ruled.update(self._known.keys() - self._late.changed)
        for follower in self.followers:
            follower(delta)

    def _move(self, delta: deltas.PodDelta) -> None:
        if delta.before is not None:
            row = self._rows[delta.before.node]
            del row.pods[delta.uid]
            del self._placed[delta.uid]
            self._count(row, delta.before, -1)
            self._drop_if_empty(row)
        if delta.after is not None:
            row = self._row(delta.after.node)
            row.pods[delta.uid] = delta.after
            self._placed[delta.uid] = delta.after
            self._count(row, delta.after, 1)

    def _count(self, row: _Row, pod: records.PodRecord, sign: int) -> None:
        requested = self._columns["requested"]
        for dimension, value in _counted(self._resources, pod.demand.requests):
            requested[dimension, row.index] += sign * value
        self._touch(row)

    def _set_node(self, delta: deltas.NodeDelta) -> None:
        row = self._row(delta.name)
        before, row.node = row.node, delta.after
        self._columns["known"][0, row.index] = delta.after is not None
        column = self._columns["allocatable"][:, row.index]
        column[:] = 0
        if delta.after is None:
            del self._known[row.name]
            self._members += 1
            self._forget_summaries(row)
            self._drop_if_empty(row)
            return
        if before is None or before.uid != delta.after.uid:
            # Also where a machine was set up anew under its name: nothing of the old one holds.
            self._known[row.name] = row.index
            self._members += 1
            self._columns.bear(row.index, self._members)
        for dimension, value in _counted(self._resources, delta.after.allocatable):
            column[dimension] = value
        self._touch(row)

    def _set_report(self, delta: deltas.ReportDelta) -> None:
        row = self._row(delta.name)
        row.report = delta.after
        self._touch(row)
        self._drop_if_empty(row)

    # -- rows ------------------------------------------------------------------------------

    def _row(self, name: str) -> _Row:
        if name not in self._rows:
            self._rows[name] = _Row(name, self._columns.allot(name))
        return self._rows[name]

    def _drop_if_empty(self, row: _Row) -> None:
        if not row.empty():
            return
        del self._rows[row.name]
        self._columns.release(row.index)
        self._late.discard(row.name)

    # -- summaries -------------------------------------------------------------------------

    def _touch(self, row: _Row) -> None:
        if row.node is not None:
            self._late.change(row.name)

    def _forget_summaries(self, row: _Row) -> None:
        self._late.discard(row.name)
        for plugin in self._summarizers:
            self._columns[plugin.name][:, row.index] = 0

    def refresh(self, most: int | None = None) -> int:
        """Bring the summaries of nodes up to date; at most so many. Return what is left."""
        left = self.stale_rows() if most is None else most
        for names in (self._late.changed, self._late.ruled):
            left -= self._summarize(names, left)
        return self.stale_rows()

    def _summarize(self, names: set[str], most: int) -> int:
        """Compute the summaries of some of these nodes; return of how many."""
        count = min(most, len(names))
        for _ in range(count):
            row = self._rows[names.pop()]
            facts = self._facts(row.index)
            for plugin in self._summarizers:
                figures, _ = plugin.node(facts)
                self._columns[plugin.name][:, row.index] = figures
        if count:
            self._view = None
        return count

    def fingerprint(self) -> dict[str, tuple[object, ...]]:
        """Return everything that is known, by node name, independent of the order of arrival."""
        self.refresh()
        return {
            name: (
                row.node,
                row.report,
                dict(sorted(row.pods.items())),
                self._columns.figures(row.index),
            )
            for name, row in self._rows.items()
        }


def _counted(resources: Mapping[str, int], amounts: records.Pairs) -> list[tuple[int, int]]:
    """Return the amounts of resources that have a column, by its place."""
    return [(resources[name], value) for name, value in amounts if name in resources]


def _check(delta: deltas.Delta, present: object) -> None:
    if present != delta.before:
        raise deltas.StaleError(f"{delta!r} does not start from what is known: {present!r}")
