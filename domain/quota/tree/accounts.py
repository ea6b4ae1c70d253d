"""What every ElasticQuota and its descendants ask for and use, kept up along paths. Pure.

A change of a pod enters at its quota and climbs to the top of the tree; a request above the cap of
a quota never climbs further.
"""

from collections.abc import Iterable

from domain import persistent
from domain.quota.shares import runtime
from domain.quota.tree import layout as layouts
from domain.quota.tree import sums

Cell = tuple[int, int, int, int, int, int, int, int]
"""One resource of one quota, see below: figures of its own pods, of its subtree, and what its
parent sees of it."""
Row = tuple[tuple[Cell, ...], tuple[runtime.Column, ...]]
"""The sums of one quota by resource, and what its children ask of it."""
Rows = persistent.Vector[Row]

OWN_REQUEST, OWN_USED, USED, FIRM_REQUEST, FIRM_USED, ASKED, ALLOCATED, LIMITED = range(8)


_Move = tuple[int, int, int, int, int, int, int, int | None]
"""How one resource of a quota, by its place, has changed for its parent: used, non-preemptible
request and use, limited request, allocated; and what limited request and guaranteed are now, the
latter where nothing is lent."""


def guaranteed(shape: layouts.Shape, at: int, cell: Cell) -> int:
    """Return what a quota keeps where nothing is lent."""
    return max(cell[ALLOCATED], shape.minimum[at])


def built(layout: layouts.Layout, groups: Iterable[tuple[sums.Group, sums.Sums]]) -> Rows:
    """Count all pods."""
    shapes = layout.shapes
    cells: list[list[Cell]] = [
        [
            (0, 0, 0, 0, 0, 0, 0, min(least, cap))
            for least, cap in zip(shape.floor, shape.cap, strict=True)
        ]
        for shape in shapes
    ]
    for group, total in groups:
        row = layout.row_of(*group)
        if row is not None:
            _own(shapes[row], cells[row], total, guarantee=layout.rules.guarantee)
    for shape in reversed(shapes):
        if shape.parent >= 0:
            _climb(layout, shape, cells)
    return persistent.Vector(
        (tuple(own), tuple(_column(layout, shared, cells) for shared in columns))
        for own, columns in zip(cells, layout.shared, strict=True)
    )


def _own(
    shape: layouts.Shape, cells: list[Cell], total: sums.Sums, *, guarantee: bool
) -> list[_Move]:
    """Count pods in their quota; return what its parent sees of that."""
    moves: list[_Move] = []
    for key, (request, used, firm_request, firm_used) in total.items():
        at = shape.at.get(key)
        if at is not None:
            cell = cells[at]
            cells[at] = (cell[0] + request, cell[1] + used, *cell[2:])
            delta = (used, firm_request, firm_used, request, used)
            moves.append(_move(shape, at, cells, delta, guarantee))
    return moves


def _move(
    shape: layouts.Shape,
    at: int,
    cells: list[Cell],
    delta: tuple[int, int, int, int, int],
    guarantee: bool,
) -> _Move:
    """Change what a quota and its descendants ask for and use; return what its parent sees."""
    own, own_used, used, firm, firm_used, asked, allocated, limited = cells[at]
    more, more_firm, more_firm_used, more_asked, more_allocated = delta
    asked += more_asked
    now = asked if asked > shape.floor[at] else shape.floor[at]
    if now > shape.cap[at]:
        now = shape.cap[at]
    fresh = allocated + more_allocated
    least = None
    if guarantee:
        minimum = shape.minimum[at]
        least = max(fresh, minimum)
        more_allocated = least - max(allocated, minimum)
    cells[at] = (
        own, own_used, used + more, firm + more_firm, firm_used + more_firm_used, asked, fresh, now,
    )  # fmt: skip
    return at, more, more_firm, more_firm_used, now - limited, more_allocated, now, least


