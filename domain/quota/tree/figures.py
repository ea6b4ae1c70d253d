"""Figures of ElasticQuotas: totals, runtime, limits, shortages, and how they come about. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from api import names
from domain.quota import checks, model
from domain.quota.shares import runtime
from domain.quota.tree import accounts
from domain.quota.tree import layout as layouts

Amounts = model.Amounts
EMPTY = model.EMPTY


class Reading(NamedTuple):
    """What quotas say, what pods ask for and use, and what all nodes have together."""

    layout: layouts.Layout
    rows: accounts.Rows
    nodes: Amounts

    def total(self, tree: str = "") -> Amounts:
        """Return what a tree shares out at its top; of the default tree it may be negative."""
        if tree:
            return self.layout.totals.get(tree, EMPTY)
        keys = sorted({*self.nodes, *self.layout.taken})
        found = {key: self.at_top("", key) for key in keys}
        return {key: amount for key, amount in found.items() if amount or key in self.nodes}

    def at_top(self, tree: str, key: str) -> int:
        """Return how much of one resource a tree shares out at its top."""
        if tree:
            return self.layout.totals.get(tree, EMPTY).get(key, 0)
        left = self.nodes.get(key, 0)
        taken = self.layout.taken.get(key)
        if taken is not None:
            left -= taken.amount
            for row, at in taken.outside:
                left -= self.rows[row][0][at][accounts.USED]
        return left

    def row(self, name: str) -> int | None:
        """Return the row of a quota, also of those outside of trees."""
        row = self.layout.rows.get(name)
        return self.layout.outside.get(name) if row is None else row

    def runtime_of(self, row: int) -> list[int]:
        """Return the runtime of a quota, by its keys; outside of trees its cap."""
        rows, found = self.rows, []
        for key, tree, total, steps in self.layout.routes(row):
            share = self.at_top(tree, key) if total is None else total
            for parent, column, slot in steps:
                share = rows[parent][1][column].share(slot, share)
            found.append(share)
        return found

    def _to_share(self, route: layouts.Route) -> int:
        """Return what the parent of a quota shares out of a resource."""
        key, tree, total, steps = route
        share = self.at_top(tree, key) if total is None else total
        for parent, column, slot in steps[:-1]:
            share = self.rows[parent][1][column].share(slot, share)
        return share

    def runtime(self, name: str) -> Amounts:
        """Return the runtime of a quota by resource."""
        row = self.row(name)
        return EMPTY if row is None else self._named(row, self.runtime_of(row))

    def limit(self, name: str) -> Amounts:
        """Return what the pods of a quota may use now."""
        row = self.row(name)
        return EMPTY if row is None else self._limit(row)

    def _limit(self, row: int) -> dict[str, int]:
        if self.layout.rules.runtime:
            return self._named(row, self.runtime_of(row))
        return self._named(row, self.layout.shapes[row].cap)

    def _named(self, row: int, amounts: Sequence[int]) -> dict[str, int]:
        return dict(zip(self.layout.shapes[row].keys, amounts, strict=True))

    def used(self, name: str) -> Amounts:
        """Return what assigned pods of a quota and its descendants use."""
        row = self.row(name)
        return EMPTY if row is None else self._cells(row, accounts.USED)

    def room_state(self, name: str) -> tuple[object, ...]:
        """Return what decides how much room a quota has, cheaper than limit and used."""
        row = self.row(name)
        if row is None:
            return ()
        shares = self.runtime_of(row) if self.layout.rules.runtime else None
        return self.layout.shapes[row], shares, self.rows[row][0]

    def room_sources(self, names: Iterable[str]) -> dict[str, tuple[object, ...]]:
        """Return what room_state of each quota is computed from: equal ones have equal states."""
        layout, rows = self.layout, self.rows
        shared = (layout, self.nodes, *(rows[row][0] for row in layout.outside.values()))
        above: dict[int, tuple[object, ...]] = {-1: shared}
        found: dict[str, tuple[object, ...]] = {}
        for name in names:
            row = self.row(name)
            if row is not None:
                parent = layout.shapes[row].parent
                if parent not in above:
                    self._climb(parent, above)
                found[name] = (rows[row][0], above[parent])
        return found

    def _climb(self, row: int, above: dict[int, tuple[object, ...]]) -> None:
        """Note what the children of a quota are given, by it and by all above it."""
        parent = self.layout.shapes[row].parent
        if parent not in above:
            self._climb(parent, above)
        above[row] = (self.rows[row][1], above[parent])

    def _cells(self, row: int, figure: int) -> dict[str, int]:
        return self._named(row, [cell[figure] for cell in self.rows[row][0]])

    def figures(self, name: str) -> model.Figures | None:
        """Return all figures of a quota, None where it is unknown."""
        row = self.row(name)
        if row is None:
            return None
        shape, cells = self.layout.shapes[row], self.rows[row][0]
        each = tuple(zip(shape.keys, range(len(cells)), cells, strict=True))
        written = [(key, at) for key, at, _ in each if shape.written[at]]
        cap = self._named(row, shape.cap)
        share = self._named(row, self.runtime_of(row))
        return model.Figures(
            cap=cap,
            minimum={key: shape.minimum[at] for key, at in written},
            scaled_minimum={key: self._scaled(shape, at) for key, at in written},
            limit=share if self.layout.rules.runtime else cap,
            runtime=share,
            request={key: max(cell[accounts.ASKED], shape.floor[at]) for key, at, cell in each},
            child_request=self._cells(row, accounts.ASKED),
            limited_request=self._cells(row, accounts.LIMITED),
            used=self._cells(row, accounts.USED),
            non_preemptible_used=self._cells(row, accounts.FIRM_USED),
            non_preemptible_request=self._cells(row, accounts.FIRM_REQUEST),
            self_used=self._cells(row, accounts.OWN_USED),
            self_request=self._cells(row, accounts.OWN_REQUEST),
            guaranteed={key: accounts.guaranteed(shape, at, cell) for key, at, cell in each},
            allocated=self._cells(row, accounts.ALLOCATED),
        )

    def _scaled(self, shape: layouts.Shape, at: int) -> int:
        spot = shape.spots[at] if shape.spots else None
        if spot is None:
            return shape.minimum[at]
        column = self.rows[shape.parent][1][spot.column]
        total = self._to_share(self.layout.routes(shape.row)[at])
        return column.scaled_of(spot.slot, total)

    def shortage(
        self, name: str, requests: model.Pairs, *, preemptible: bool, less: Amounts = EMPTY
    ) -> model.Shortage | None:
        """Say why a pod that is counted as requested may not run, None where it may."""
        row = self.row(name)
        if row is None:
            return None
        shape = self.layout.shapes[row]
        asked = {key: amount for key, amount in checks.wanted(requests).items() if key in shape.at}
        bounds = (self._limit(row), self._cells(row, accounts.USED), asked)
        short = checks.exceeded(name, model.Kind.LIMIT, bounds, less)
        if short is None and not preemptible:
            least = {key: shape.minimum[at] for key, at in shape.at.items() if shape.written[at]}
            firm = (least, self._cells(row, accounts.FIRM_USED), asked)
            short = checks.exceeded(name, model.Kind.NON_PREEMPTIBLE, firm, EMPTY)
        if short is None and self.layout.rules.check_parents:
            short = self._above(row, asked, less)
        return short

    def _above(self, row: int, asked: Amounts, less: Amounts) -> model.Shortage | None:
        path = self.layout.path(row)
        for shape in reversed(path[:-1]):
            limit = {key: most for key, most in self._limit(shape.row).items() if key in asked}
            bounds = (limit, self._cells(shape.row, accounts.USED), asked)
            short = checks.exceeded(shape.name, model.Kind.PARENT, bounds, less)
            if short is not None:
                topo = (names.ROOT_QUOTA, *(one.name for one in path))
                return model.Shortage(
                    short.quota, short.kind, short.limit, short.used, asked, short.exceeded, topo
                )
        return None

    def derivation(self, name: str) -> Sequence[model.Step]:
        """Return how the runtime of a quota comes about, from the top of its tree downward."""
        row = self.layout.rows.get(name)
        path = self.layout.path(row) if row is not None else []
        return tuple(
            self._step(shape, at, spot)
            for shape in path
            for at, spot in enumerate(shape.spots)
            if spot is not None
        )

    def _step(self, shape: layouts.Shape, place: int, spot: layouts.Spot) -> model.Step:
        column, at = self.rows[shape.parent][1][spot.column], spot.slot
        total, slots = self._to_share(self.layout.routes(shape.row)[place]), column.slots
        least, told = column.least(total), list[list[model.Round]]()
        given = runtime.share(total, column, least, told)
        parent = self.layout.shapes[shape.parent]
        return model.Step(
            quota=shape.name,
            parent=parent.name if parent.parent >= 0 or parent.keys else names.ROOT_QUOTA,
            resource=shape.keys[place],
            total=total,
            minimum=slots.minimums[at],
            minimums=slots.together,
            scaled_minimum=column.scaled(total)[at],
            guaranteed=least[at],
            request=column.requests[at],
            weight=slots.weights[at],
            lends=slots.lends[at],
            joined=column.requests[at] > least[at],
            remaining=total - sum(runtime.kept(column, least)),
            rounds=tuple(told[at]),
            runtime=given[at],
        )

    def refresh(self) -> None:
        """Compute all shares at once; columns remember them."""
        above: list[Sequence[int]] = []
        for level in self.layout.levels:
            columns, totals = [], []
            for site in level.sites:
                columns.append(self.rows[site.row][1][site.column])
                totals.append(self._shared_at(site, above))
            first = [column.first for column in columns] if self.layout.rules.guarantee else None
            shares = level.block.share(
                totals,
                [column.requests for column in columns],
                first,
                scales=self.layout.rules.scale_min,
            )
            above = []
            for column, total, found in zip(columns, totals, shares, strict=True):
                if found is not None:
                    column.remember(total, found)
                above.append(column.shares(total) if found is None else found)

    def _shared_at(self, site: layouts.Site, above: Sequence[Sequence[int]]) -> int:
        if site.above >= 0:
            return above[site.above][site.slot]
        if site.bound is not None:
            return site.bound
        resource = self.layout.shared[site.row][site.column].resource
        return self.at_top(self.layout.shapes[site.row].name, resource)
