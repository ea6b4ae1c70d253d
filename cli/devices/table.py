"""The devices of a cluster as lines for a terminal, and as a document. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from api import names
from api.wire import quantity
from cli.devices import cluster
from cli.output import columns
from domain.devices import device_report, pod_holdings

COLUMNS: Final = (
    *columns.left("NODE", "TYPE", "MINOR", "MODEL", "HEALTH", "TOTAL", "USED", "FREE"),
    *columns.more("ID", "BUS ID"),
    columns.Column("HELD BY", narrow=True),
    *columns.more("HELD BY"),
)
_NONE: Final = "-"
_LONGEST: Final = 40
"""Characters of a type or model in a line."""
_MOST_HOLDERS: Final = 4
"""Pods that one line names; the document names all."""
_PERCENT: Final = (names.GPU_CORE, names.GPU_MEMORY_RATIO, names.RDMA, names.FPGA)


def lines(found: cluster.ClusterDevices, *, wide: bool = False) -> Iterator[str]:
    """Yield a line per device, then the problems with their remedies."""
    rows = (_cells(node.name, row) for node in found.nodes for row in node.rows)
    yield from columns.lines(COLUMNS, rows, wide=wide)
    for node in found.nodes:
        for problem in node.problems:
            yield f"problem: {problem.text}"
            yield f"  remedy: {problem.remedy}"
    for name in found.unreadable:
        yield f"{name} cannot be read and is left out"


def _cells(node: str, row: device_report.Row) -> tuple[str, ...]:
    device = row.device
    health = "gone" if not row.listed else "healthy" if device.healthy else "unhealthy"
    return (
        node,
        columns.cut(device.kind, _LONGEST) or _NONE,
        str(device.minor),
        columns.cut(device.model, _LONGEST) or _NONE,
        health,
        _amounts(device.total),
        _amounts(row.used),
        _amounts(row.free),
        columns.cut(device.id, _LONGEST) or _NONE,
        columns.cut(device.bus_id, _LONGEST) or _NONE,
        _holders(row, _MOST_HOLDERS),
        _holders(row, len(row.shares)),
    )


def _amounts(amounts: Mapping[str, int]) -> str:
    """Return the percentages, the larger of several, and the memory in bytes."""
    shares = [amounts[name] for name in _PERCENT if name in amounts]
    parts = []
    if shares and amounts.get(names.GPU_CORE) != amounts.get(names.GPU_MEMORY_RATIO):
        parts.append("/".join(f"{share}%" for share in shares))
    elif shares:
        parts.append(f"{max(shares)}%")
    parts += [
        quantity.text(name, value) if name == names.GPU_MEMORY else f"{value} {name}"
        for name, value in sorted(amounts.items())
        if name not in _PERCENT
    ]
    return " ".join(parts) or _NONE


def _holders(row: device_report.Row, most: int) -> str:
    told = [f"{share.holding.key} {share.percent}%" for share in row.shares[:most]]
    if len(row.shares) > most:
        told.append(f"and {len(row.shares) - most} more")
    told += [f"ResourceClaim {claim}" for claim in row.claims]
    return ", ".join(told) or _NONE


def document(found: cluster.ClusterDevices, notes: Iterable[str]) -> dict[str, Any]:
    """Return the devices as plain data; amounts as Kubernetes quantities."""
    return {
        "items": [_item(node.name, row) for node in found.nodes for row in node.rows],
        "problems": [
            {
                "node": problem.node,
                "reason": problem.reason,
                "message": problem.text,
                "remedy": problem.remedy,
            }
            for node in found.nodes
            for problem in node.problems
        ],
        "unreadable": list(found.unreadable),
        "notes": list(notes),
    }


def _item(node: str, row: device_report.Row) -> dict[str, Any]:
    device = row.device
    return {
        "node": node,
        "type": device.kind,
        "minor": device.minor,
        "id": device.id,
        "model": device.model,
        "busID": device.bus_id,
        "listed": row.listed,
        "healthy": row.listed and device.healthy,
        "total": pod_holdings.texts(device.total),
        "used": pod_holdings.texts(row.used),
        "free": pod_holdings.texts(row.free),
        "holders": [
            {
                "namespace": share.holding.namespace,
                "name": share.holding.name,
                "allocated": f"{share.percent}%",
                "resources": pod_holdings.texts(share.granted.amounts),
            }
            for share in row.shares
        ],
        "resourceClaims": list(row.claims),
    }
