"""What is known under each node name, and which nodes' figures have to be computed again."""

import dataclasses
from collections.abc import Generator, Mapping
from typing import Any

import msgspec

from domain.usage import load
from extender.framework import views
from extender.state import claims, lending, records
from extender.state.reservations import remainders


class Row:
    """What is known under one node name, the node itself perhaps not yet."""

    __slots__ = (
        "_info",
        "_policy",
        "claims",
        "figures",
        "index",
        "name",
        "node",
        "nominated",
        "objects",
        "report",
        "reserved",
        "shared",
        "values",
    )

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.node: records.NodeRecord | None = None
        self.report: load.Report | None = None
        self.claims: dict[str, claims.Claim] = {}
        self.objects: dict[tuple[str, str], msgspec.Struct] = {}
        self.values: Mapping[str, object] = {}
        self.figures: dict[str, tuple[int, ...]] = {}
        """What was written last to the columns, by plug-in, as far as that is known."""
        self.nominated: dict[str, claims.Claim] = {}
        """What is kept for pods that are not placed yet, a second time."""
        self.reserved: dict[str, claims.Claim] = {}
        """What Reservations hold, a second time."""
        self.shared = False
        """Whether the dicts belong to another state as well."""
        self._info: views.NodeInfo | None = None
        """What plug-ins were shown last, as long as that is still so."""
        self._policy: tuple[lending.LendingRules, records.NodeRecord, lending.LendingPolicy] | None
        self._policy = None
        """The lending policy, for as long as neither the rules nor the node change."""

    def changed(self) -> None:
        """Note that something of this node has changed."""
        self._info = None

    def empty(self) -> bool:
        """Whether nothing is known any more."""
        return self.node is None and self.report is None and not self.claims and not self.objects

    def own(self) -> None:
        """Stop sharing what is about to be changed."""
        self.changed()
        if self.shared:
            self.claims, self.objects = dict(self.claims), dict(self.objects)
            self.nominated, self.reserved = dict(self.nominated), dict(self.reserved)
            self.shared = False

    def forked(self) -> "Row":
        """Return a copy for another state, whose dicts are copied when either of both changes."""
        other = Row(self.name, self.index)
        other.node, other.report = self.node, self.report
        other.claims, other.objects = self.claims, self.objects
        other.values, other.nominated = self.values, self.nominated
        other.reserved = self.reserved
        self.shared = other.shared = True
        return other

    def is_fork_of(self, other: "Row") -> bool:
        """Whether this row, a fork of another, still is what that is: changes replace its dicts."""
        return (
            self.claims is other.claims
            and self.values is other.values
            and self.node is other.node
            and self.report is other.report
            and self.index == other.index
            and self.objects is other.objects
            and other.shared
        )

    def hold(self, claim: claims.Claim) -> None:
        """Add a claim."""
        self.own()
        self.claims[claim.id] = claim
        if claim.kind is claims.ClaimKind.NOMINATED:
            self.nominated[claim.id] = claim
        elif claim.kind is claims.ClaimKind.RESERVATION:
            self.reserved[claim.id] = claim

    def release(self, ident: str) -> None:
        """Remove a claim."""
        self.own()
        del self.claims[ident]
        self.nominated.pop(ident, None)
        self.reserved.pop(ident, None)

    def keep(self, key: tuple[str, str], told: msgspec.Struct | None) -> None:
        """Remember an object of a plug-in's kind, or forget it."""
        self.own()
        if told is None:
            self.objects.pop(key, None)
        else:
            self.objects[key] = told

    def info(self, rules: lending.LendingRules) -> views.NodeInfo:
        """Return all of it for plug-ins."""
        assert self.node is not None
        policy, known = self.policy(rules), self._info
        if known is not None and known.policy is policy:
            return known
        held = tuple(self.claims.values())
        reserved: Mapping[str, claims.Claim] = remainders.NONE
        if self.reserved:
            reserved = dict(self.reserved)
            held = remainders.counted(held, reserved)
        objects: dict[tuple[str, str], Any] = dict(self.objects) if self.objects else {}
        self._info = views.NodeInfo(
            self.node, self.report, views.pods_of(held, reserved), policy, held, objects, reserved
        )
        return self._info

    def policy(self, rules: lending.LendingRules) -> lending.LendingPolicy:
        """Return what the node may lend by, read once as long as neither of both changes."""
        assert self.node is not None
        known = self._policy
        if known is None or known[0] is not rules or known[1] is not self.node:
            known = self._policy = rules, self.node, rules.policy(self.node)
        return known[2]

    def content(self) -> tuple[object, ...]:
        """Return everything, independent of the order of arrival."""
        return (
            self.node,
            self.report,
            dict(sorted(self.claims.items())),
            dict(sorted(self.objects.items())),
            dict(self.values),
        )


