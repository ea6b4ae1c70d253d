"""What a node and its report say of load, whatever pods are there: read once for both. Pure.

Pods come and go all the time; a report is renewed once a minute, and a node hardly ever changes.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from domain.usage import load
from extender.framework import views
from extender.plugins.load_aware import thresholds

_MOST_NODES: Final = 16384
"""Nodes of which is remembered what was read."""


class Side(msgspec.Struct, frozen=True, gc=False):
    """What the thresholds of a node mean for prod pods, or for all others."""

    fresh_until: int
    """In milliseconds since the epoch."""
    by_window: int
    """1 where usage over a window is what counts."""
    full: tuple[int | None, ...]
    """By resource: the largest usage; None where nothing restricts it."""
    basis: int
    """The place of the usage that counts."""

    def figures(self, used: Sequence[load.Vector]) -> tuple[int, ...]:
        """Return until when the report is fresh, whether by a window, and the room per resource."""
        rooms = map(load.room, self.full, used[self.basis])
        return (self.fresh_until, self.by_window, *rooms)


class Measured(msgspec.Struct, frozen=True, gc=False):
    """A node and its report, with all that follows from both."""

    report: load.Report
    offered: views.Pairs
    thresholds: str
    """As they are written on the node; no more of it is kept alive."""
    total: load.Vector
    scored_until: int
    bases: tuple[load.Basis, ...]
    """The usages of the node that anything is judged by, each once."""
    prod: Side
    other: Side
    prod_scored: int
    """The place of the usage by which nodes are scored for prod pods."""
    other_scored: int

    def figures(self, sums: load.Sums) -> tuple[int, ...]:
        """Return the figures of the node with pods that add this to its report."""
        used = [basis.expected(sums) for basis in self.bases]
        prod = other = self.other.figures(used)
        if self.prod is not self.other:
            prod = self.prod.figures(used)
        scored = used[self.prod_scored], used[self.other_scored]
        return (*prod, *other, self.scored_until, *self.total, *scored[0], *scored[1])


class Reader:
    """Reads nodes and their reports by the arguments of the plug-in."""

    def __init__(self, arguments: load.Arguments) -> None:
        self._arguments, self._universe = arguments, arguments.universe()
        self._kept: dict[str, Measured] = {}

    def of(self, node: views.NodeRecord, report: load.Report) -> Measured:
        """Return what is measured of a node; the report has node figures."""
        kept = self._kept.get(node.name)
        if (
            kept is not None
            and kept.report is report
            and kept.offered is node.total
            and kept.thresholds == node.thresholds
        ):
            return kept
        if kept is None and len(self._kept) >= _MOST_NODES:
            self._kept.clear()
        found = self._kept[node.name] = self._read(node, report)
        return found

    def profile(self, node: views.NodeRecord) -> load.Profile:
        """Return the thresholds of a node."""
        return thresholds.profile(node.thresholds, self._arguments.profile)

    def fresh_until(self, report: load.Report) -> int:
        """Return until when a report is fresh, in milliseconds since the epoch."""
        if report.updated_at is None:
            return 0
        return round((report.updated_at + self._arguments.expiration_seconds) * 1000)

    def filtered_until(self, report: load.Report) -> int:
        """Return until when nodes are filtered by a report."""
        return self.fresh_until(report) if self._arguments.filter_expired else load.UNLIMITED

    def _read(self, node: views.NodeRecord, report: load.Report) -> Measured:
        arguments, profile = self._arguments, self.profile(node)
        total = load.vector(dict(node.total), self._universe)
        bases: list[load.Basis] = []

        def place(*, prod: bool, kind: str, duration: float) -> int:
            basis = load.basis(report, prod=prod, kind=kind, duration=duration)
            if basis not in bases:
                bases.append(basis)
            return bases.index(basis)

        def side(*, prod: bool) -> Side:
            group, compares_prod = profile.chosen(prod=prod)
            if not group.active():
                return Side(load.UNLIMITED, 0, (None,) * len(total), 0)
            percent = [group.percent.get(name, 0) for name in self._universe]
            return Side(
                self.filtered_until(report),
                int(bool(group.kind)),
                tuple(map(load.full, total, percent)),
                place(prod=compares_prod, kind=group.kind, duration=group.duration),
            )

        def scored(*, prod: bool) -> int:
            kind, duration = arguments.score_kind, arguments.score_duration
            return place(prod=prod, kind=kind, duration=duration)

        other_scored = scored(prod=False)
        other = side(prod=False)
        return Measured(
            report,
            node.total,
            node.thresholds,
            total,
            self.fresh_until(report),
            # Most often nothing holds for prod pods alone.
            prod=side(prod=True) if profile.prod.active() else other,
            other=other,
            prod_scored=scored(prod=True) if arguments.score_prod_usage else other_scored,
            other_scored=other_scored,
            bases=tuple(bases),
        )
