"""ClusterState: the one mutable state of the cluster.

Only `apply` changes it, and every delta has an inverse. Plug-ins get a view whose arrays cannot
be written; what-if works on a fork that is thrown away.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

from domain.usage import load
from extender.framework import views
from extender.state import claims, deltas, lending, records
from extender.state.table import node_table, rows


class ClusterState:
    """Nodes, the claims on them and their reports, with columns kept in step."""

    def __init__(self, trackers: Sequence[views.StateTracker], resources: Sequence[str]) -> None:
        self._trackers = tuple(trackers)
        self._resources = tuple(resources)
        self._table = node_table.NodeTable(trackers, resources)
        self._claims: dict[str, claims.Claim] = {}
        self._objects: dict[tuple[str, str], deltas.ObjectDelta] = {}
        self._lending = lending.LendingRules()
        self.version = 0  # another number after every change
        self._view: views.View | None = None
        # Called with every change of this very state, after it was made.
        self.followers: list[Callable[[deltas.Delta], None]] = []
        starts = {tracker.name: tracker.start() for tracker in trackers}
        self._cluster = {name: value for name, value in starts.items() if value is not None}

    # -- reading ---------------------------------------------------------------------------

    def claim(self, ident: str) -> claims.Claim | None:
        """Return a claim by its id."""
        return self._claims.get(ident)

    def all_claims(self) -> Mapping[str, claims.Claim]:
        """Return every claim by its id."""
        return self._claims

    def placed(self, uid: str) -> records.PodRecord | None:
        """Return the record under which a pod is counted on a node as bound or assumed."""
        claim = self._claims.get(uid)
        return claim.pod if claim is not None else None

    def placements(self) -> dict[str, records.PodRecord]:
        """Return every bound or assumed pod by uid."""
        return {key: one.pod for key, one in self._claims.items() if one.kind in claims.FIRM}

    def is_nominated(self) -> bool:
        """Whether anything is kept for pods that are not placed yet."""
        return bool(self._table.nominated)

    def rules(self) -> lending.LendingRules:
        """Return the lending rules in force."""
        return self._lending

    def told(self, kind: str, key: str) -> deltas.ObjectDelta | None:
        """Return the change that brought an object of a plug-in's kind."""
        return self._objects.get((kind, key))

    def objects(self) -> Iterable[deltas.ObjectDelta]:
        """Return the changes that brought all objects of plug-ins' kinds."""
        return self._objects.values()

    def node(self, name: str) -> records.NodeRecord | None:
        """Return a known node."""
        return row.node if (row := self._table.rows.get(name)) else None

    def report(self, name: str) -> load.Report | None:
        """Return the latest report of a node's agent."""
        return row.report if (row := self._table.rows.get(name)) else None

    def claims_on(self, name: str) -> tuple[claims.Claim, ...]:
        """Return the claims on a node."""
        return tuple(row.claims.values()) if (row := self._table.rows.get(name)) else ()

    def count_on(self, name: str) -> int:
        """Return the number of claims on a node."""
        return len(row.claims) if (row := self._table.rows.get(name)) else 0

    def nodes(self) -> list[str]:
        """Return the names of all known nodes."""
        return list(self._table.known)

    def node_count(self) -> int:
        """Return how many nodes are known."""
        return len(self._table.known)

    def stale_rows(self) -> int:
        """Return how many nodes' figures would have to be computed before the next view."""
        return self._table.stale()

    def view(self, node: str = "") -> views.View:
        """Return a read-only snapshot until the next change; other nodes' lending may be late."""
        table, late = self._table, self._table.late
        if node in late.ruled:
            late.change(node)
        if late.changed:
            table.compute(late.changed, len(late.changed), self._lending)
            self._view = None
        if self._view is None:
            self._view = table.view(self._lending, dict(self._cluster), self.version)
        return self._view

    # -- other states ----------------------------------------------------------------------

    def fork(
        self, made: rows.Forks | None = None, leaving_out: frozenset[str] = frozenset()
    ) -> "ClusterState":
        """Return a state of its own that starts from this one; nothing done to it comes back.

        `made` is what has been forked already; nothing is kept for plug-ins that are left out.
        """
        made = made or rows.Forks()
        made.renew(self._table.rows)
        trackers = [one for one in self._trackers if one.name not in leaving_out]
        other = ClusterState(trackers, self._resources)
        other._table = self._table.copy(made.rows, trackers)
        other._claims, other._objects = made.held, dict(self._objects)
        other._cluster = {one: it for one, it in self._cluster.items() if one not in leaving_out}
        other._lending, other.version = self._lending, self.version
        return other

    def forking(
        self, most: int, leaving_out: frozenset[str] = frozenset()
    ) -> Generator[None, None, "ClusterState"]:
        """Return a fork of the state as it is at the end, made in steps of so many nodes."""
        return self.fork((yield from rows.forks(self._table.rows, most)), leaving_out)

    def what_if(self, nodes: Iterable[records.NodeRecord]) -> "ClusterState":
        """Return a state of just these nodes, with the claims and reports that live under them.

        Values of plug-ins about the cluster are those of all of it, with these nodes as given.
        """
        given = {node.name: node for node in nodes}
        kept = [self._objects[key] for name in given for key in self._table.objects(name)]
        whole = dict(self._cluster)
        for name, node in given.items():
            views.advance(whole, self._trackers, deltas.NodeDelta(name, self.node(name), node))
        history = (*self._table.history(given.items()), *kept)
        other = ClusterState(self._trackers, self._resources)
        _filled(other, self._lending, history)
        other._cluster = whole
        return other

    def rebuilt(self) -> "ClusterState":
        """Return a state rebuilt from the same objects."""
        history = (*self._table.history(self._table.present()), *self._objects.values())
        return _filled(ClusterState(self._trackers, self._resources), self._lending, history)

    # -- changing --------------------------------------------------------------------------

    def apply(self, delta: deltas.Delta) -> None:
        """Make one change; the only way to change anything."""
        match delta:
            case deltas.ClaimDelta():
                _check(delta, self._claims.get(delta.id))
                if _counts_alike(delta.before, delta.after):
                    self._swap(delta)
                    return
                self._set_claim(delta)
            case deltas.NodeDelta():
                _check(delta, self.node(delta.name))
                self._table.set_node(self._table.row(delta.name), delta.after)
            case deltas.ReportDelta():
                _check(delta, self.report(delta.name))
                self._set_report(delta)
            case deltas.ObjectDelta():
                known = self._objects.get((delta.kind, delta.key))
                _check(delta, known.after if known else None)
                self._set_object(delta)
            case deltas.LendingDelta():
                _check(delta, self._lending)
                self._lending = delta.after
                # A call must not wait for all of them: they are computed in the background.
                self._table.late.ruled.update(self._table.known.keys() - self._table.late.changed)
        self._advance(delta)

    def _advance(self, delta: deltas.Delta) -> None:
        self._view = None
        self.version += 1
        views.advance(self._cluster, self._trackers, delta)
        if self._table.next is not None:
            self._table.next.advance(delta)
        self._tell(delta)

    def _tell(self, delta: deltas.Delta) -> None:
        for follower in self.followers:
            follower(delta)

    def undo(self, done: Sequence[deltas.Delta]) -> None:
        """Take changes back, the last one first."""
        for delta in reversed(done):
            self.apply(deltas.inverse(delta))

    def _swap(self, delta: deltas.ClaimDelta) -> None:
        """Take the usual echo: an assumed pod is bound, and no figure changes."""
        assert delta.after is not None
        self._claims[delta.id] = delta.after
        self._table.rows[delta.after.node].hold(delta.after)
        # A gang has one more member that is bound; to all others it is the same.
        (self._advance if delta.after.pod.requirements.is_member else self._tell)(delta)

    def _set_claim(self, delta: deltas.ClaimDelta) -> None:
        table = self._table
        if delta.before is not None:
            row = table.rows[delta.before.node]
            row.release(delta.id)
            del self._claims[delta.id]
            table.count(row, delta.before, -1)
            table.drop_if_empty(row)
        if delta.after is not None:
            row = table.row(delta.after.node)
            row.hold(delta.after)
            self._claims[delta.id] = delta.after
            table.count(row, delta.after, 1)

    def _set_report(self, delta: deltas.ReportDelta) -> None:
        row = self._table.row(delta.name)
        row.report = delta.after
        self._table.touch(row)
        self._table.drop_if_empty(row)

    def _set_object(self, delta: deltas.ObjectDelta) -> None:
        """Keep an object; one that moves leaves its first node with a delta of its own."""
        key = (delta.kind, delta.key)
        if delta.after is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = deltas.ObjectDelta(*key, None, delta.after, delta.node)
        if delta.node:
            row = self._table.row(delta.node)
            row.keep(key, delta.after)
            self._table.touch(row)
            self._table.drop_if_empty(row)

    def refresh(self, most: int | None = None) -> int:
        """Bring the figures of nodes up to date; at most so many. Return what is left."""
        if self._table.refresh(most, self._lending):
            self._view = None
        return self.stale_rows()

    def prepare(self, trackers: Sequence[views.StateTracker], kept: frozenset[str]) -> None:
        """Begin to keep figures for other plug-ins, which `refresh` computes; see `Replacement`."""
        self._table.prepare(trackers, kept, self._objects.values())

    def adopt(self) -> bool:
        """Show what was prepared from now on; False while nodes are missing, or nothing is."""
        if adopted := self._table.adopt(self._cluster):
            self._trackers, self._view, self.version = self._table.trackers, None, self.version + 1
        return adopted

    def fingerprint(self) -> dict[str, tuple[object, ...]]:
        """Return everything that is known, by node name, independent of the order of arrival.

        What plug-ins keep of the cluster as a whole stands under a name that no node can have.
        """
        self.refresh()
        found = self._table.content()
        if self._cluster or self._objects:
            found[""] = (dict(self._cluster), dict(sorted(self._objects.items())))
        return found


def _filled(
    empty: ClusterState, rules: lending.LendingRules, history: Iterable[deltas.Delta]
) -> ClusterState:
    """Let an empty state take in what has happened, and return it."""
    empty.apply(deltas.LendingDelta(empty.rules(), rules))
    for delta in history:
        empty.apply(delta)
    return empty


def _counts_alike(before: claims.Claim | None, after: claims.Claim | None) -> bool:
    """Whether only the kind of a placed pod's claim differs."""
    return (
        before is not None
        and after is not None
        and before.kind in claims.FIRM
        and after.kind in claims.FIRM
        and before.pod == after.pod
        and before.allocations == after.allocations
        and before.consumes == after.consumes
        and before.usable_by == after.usable_by
    )


def _check(delta: deltas.Delta, present: object) -> None:
    if present is not delta.before and present != delta.before:
        raise deltas.StaleError(f"{delta!r} does not start from what is known: {present!r}")