class Late:
    """Nodes whose figures do not say how things are: changed ones, and all after new rules."""

    __slots__ = ("changed", "ruled")

    def __init__(self) -> None:
        self.changed: set[str] = set()
        self.ruled: set[str] = set()

    def __len__(self) -> int:
        return len(self.changed) + len(self.ruled)

    def change(self, name: str) -> None:
        """Note that something of this node has changed."""
        self.changed.add(name)
        self.ruled.discard(name)

    def discard(self, name: str) -> None:
        """Forget a node."""
        self.changed.discard(name)
        self.ruled.discard(name)

    def copy(self) -> "Late":
        """Return the same for another state."""
        other = Late()
        other.changed, other.ruled = set(self.changed), set(self.ruled)
        return other


class Kept:
    """What views show of the claims for pods that are not placed yet."""

    __slots__ = ("_shown", "changed", "moved")

    def __init__(self) -> None:
        self.changed: set[str] = set()
        """Nodes of which something else is kept."""
        self.moved = True
        """Whether nodes have come or gone: a row may be that of another node."""
        self._shown: dict[int, tuple[claims.Claim, ...]] = {}

    def shown(
        self, nominated: Mapping[str, Row], known: Mapping[str, Row]
    ) -> dict[int, tuple[claims.Claim, ...]]:
        """Return the claims by row, in another dict after every change."""
        if self.moved:
            self._shown = {
                row.index: tuple(row.nominated.values())
                for row in nominated.values()
                if row.node is not None
            }
        elif self.changed:
            self._shown = dict(self._shown)
            for name in self.changed:
                row = known.get(name)
                if row is not None and row.node is not None:
                    self._shown[row.index] = tuple(row.nominated.values())
                    if not row.nominated:
                        del self._shown[row.index]
        self.moved = False
        self.changed.clear()
        return self._shown


@dataclasses.dataclass(frozen=True, slots=True)
class Forks:
    """Forks of rows by name with the claims on them; rows may have changed since."""

    rows: dict[str, Row] = dataclasses.field(default_factory=dict)
    held: dict[str, claims.Claim] = dataclasses.field(default_factory=dict)
    """Claims by id."""

    def add(self, row: Row) -> None:
        """Fork one more row."""
        self.rows[row.name] = row.forked()
        self.held.update(row.claims)

    def renew(self, known: Mapping[str, Row]) -> None:
        """Fork those rows again that have changed since, and those that have come."""
        gone = [
            fork
            for name, fork in self.rows.items()
            if (row := known.get(name)) is None or not fork.is_fork_of(row)
        ]
        # All of what is no longer so goes first: a claim may be on another node by now.
        for fork in gone:
            del self.rows[fork.name]
            for ident in fork.claims:
                self.held.pop(ident, None)
        for name in known.keys() - self.rows.keys():
            self.add(known[name])


def forks(known: Mapping[str, Row], most: int) -> Generator[None, None, Forks]:
    """Return forks of rows, so many of them in each step; some may change meanwhile."""
    made = Forks()
    names = list(known)
    for start in range(0, len(names), most):
        for name in names[start : start + most]:
            row = known.get(name)
            if row is not None:
                made.add(row)
        yield
    return made
