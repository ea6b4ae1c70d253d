"""`koord top`: what nodes, pods and quotas request, use, lend and borrow."""

import argparse
import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from api import names, resources
from api.koordinator.metadata import qos
from api.koordinator.metrics import nodemetric
from api.kubernetes import core
from api.wire import quantity
from cli import clusters, reading, scope, watching
from cli.output import answers, columns, terminal
from cli.quota import table
from cli.view import overview, overview_reader
from domain.pods import resources as amounts
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks
from process.runtime import entry

_NONE: Final = "-"
_COLUMNS: Final[Mapping[str, tuple[columns.Column, ...]]] = {
    "nodes": (
        *columns.left("NODE"),
        *columns.right("CPU", "REQUESTED", "USED"),
        columns.Column("USED %", right=True, wide=True),
        *columns.right("LENT", "BORROWED", "MEMORY", "REQUESTED", "USED"),
        columns.Column("USED %", right=True, wide=True),
        *columns.right("LENT", "BORROWED", "PODS"),
    ),
    "pods": (
        *columns.left("NAMESPACE", "POD", "NODE", "QOS"),
        *columns.more("BAND", "PHASE"),
        *columns.right("CPU REQUESTED", "USED", "BORROWED"),
        *columns.right("MEMORY REQUESTED", "USED", "BORROWED"),
    ),
    "quotas": (
        *columns.left("NAMESPACE", "QUOTA"),
        *columns.more("PARENT", "TREE"),
        *columns.left("RESOURCE"),
        *columns.right("USED", "ENTITLED", "GUARANTEED", "BORROWED", "LENT"),
    ),
}
Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord top`."""
    parser.description = (
        "Show what is requested, used (as the agents measured it), lent to batch pods and borrowed "
        "by them. Documents count cpu in milli-cores and memory in bytes. Exit code: 0 shown, 1 "
        "the API server cannot be reached, 2 bad arguments."
    )
    parser.add_argument(
        "what",
        choices=tuple(_COLUMNS),
        type=_plural,
        nargs="?",
        default="nodes",
        help="default nodes; the singular is understood too",
    )
    scope.add_arguments(parser, "nodes, pods or quotas")
    watching.add_arguments(parser)
    clusters.add_arguments(parser)
    clusters.add_installation(parser, alias=False)
    clusters.add_output(parser)
    parser.set_defaults(run=_run)


def _plural(word: str) -> str:
    return f"{word}s" if f"{word}s" in _COLUMNS else word


def _run(chosen: argparse.Namespace) -> int:
    return watching.run(chosen, _once)


def _once(chosen: argparse.Namespace) -> int:
    try:
        asyncio.run(_shown(chosen))
    except errors.KubeError as error:
        terminal.warn(f"koord top: {error}")
        return entry.FAILED
    return entry.OK


async def _shown(chosen: argparse.Namespace) -> None:
    clock = clocks.SystemClock()
    access = await clusters.connect(chosen)
    async with clients.Client(access, clock=clock, user_agent="koord-top") as kube:
        show(chosen.what, await rows(kube, chosen), chosen.output, scope.of(chosen))


async def rows(kube: clients.Client, chosen: argparse.Namespace) -> list[Row]:
    """Return what is shown as plain data."""
    asked = scope.of(chosen)
    if chosen.what == "pods":
        return await _pods(kube, asked)
    picture = await overview_reader.read(kube, chosen.koord_namespace)
    if chosen.what == "nodes":
        named = await scope.named(kube, asked, resources.NODES)
        return [_node(row) for row in picture.nodes if named is None or ("", row.name) in named]
    for sentence in overview.hidden(picture):
        terminal.warn(f"koord top: {sentence}")
    named = await scope.named(kube, asked, *resources.QUOTA_RESOURCES)
    return [
        row
        for row in overview.as_json(picture)["quotas"]
        if asked.holds(row["namespace"])
        and (named is None or (row["namespace"], row["name"]) in named)
    ]


def _node(row: overview.NodeRow) -> Row:
    gauges = {"cpu": row.cpu, "memory": row.memory}
    return {"name": row.name, "pods": row.pods} | {
        name: {
            "allocatable": gauge.capacity,
            "requested": gauge.requested,
            "used": gauge.used,
            "lent": gauge.lent,
            "borrowed": gauge.borrowed,
        }
        for name, gauge in gauges.items()
    }


async def _pods(kube: clients.Client, asked: scope.Scope) -> list[Row]:
    used: dict[str, dict[str, int]] = {}
    for raw in (await kube.list(resources.NODE_METRICS)).items:
        used |= reading.either({}, _measured, overview_reader.read_metric(raw))
    found = []
    for raw in (await kube.list(resources.PODS, asked.namespace, labels=asked.text)).items:
        row = reading.either(None, _pod, raw, used)
        if row is not None:
            found.append(row)
    return sorted(found, key=lambda row: (row["namespace"], row["name"]))


def _measured(metric: nodemetric.NodeMetric) -> dict[str, dict[str, int]]:
    return {
        f"{one.namespace}/{one.name}": {
            name: quantity.amount(name, value) for name, value in one.pod_usage.resources.items()
        }
        for one in metric.status.pods_metric
    }


def _pod(raw: Any, used: Mapping[str, Mapping[str, int]]) -> Row | None:
    """Return one pod; None where it has ended."""
    pod = msgspec.convert(raw, core.Pod)
    if pod.finished:
        return None
    asked, measured = amounts.pod_requests(pod), used.get(pod.metadata.key)
    row: Row = {
        "name": pod.metadata.name,
        "namespace": pod.metadata.namespace,
        "node": pod.spec.node_name,
        "qos": str(qos.of_pod(pod)),
        "band": str(qos.band_of_pod(pod) or ""),
        "phase": pod.status.phase,
    }
    for name, batch in ((names.CPU, names.BATCH_CPU), (names.MEMORY, names.BATCH_MEMORY)):
        row[name] = {
            "requested": asked.get(name, 0),
            "used": None if measured is None else measured.get(name, 0),
            "borrowed": asked.get(batch, 0),
        }
    return row


def show(what: str, found: Sequence[Row], output: str, asked: scope.Scope) -> None:
    """Print rows as a table, or as a document."""
    if answers.is_document(output):
        answers.show(output, {"items": list(found)})
        return
    if not found:
        # Nodes are in no namespace.
        place = asked._replace(namespace="").place if what == "nodes" else asked.place
        terminal.warn(f"there are no {what}{place}")
        return
    cells = (line for row in found for line in _CELLS[what](row))
    terminal.lines(columns.lines(_COLUMNS[what], cells, wide=output == "wide"))


def _node_cells(row: Row) -> Iterable[tuple[str, ...]]:
    yield (
        str(row["name"]),
        *_gauge_cells(row["cpu"], _cores),
        *_gauge_cells(row["memory"], _gibibytes),
        str(row["pods"]),
    )


def _gauge_cells(
    gauge: Mapping[str, int | None], written: Callable[[int | None], str]
) -> Iterator[str]:
    yield from (written(gauge[one]) for one in ("allocatable", "requested", "used"))
    used, whole = gauge["used"], gauge["allocatable"]
    yield _NONE if used is None or not whole else f"{100 * used // whole}%"
    yield from (written(gauge[one]) for one in ("lent", "borrowed"))


def _pod_cells(row: Row) -> Iterable[tuple[str, ...]]:
    figures = ("requested", "used", "borrowed")
    yield (
        *(str(row[one] or _NONE) for one in ("namespace", "name", "node", "qos", "band", "phase")),
        *(_cores(row["cpu"][one]) for one in figures),
        *(_gibibytes(row["memory"][one]) for one in figures),
    )


def _quota_cells(row: Row) -> Iterable[tuple[str, ...]]:
    figures = ("used", "entitled", "guaranteed", "borrowed", "lent")
    kinds = sorted({kind for one in figures for kind in row.get(one) or {}})
    for kind in kinds:
        amounts_of = (_quantity(kind, (row.get(one) or {}).get(kind)) for one in figures)
        more = (row["parent"] or _NONE, row["tree"] or _NONE)
        yield (row["namespace"] or _NONE, row["name"], *more, kind, *amounts_of)


_CELLS: Final = {"nodes": _node_cells, "pods": _pod_cells, "quotas": _quota_cells}


def _quantity(kind: str, text: str | None) -> str:
    return table.written(kind, None if text is None else quantity.amount(kind, text))


def _cores(milli: int | None) -> str:
    return _NONE if milli is None else overview.cores(milli)


def _gibibytes(amount: int | None) -> str:
    return _NONE if amount is None else overview.gibibytes(amount)
