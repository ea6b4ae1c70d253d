"""Quotas in their trees as rows and columns: what objects and rules say, without any pod. Pure.

Every quota is a row, parents before their children; then come the default and the system quota, and
the top of each tree. A row with children has one column per resource that it shares out.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from api import names, resources
from api.koordinator import quota
from domain.quota import model
from domain.quota.shares import decay, runtime, water
from domain.quota.tree import membership


class Spot(NamedTuple):
    """Where a quota stands in what its parent shares out of one resource."""

    column: int
    slot: int
    place: int
    """The resource among the keys of the parent; -1 at the top of a tree."""


class Shape(NamedTuple):
    """What is written of one quota; sequences follow `keys`, the resources that it bounds."""

    name: str
    row: int
    parent: int
    """Row of its parent or of the top of its tree; -1 for that itself and outside of trees."""
    keys: tuple[str, ...]
    at: Mapping[str, int]
    cap: tuple[int, ...]
    minimum: tuple[int, ...]
    written: tuple[bool, ...]
    """Whether there is a minimum."""
    floor: tuple[int, ...]
    """What it asks for in any case, because it does not lend it."""
    spots: Sequence[Spot | None]
    """None where the parent does not bound the resource."""


class Shared(NamedTuple):
    """One resource that a row shares out among its children."""

    resource: str
    slots: runtime.Slots
    children: tuple[int, ...]
    """Rows of the children that bound it."""


class Route(NamedTuple):
    """The way of one resource from where it is known how much there is down to a quota."""

    resource: str
    tree: str
    total: int | None
    """The cap of the highest quota that bounds the resource below one that does not; None: what the
    tree shares out at its top."""
    steps: tuple[tuple[int, int, int], ...]
    """Row and column of each parent, and the place of the next quota in that."""


class Taken(NamedTuple):
    """What is taken from the nodes before the default tree shares them out, in one resource."""

    amount: int
    """What other trees have."""
    outside: tuple[tuple[int, int], ...]
    """Row and place of the resource of quotas outside of trees, whose use is taken."""


class Site(NamedTuple):
    """One column of one row, and where the total that it shares out is found."""

    row: int
    column: int
    above: int
    """Its parent's column in the level above."""
    slot: int
    """The place of the row in that column."""
    bound: int | None
    """The total itself where no column above tells it: the cap of the row."""


class Level(NamedTuple):
    """All columns of rows of the same depth."""

    block: water.Block
    sites: tuple[Site, ...]


