"""A cluster with a change beside the same cluster without it: lent amounts and placements. Pure."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from api import resources
from cli.previews import class_changes
from cli.simulation import lent as lending
from cli.simulation import over_lent, placing
from cli.snapshot import format as formats
from domain import wording

_MOST: Final = 40


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
    """What the cluster comes to, with or without the change."""

    lent: lending.Lent
    placed: placing.Outcome
    settled: lending.Lent
    """The resources lent once the pods run that got a place."""
    over: tuple[over_lent.Over, ...] = ()
    """Nodes whose pods hold more than is lent."""


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides, and what was changed."""

    said: tuple[str, ...]
    without: Side
    changed: Side
    classes: tuple[class_changes.Changes, ...] = ()
    """What profiles would change of pods that are created anew."""
    notes: tuple[str, ...] = ()


def settled(snapshot: formats.Snapshot, placed: placing.Outcome) -> formats.Snapshot:
    """Return the snapshot as it is once the pods run that got a place."""
    nodes = {one.uid: one.node for one in placed.places}
    pods = tuple(
        _bound(raw, nodes.get(str(raw["metadata"].get("uid", "")), ""))
        for raw in snapshot.of(resources.PODS)
    )
    objects = {**snapshot.objects, resources.PODS.review_name(): pods}
    return msgspec.structs.replace(snapshot, objects=objects)


def _bound(raw: formats.Raw, node: str) -> formats.Raw:
    if not node:
        return raw
    status = {**(raw.get("status") or {}), "phase": "Running"}
    return {**raw, "spec": {**(raw.get("spec") or {}), "nodeName": node}, "status": status}


def class_cluster(snapshot: formats.Snapshot) -> class_changes.Cluster:
    """Return what profiles are compared with."""
    homes = {
        one["metadata"]["name"]: one["metadata"].get("labels") or {}
        for one in snapshot.of(resources.NAMESPACES)
    }
    classes = class_changes.priority_classes(snapshot.of(resources.PRIORITY_CLASSES))
    return class_changes.Cluster(snapshot.of(resources.PODS), homes, classes)


# -- as lines --------------------------------------------------------------------------------


def lines(found: Comparison, *, wide: bool = False) -> Iterator[str]:
    """Yield everything for people."""
    yield from (f"try: {sentence}" for sentence in found.said or ("no change",))
    yield ""
    rows = [("LENT", "BEFORE", "AFTER", "DIFFERENCE"), *_sums(found)]
    yield from _aligned(rows)
    yield ""
    changes = [("NODE", "RESOURCE", "BEFORE", "AFTER"), *moved(found)]
    shown = changes if wide else changes[: _MOST + 1]
    if len(changes) > 1:
        yield from _aligned(shown)
        if len(changes) > len(shown):
            yield f"and {len(changes) - len(shown)} more (-o wide or -o json shows all)"
    else:
        yield "No node lends another amount."
    yield ""
    yield from _placed(found, len(found.changed.placed.places) if wide else _MOST)
    yield from _over(found, wide=wide)
    for one in found.classes:
        yield from class_changes.lines(one)
    yield from (f"note: {note}" for note in found.notes)


def _sums(found: Comparison) -> Iterator[tuple[str, ...]]:
    for name in lending.RESOURCES:
        old, new = found.without.lent.total(name), found.changed.lent.total(name)
        sign = "+" if new >= old else "-"
        moved = wording.amount(name, abs(new - old))
        yield name, wording.amount(name, old), wording.amount(name, new), f"{sign}{moved}"


def moved(found: Comparison) -> Iterator[tuple[str, ...]]:
    """Yield node, resource and both amounts where a node lends another amount."""
    before, after = found.without.lent.nodes, found.changed.lent.nodes
    for node in sorted({*before, *after}):
        old, new = before.get(node, {}), after.get(node, {})
        for name in lending.RESOURCES:
            if old.get(name, 0) != new.get(name, 0):
                yield (node, name, _cell(name, old), _cell(name, new))


def _cell(name: str, amounts: Mapping[str, int]) -> str:
    return wording.amount(name, amounts[name]) if name in amounts else "-"


def _aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        cells = (
            text.ljust(width) if at < len(row) - 2 else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _placed(found: Comparison, most: int) -> Iterator[str]:
    places, before = found.changed.placed.places, found.without.placed.places
    waits = found.changed.placed.waits
    yield (
        f"Of {wording.count(len(places) + len(waits), 'waiting pod', 'waiting pods')} "
        f"{len(places)} would get a place; without the change {len(before)}."
    )
    anyway = {one.uid: one.node for one in before}
    for one in places[:most]:
        other = anyway.get(one.uid)
        note = "" if other is None else " (also without the change)"
        if other is not None and other != one.node:
            note = f" (without the change: {other})"
        yield f"  {one.key} on {one.node}{note}"
    if len(places) > most:
        yield f"  and {len(places) - most} more (-o wide or -o json shows all)"
    lost = {one.uid for one in before} - {one.uid for one in places}
    for wait in waits[:most]:
        mark = "; without the change it would get one" if wait.uid in lost else ""
        yield f"  {wait.key} keeps waiting: {wait.by}: {wait.reason}{mark}"
    if len(waits) > most:
        yield f"  and {len(waits) - most} more keep waiting"


def _over(found: Comparison, *, wide: bool) -> Iterator[str]:
    over = found.changed.over
    if not over:
        return
    nodes = wording.count(len({one.node for one in over}), "node", "nodes")
    yield f"On {nodes} pods hold more than would be lent:"
    most = len(over) if wide else _MOST
    for one in over[:most]:
        pods = ", ".join(one.pods[:3]) + (" ..." if len(one.pods) > 3 else "")
        held, given = (wording.amount(one.resource, value) for value in (one.held, one.lent))
        yield f"  {one.node}: {one.resource} {held} of {given}; no longer fit: {pods}"
    if len(over) > most:
        yield f"  and {len(over) - most} more (-o wide or -o json shows all)"


# -- as data ---------------------------------------------------------------------------------


def document(found: Comparison) -> dict[str, Any]:
    """Return the same for programs: amounts in thousandths of a core and in bytes."""
    return {
        "changes": list(found.said),
        "lent": {
            name: {
                "before": found.without.lent.total(name),
                "after": found.changed.lent.total(name),
            }
            for name in lending.RESOURCES
        },
        "without": _side(found.without),
        "changed": _side(found.changed),
        "profiles": [dataclasses.asdict(one) for one in found.classes],
        "notes": list(found.notes),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "lent": {node: dict(amounts) for node, amounts in side.lent.nodes.items()},
        "settled": {node: dict(amounts) for node, amounts in side.settled.nodes.items()},
        "placed": [_without_uid(one) for one in side.placed.places],
        "waiting": [_without_uid(one) for one in side.placed.waits],
        "gated": list(side.placed.gated),
        "over": [dataclasses.asdict(one) for one in side.over],
    }


def _without_uid(one: placing.Place | placing.Wait) -> dict[str, str]:
    found: dict[str, str] = dataclasses.asdict(one)
    found["pod"] = found.pop("key")
    del found["uid"]
    return found


def side(snapshot: formats.Snapshot, placed: placing.Outcome, given: lending.Lent) -> Side:
    """Return what a cluster comes to, of which is known what it lends and who gets a place."""
    after = settled(snapshot, placed)
    return Side(given, placed, lending.calculated(after), tuple(over_lent.found(after, given)))
