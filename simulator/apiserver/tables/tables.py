"""Tables, which is how kubectl asks for what `get` prints."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from simulator.apiserver.registry import jsonpath, kinds
from simulator.apiserver.tables import printer_columns

Object = dict[str, Any]


class Column(NamedTuple):
    """One column: how it is headed and what stands in a cell."""

    name: str
    cell: Callable[[Object, float], Any]
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    def definition(self) -> Object:
        """Return the column as the wire describes it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or self.name,
            "priority": self.priority,
        }


def table(
    kind: kinds.Kind,
    items: Iterable[Object],
    now: float,
    *,
    metadata: Mapping[str, Any],
    include: str = "Metadata",
    headed: bool = True,
) -> Object:
    """Return objects as a Table; `include` says what of each object travels along."""
    chosen = _columns(kind)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata),
        "columnDefinitions": [column.definition() for column in chosen] if headed else [],
        "rows": [_row(chosen, item, now, include) for item in items],
    }


def metadata_of(item: Object) -> Object:
    """Return an object as a client gets it that asks for its metadata alone."""
    kind = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {**kind, "metadata": item["metadata"]}


def _row(chosen: Sequence[Column], item: Object, now: float, include: str) -> Object:
    row: Object = {"cells": [column.cell(item, now) for column in chosen]}
    if include == "Object":
        row["object"] = item
    elif include == "Metadata":
        row["object"] = metadata_of(item)
    else:
        row["object"] = None
    return row


def _columns(kind: kinds.Kind) -> list[Column]:
    name = Column("Name", lambda item, _: item["metadata"]["name"], format="name")
    if kind.columns:
        return [name, *map(_custom, kind.columns)]
    built_in = printer_columns.BUILT_IN.get(kind.sort)
    if built_in is None:
        return [name, Column("Age", lambda item, now: age(item, now))]
    wanted = [] if kind.plural == "events" else [name]
    return wanted + [
        Column(heading, cell, priority=priority) for heading, cell, priority in built_in
    ]


def _custom(raw: Mapping[str, Any]) -> Column:
    path, kind = raw["jsonPath"], raw["type"]

    def cell(item: Object, now: float) -> Any:
        found = jsonpath.find(item, path)
        if not found:
            return "<unknown>" if kind == "date" else None
        value = found[0]
        if kind == "date":
            return printer_columns.since(value, now)
        if kind in ("integer", "number", "boolean"):
            return value
        return value if isinstance(value, str) else _compact(found)

    return Column(
        raw["name"],
        cell,
        type=kind,
        format=raw.get("format", ""),
        description=raw.get("description", ""),
        priority=raw.get("priority", 0),
    )


def _compact(found: list[Any]) -> str:
    return " ".join(
        str(value) if not isinstance(value, bool) else str(value).lower() for value in found
    )


def age(item: Object, now: float) -> str:
    """Return how long an object exists."""
    return printer_columns.since(item["metadata"].get("creationTimestamp"), now)