class Layout:
    """All rows and columns."""

    def __init__(
        self,
        members: membership.Membership,
        rules: model.Rules,
        before: "Layout | None" = None,
    ) -> None:
        """Lay out all quotas; what `before`, under the same rules, says of the same is taken."""
        self.members = members
        self.rules = rules
        self.rows = {name: row for row, name in enumerate(members.places)}
        count = len(self.rows)
        self.outside = {names.DEFAULT_QUOTA: count, names.SYSTEM_QUOTA: count + 1}
        trees = sorted({"", *(place.tree for place in members.places.values())})
        self.trees = {tree: count + 2 + number for number, tree in enumerate(trees)}
        drafts = [
            (before and before.drafted(one.quota)) or _draft(one.quota, rules)
            for one in members.places.values()
        ]
        outside = [_draft(self._reserved(name), rules) for name in self.outside]
        self.shapes = self._placed(drafts) + [
            draft._replace(row=count + number) for number, draft in enumerate(outside)
        ]
        self.shared = self._columns()
        self.shapes += [_top(tree, row) for tree, row in self.trees.items()]
        self._spots()
        self.totals = {
            tree: model.positive(members.places[root].quota.total)
            for tree, root in members.roots.items()
        }
        self.taken = self._taken()
        self.known_routes: dict[int, tuple[Route, ...]] = {}
        self.known_levels: tuple[Level, ...] | None = None

    def drafted(self, one: quota.Quota) -> Shape | None:
        """Return what stands here of a quota, None where it is another object or none."""
        row = self.rows.get(one.name)
        if row is None or self.members.places[one.name].quota is not one:
            return None
        return self.shapes[row]

    def row_of(self, label: str, namespace: str) -> int | None:
        """Return the row in which pods with this label in this namespace count."""
        name = self.members.name_of(label, namespace, default=self.rules.default_quota)
        row = self.rows.get(name)
        return self.outside.get(name) if row is None else row

    def amended(self, name: str, one: quota.Quota) -> "Layout":
        """Return the layout after figures of a quota in a tree changed, but not where it stands.

        It has to bound the same resources as before.
        """
        row = self.rows[name]
        fresh = copy.copy(self)
        fresh.members = self.members.with_quota(one)
        old = self.shapes[row]
        fresh.shapes = self.shapes[:]
        fresh.shapes[row] = _draft(one, self.rules)._replace(
            row=row, parent=old.parent, spots=old.spots
        )
        columns = list(self.shared[old.parent])
        for spot in old.spots:
            if spot is not None:
                key, _, rows = columns[spot.column]
                columns[spot.column] = Shared(key, fresh.slots(key, rows), rows)
        fresh.shared = self.shared[:]
        fresh.shared[old.parent] = tuple(columns)
        if old.cap != fresh.shapes[row].cap:
            fresh.known_routes = {}
        fresh.known_levels = None
        return fresh

    def path(self, row: int) -> list[Shape]:
        """Return a quota and its ancestors, the highest first, without the top of the tree."""
        found, shapes = [], self.shapes
        while row >= 0:
            shape = shapes[row]
            if shape.parent < 0:
                break
            found.append(shape)
            row = shape.parent
        found.reverse()
        return found

    def routes(self, row: int) -> tuple[Route, ...]:
        """Return the ways of all resources of a quota, by its keys."""
        found = self.known_routes.get(row)
        if found is None:
            path = self.path(row) or [self.shapes[row]]
            found = tuple(self._route(path, key) for key in path[-1].keys)
            self.known_routes[row] = found
        return found

    def _route(self, path: Sequence[Shape], key: str) -> Route:
        total, steps = None, list[tuple[int, int, int]]()
        for shape in path:
            at = shape.at.get(key)
            if at is None:
                continue
            spot = shape.spots[at] if shape.spots else None
            if spot is None:
                total, steps = shape.cap[at], []
            else:
                steps.append((shape.parent, spot.column, spot.slot))
        tree = self.shapes[path[0].parent].name if path[0].parent >= 0 else ""
        return Route(key, tree, total, tuple(steps))

    @property
    def levels(self) -> tuple[Level, ...]:
        """Return all columns by depth, from the tops of trees downward."""
        if self.known_levels is None:
            self.known_levels = self._by_depth()
        return self.known_levels

    def _reserved(self, name: str) -> quota.Quota:
        """Return the object of the default or system quota, or one with the cap of the rules."""
        written = self.members.reserved.get(name)
        if written is not None and written.cap:
            return written
        rules = self.rules
        return quota.Quota(
            name=name,
            namespace="",
            resource=resources.ELASTIC_QUOTAS,
            minimum={},
            maximum=rules.default_max if name == names.DEFAULT_QUOTA else rules.system_max,
            hard={},
            weight={},
            used={},
        )

    def _placed(self, drafts: Sequence[Shape]) -> list[Shape]:
        return [
            draft._replace(
                row=row, parent=self.rows[place.parent] if place.parent else self.trees[place.tree]
            )
            for row, (draft, place) in enumerate(
                zip(drafts, self.members.places.values(), strict=True)
            )
        ]

    def _columns(self) -> list[tuple[Shared, ...]]:
        """Return what each row shares out, in the order of resource names."""
        tops = {membership.top(tree): row for tree, row in self.trees.items()}
        found: list[tuple[Shared, ...]] = [()] * (len(self.shapes) + len(tops))
        for parent, children in self.members.children.items():
            row = tops.get(parent, -1)
            bounded = None if row >= 0 else self.shapes[self.rows[parent]].at
            below: dict[str, list[int]] = {}
            for child in children:
                at = self.rows[child]
                for key in self.shapes[at].keys:
                    if bounded is None or key in bounded:
                        below.setdefault(key, []).append(at)
            found[row if row >= 0 else self.rows[parent]] = tuple(
                Shared(key, self.slots(key, rows), tuple(rows))
                for key, rows in sorted(below.items())
            )
        return found

    def slots(self, key: str, rows: Sequence[int]) -> runtime.Slots:
        """Describe some siblings in one resource."""
        shapes = [self.shapes[row] for row in rows]
        written = [self.members.places[shape.name].quota for shape in shapes]
        guarantee = self.rules.guarantee
        weights = [max(0, one.weight_of(key)) for one in written]
        if self.rules.half_life > 0:
            counters = [decay.Counter(one.borrowed, one.borrowed_at) for one in written]
            weights = decay.weights(weights, counters, key, self.rules.half_life)
        return runtime.Slots(
            [shape.minimum[shape.at[key]] for shape in shapes],
            weights,
            [one.lends and not guarantee for one in written],
            [one.priority for one in written],
            scales=self.rules.scale_min,
        )

    def _spots(self) -> None:
        """Tell every row where it stands in the columns of its parent."""
        spots: list[list[Spot | None]] = [[None] * len(shape.keys) for shape in self.shapes]
        for parent, columns in enumerate(self.shared):
            for column, (key, _, rows) in enumerate(columns):
                place = self.shapes[parent].at.get(key, -1)
                for slot, row in enumerate(rows):
                    spots[row][self.shapes[row].at[key]] = Spot(column, slot, place)
        self.shapes = [
            shape._replace(spots=own) for shape, own in zip(self.shapes, spots, strict=True)
        ]

    def _taken(self) -> dict[str, Taken]:
        """Return what trees and the quotas outside of them take from the default tree."""
        amounts: dict[str, int] = {}
        for tree, root in self.members.roots.items():
            if not self.members.places[root].quota.ignores_default_tree:
                for key, amount in self.totals[tree].items():
                    amounts[key] = amounts.get(key, 0) + amount
        outside: dict[str, list[tuple[int, int]]] = {}
        for row in self.outside.values():
            for key, at in self.shapes[row].at.items():
                outside.setdefault(key, []).append((row, at))
        return {
            key: Taken(amounts.get(key, 0), tuple(outside.get(key, ())))
            for key in {**amounts, **outside}
        }

    def _by_depth(self) -> tuple[Level, ...]:
        depths: dict[int, list[int]] = {}
        for row, columns in enumerate(self.shared):
            if columns:
                shape = self.shapes[row]
                deep = self.members.places[shape.name].depth + 1 if shape.parent >= 0 else 0
                depths.setdefault(deep, []).append(row)
        levels: list[Level] = []
        above: dict[tuple[int, int], int] = {}
        for deep in sorted(depths):
            sites = [
                self._site(row, column, above)
                for row in depths[deep]
                for column in range(len(self.shared[row]))
            ]
            slots = [self.shared[site.row][site.column].slots for site in sites]
            block = water.Block(
                [one.minimums for one in slots],
                [one.weights for one in slots],
                [one.lends for one in slots],
                [one.priorities for one in slots],
            )
            levels.append(Level(block, tuple(sites)))
            above = {(site.row, site.column): number for number, site in enumerate(sites)}
        return tuple(levels)

    def _site(self, row: int, column: int, above: Mapping[tuple[int, int], int]) -> Site:
        shape = self.shapes[row]
        if shape.parent < 0:
            return Site(row, column, -1, -1, None)
        at = shape.at[self.shared[row][column].resource]
        spot = shape.spots[at]
        if spot is None:
            return Site(row, column, -1, -1, shape.cap[at])
        return Site(row, column, above[shape.parent, spot.column], spot.slot, None)


def _draft(one: quota.Quota, rules: model.Rules) -> Shape:
    cap = model.positive(one.cap)
    keys = tuple(cap)
    least = tuple(max(0, min(one.minimum.get(key, 0), most)) for key, most in cap.items())
    lends = one.lends and not rules.guarantee
    return Shape(
        name=one.name,
        row=-1,
        parent=-1,
        keys=keys,
        at={key: number for number, key in enumerate(keys)},
        cap=tuple(cap.values()),
        minimum=least,
        written=tuple(key in one.minimum for key in keys),
        floor=(0,) * len(keys) if lends else least,
        spots=(),
    )


def _top(tree: str, row: int) -> Shape:
    return Shape(tree, row, -1, (), {}, (), (), (), (), ())