def _climb(layout: layouts.Layout, shape: layouts.Shape, cells: list[list[Cell]]) -> None:
    """Count all that a quota asks for and uses in its parent, which counted nothing of it."""
    parent, guarantee = layout.shapes[shape.parent], layout.rules.guarantee
    for at, cell in enumerate(cells[shape.row]):
        place = parent.at.get(shape.keys[at])
        if place is not None:
            kept = guaranteed(shape, at, cell) if guarantee else cell[ALLOCATED]
            delta = (cell[USED], cell[FIRM_REQUEST], cell[FIRM_USED], cell[LIMITED], kept)
            _move(parent, place, cells[shape.parent], delta, guarantee)


def _column(
    layout: layouts.Layout, shared: layouts.Shared, cells: list[list[Cell]]
) -> runtime.Column:
    asked, kept = [], []
    for row in shared.children:
        shape = layout.shapes[row]
        at = shape.at[shared.resource]
        asked.append(cells[row][at][LIMITED])
        kept.append(guaranteed(shape, at, cells[row][at]))
    first = kept if layout.rules.guarantee else shared.slots.minimums
    return runtime.Column(shared.slots, asked, first)


def changed(layout: layouts.Layout, rows: Rows, row: int, total: sums.Sums) -> Rows:
    """Count a change of the pods of one quota, in it and in all its ancestors."""
    shape = layout.shapes[row]
    cells = list(rows[row][0])
    moves = _own(shape, cells, total, guarantee=layout.rules.guarantee)
    return _risen(layout, rows, shape, cells, moves)


def amended(layout: layouts.Layout, rows: Rows, row: int) -> Rows:
    """Count anew what a quota asks for whose own figures are others than they were."""
    shape, guarantee = layout.shapes[row], layout.rules.guarantee
    cells = list(rows[row][0])
    kept = _kept(rows, shape) if guarantee else []
    nothing = (0, 0, 0, 0, 0)
    moves = []
    for at in range(len(cells)):
        move = _move(shape, at, cells, nothing, guarantee)
        if guarantee:
            move = (*move[:5], guaranteed(shape, at, cells[at]) - kept[at], *move[6:])
        moves.append(move)
    rows = _risen(layout, rows, shape, cells, moves)
    above = rows[shape.parent]
    columns = tuple(
        runtime.Column(
            shared.slots, column.requests, column.first if guarantee else shared.slots.minimums
        )
        if shared.slots is not column.slots
        else column
        for shared, column in zip(layout.shared[shape.parent], above[1], strict=True)
    )
    return rows.replaced([(shape.parent, (above[0], columns))])


def _kept(rows: Rows, shape: layouts.Shape) -> list[int]:
    """Return what the parent of a quota counts as guaranteed to it until now."""
    columns = rows[shape.parent][1]
    return [
        columns[spot.column].first[spot.slot] if spot is not None else 0 for spot in shape.spots
    ]


def _risen(
    layout: layouts.Layout,
    rows: Rows,
    shape: layouts.Shape,
    cells: list[Cell],
    moves: list[_Move],
) -> Rows:
    """Carry changes of a quota up to the top of its tree."""
    shapes, guarantee = layout.shapes, layout.rules.guarantee
    fresh = [(shape.row, (tuple(cells), rows[shape.row][1]))]
    while shape.parent >= 0 and moves:
        parent = shapes[shape.parent]
        before, below = rows[shape.parent]
        cells, columns = list(before), list(below)
        climbing, shares = [], below
        for at, used, firm, firm_used, asked, allocated, limited, least in moves:
            spot = shape.spots[at]
            if spot is None:
                continue
            column, slot, place = spot
            if asked or (guarantee and allocated):
                columns[column] = columns[column].changed(slot, limited, least)
                shares = ()
            if place >= 0:
                delta = (used, firm, firm_used, asked, allocated)
                climbing.append(_move(parent, place, cells, delta, guarantee))
        # Where no share changes, the columns stay the same object: readers compare it.
        fresh.append((shape.parent, (tuple(cells), shares or tuple(columns))))
        shape, moves = parent, climbing
    return rows.replaced(fresh)
