"""What every ElasticQuota and its descendants ask for and use, kept up along paths. Pure.

A change of a pod enters at its quota and climbs to the top of the tree; a request above the cap of
a quota never climbs further.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from domain.quota import layout as layouts
from domain.quota import persistent, runtime, sums

Cell = tuple[int, int, int, int, int, int, int]
"""One resource of one quota, see below: figures of its own pods, of its subtree, child request and
what is allocated."""
Delta = tuple[int, int, int, int, int]
"""A change in a subtree: used, non-preemptible request and use, limited request, guaranteed."""

OWN_REQUEST, OWN_USED, USED, FIRM_REQUEST, FIRM_USED, ASKED, ALLOCATED = range(7)
NOTHING: Final[Cell] = (0, 0, 0, 0, 0, 0, 0)


class Row(NamedTuple):
    """The sums of one quota by resource, and what its children ask of it."""

    cells: tuple[Cell, ...]
    columns: tuple[runtime.Column, ...]


Rows = persistent.Vector[Row]


def limited(shape: layouts.Shape, at: int, cell: Cell) -> int:
    """Return what a quota asks of its parent: at least what it does not lend, at most its cap."""
    return min(max(cell[5], shape.floor[at]), shape.cap[at])


def guaranteed(shape: layouts.Shape, at: int, cell: Cell) -> int:
    """Return what a quota keeps where nobody lends."""
    return max(cell[6], shape.minimum[at])


def built(layout: layouts.Layout, groups: Iterable[tuple[sums.Group, sums.Sums]]) -> Rows:
    """Count all pods."""
    cells = [[NOTHING] * len(shape.keys) for shape in layout.shapes]
    for group, total in groups:
        row = layout.row_of(*group)
        if row is not None:
            _own(layout.shapes[row], cells[row], total)
    for shape in reversed(layout.shapes):
        if shape.parent >= 0:
            _climb(layout.shapes[shape.parent], cells[shape.parent], shape, cells[shape.row])
    return persistent.Vector(
        Row(tuple(own), tuple(_column(layout, shared, cells) for shared in columns))
        for own, columns in zip(cells, layout.shared, strict=True)
    )


def _own(shape: layouts.Shape, cells: list[Cell], total: sums.Sums) -> None:
    for key, (request, used, firm_request, firm_used) in total.items():
        at = shape.at.get(key)
        if at is not None:
            own = cells[at]
            cells[at] = (
                own[0] + request,
                own[1] + used,
                own[2] + used,
                own[3] + firm_request,
                own[4] + firm_used,
                own[5] + request,
                own[6] + used,
            )


def _climb(
    parent: layouts.Shape, above: list[Cell], shape: layouts.Shape, cells: list[Cell]
) -> None:
    for at, cell in enumerate(cells):
        place = parent.at.get(shape.keys[at])
        if place is not None:
            delta = (
                cell[2],
                cell[3],
                cell[4],
                limited(shape, at, cell),
                guaranteed(shape, at, cell),
            )
            above[place] = _moved(above[place], delta)


def _moved(cell: Cell, delta: Delta) -> Cell:
    used, firm_request, firm_used, asked, kept = delta
    return (
        cell[0],
        cell[1],
        cell[2] + used,
        cell[3] + firm_request,
        cell[4] + firm_used,
        cell[5] + asked,
        cell[6] + kept,
    )


def _column(
    layout: layouts.Layout, shared: layouts.Shared, cells: list[list[Cell]]
) -> runtime.Column:
    asked, kept = [], []
    for row in shared.children:
        shape = layout.shapes[row]
        at = shape.at[shared.resource]
        asked.append(limited(shape, at, cells[row][at]))
        kept.append(guaranteed(shape, at, cells[row][at]))
    first = kept if layout.rules.guarantee else shared.slots.minimums
    return runtime.Column(shared.slots, asked, first)


def changed(layout: layouts.Layout, rows: Rows, row: int, total: sums.Sums) -> Rows:
    """Count a change of the pods of one quota."""
    shape = layout.shapes[row]
    before = rows[row]
    cells = list(before.cells)
    _own(shape, cells, total)
    at_hand = [shape.at[key] for key in total if key in shape.at]
    fresh = [(row, Row(tuple(cells), before.columns))]
    while shape.parent >= 0 and at_hand:
        parent = layout.shapes[shape.parent]
        above = rows[shape.parent]
        after = list(above.cells)
        columns = list(above.columns)
        next_at = []
        for at in at_hand:
            old, new = before.cells[at], cells[at]
            asked, kept = limited(shape, at, new), guaranteed(shape, at, new)
            more = asked - limited(shape, at, old)
            more_kept = kept - guaranteed(shape, at, old)
            spot = shape.spots[at]
            if spot is not None and (more or (more_kept and layout.rules.guarantee)):
                column, slot = spot
                least = kept if layout.rules.guarantee else None
                columns[column] = columns[column].changed(slot, asked, least)
            place = parent.at.get(shape.keys[at])
            if place is not None:
                delta = (new[2] - old[2], new[3] - old[3], new[4] - old[4], more, more_kept)
                after[place] = _moved(after[place], delta)
                next_at.append(place)
        fresh.append((parent.row, Row(tuple(after), tuple(columns))))
        before, cells, shape, at_hand = above, after, parent, next_at
    return rows.replaced(fresh)
