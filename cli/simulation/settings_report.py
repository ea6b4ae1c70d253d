"""A comparison of `koord simulate settings` as a report with tables and charts. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from api import names
from cli.output import charts, written_reports
from cli.simulation import comparison
from cli.simulation import lent as lending
from domain import wording

_MOST_BARS: Final = 20
_MOST_ROWS: Final = 1000
_CORE: Final = 1000
_GIB: Final = 1 << 30
_CPU: Final = (names.BATCH_CPU, names.MID_CPU)


def report(found: comparison.Comparison) -> written_reports.Report:
    """Return both sides beside each other."""
    tables = (_sums(found), _nodes(found), _pods(found))
    return written_reports.Report(
        "What a change would do",
        tuple(_sentences(found)),
        tuple(table for table in tables if table.rows),
        tuple(_charts(found)),
        found.notes,
    )


def _sentences(found: comparison.Comparison) -> Iterator[str]:
    for said in found.said:
        yield f"{said[:1].upper()}{said[1:]}."
    placed = found.changed.placed
    waiting = len(placed.places) + len(placed.waits)
    yield (
        f"Of {wording.count(waiting, 'waiting pod', 'waiting pods')} {len(placed.places)} would "
        f"get a place; without the change {len(found.without.placed.places)}."
    )
    for table, most in ((_nodes(found), "amounts"), (_pods(found), "pods")):
        if len(table.rows) == _MOST_ROWS:
            yield f"The first {_MOST_ROWS} {most} are shown; -o json has all."


def _charts(found: comparison.Comparison) -> Iterator[charts.Chart]:
    cores = [(name, _both(found, name, _CORE)) for name in _CPU]
    gib = [(name, _both(found, name, _GIB)) for name in lending.RESOURCES if name not in _CPU]
    yield charts.bars("Cores lent by all nodes", "cores", cores)
    yield charts.bars("Memory lent by all nodes", "GiB", gib)
    before, after = found.without.lent.nodes, found.changed.lent.nodes
    moved = {
        node: abs(_cpu(before, node) - _cpu(after, node))
        for node in {*before, *after}
        if _cpu(before, node) != _cpu(after, node)
    }
    if moved:
        rows = [
            (node, {"before": _cpu(before, node), "after": _cpu(after, node)})
            for node in sorted(moved, key=lambda node: (-moved[node], node))[:_MOST_BARS]
        ]
        yield charts.bars("Cores lent, nodes with the largest changes", "cores", rows)
    sides = {"before": found.without.placed, "after": found.changed.placed}
    if any(side.places or side.waits for side in sides.values()):
        placed = {name: float(len(side.places)) for name, side in sides.items()}
        waits = {name: float(len(side.waits)) for name, side in sides.items()}
        yield charts.bars("Waiting pods", "", [("get a place", placed), ("keep waiting", waits)])


def _both(found: comparison.Comparison, name: str, unit: int) -> Mapping[str, float]:
    sides = {"before": found.without.lent, "after": found.changed.lent}
    return {side: lent.total(name) / unit for side, lent in sides.items()}


def _cpu(nodes: Mapping[str, lending.Amounts], node: str) -> float:
    return sum(nodes.get(node, {}).get(name, 0) for name in _CPU) / _CORE


def _sums(found: comparison.Comparison) -> written_reports.Table:
    rows = tuple(
        (name, *(wording.amount(name, side.lent.total(name)) for side in _sides(found)))
        for name in lending.RESOURCES
    )
    return written_reports.Table("Lent by all nodes", ("RESOURCE", "BEFORE", "AFTER"), rows)


def _sides(found: comparison.Comparison) -> tuple[comparison.Side, comparison.Side]:
    return found.without, found.changed


def _nodes(found: comparison.Comparison) -> written_reports.Table:
    rows = tuple(comparison.moved(found))[:_MOST_ROWS]
    head = ("NODE", "RESOURCE", "BEFORE", "AFTER")
    return written_reports.Table("Nodes that lend another amount", head, rows)


def _pods(found: comparison.Comparison) -> written_reports.Table:
    anyway = {one.uid: one.node for one in found.without.placed.places}
    rows = [
        (one.key, anyway.get(one.uid, "waits"), one.node) for one in found.changed.placed.places
    ]
    rows += [
        (one.key, anyway.get(one.uid, "waits"), f"waits: {one.reason}")
        for one in found.changed.placed.waits
    ]
    head = ("POD", "BEFORE", "AFTER")
    return written_reports.Table("Waiting pods", head, tuple(rows[:_MOST_ROWS]))
