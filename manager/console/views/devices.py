"""Devices by node with who holds them, and the domains that nodes form. Pure."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Protocol

from domain.devices import device_report, pod_holdings
from manager.console.access import scope
from manager.console.views import paging

_MOST_DOMAINS: Final = 500
_LONGEST: Final = 80


class NodeDevices(Protocol):
    """The devices of one node."""

    @property
    def rows(self) -> tuple[device_report.Row, ...]:
        """A row per device."""

    @property
    def problems(self) -> tuple[device_report.Problem, ...]:
        """What cannot stay as it is."""


Found = Mapping[str, NodeDevices]


def summary(found: Found) -> list[dict[str, Any]]:
    """Return how many devices of each type and model there are, and in what state."""
    totals: dict[tuple[str, str], dict[str, int]] = {}
    for node in found.values():
        for row in node.rows:
            key = (row.device.kind[:_LONGEST], row.device.model[:_LONGEST])
            counts = totals.setdefault(
                key, {"total": 0, "free": 0, "shared": 0, "full": 0, "faulty": 0}
            )
            counts["total"] += 1
            counts[_state(row)] += 1
    return [
        {"type": kind, "model": model, **counts} for (kind, model), counts in sorted(totals.items())
    ]


def _state(row: device_report.Row) -> str:
    if not (row.listed and row.device.healthy):
        return "faulty"
    if row.claims or row.percent >= 100:
        return "full"
    return "shared" if row.shares else "free"


def namespaces(found: Found, nodes: Collection[str]) -> set[str]:
    """Return the namespaces of pods that hold devices on these nodes."""
    return {
        share.holding.namespace
        for name in nodes
        for row in found[name].rows
        for share in row.shares
    }


def wanted_nodes(found: Found, wanted: paging.Asked) -> list[str]:
    """Return the nodes of a page, those with problems first."""
    names = [name for name in found if found[name].rows and wanted.text in name.lower()]
    if wanted.kind == "problems":
        names = [name for name in names if found[name].problems]
    return sorted(names, key=lambda name: (not found[name].problems, name))


def node(name: str, devices: NodeDevices, allowed: scope.Scope) -> dict[str, Any]:
    """Return the devices of one node; pods elsewhere than allowed have no name."""
    return {
        "node": name,
        "devices": [_device(row, allowed) for row in devices.rows],
        "problems": [
            {"text": one.text, "remedy": one.remedy}
            for one in (devices.problems if allowed.everywhere else ())
        ],
        "faults": len(devices.problems),
    }


def _device(row: device_report.Row, allowed: scope.Scope) -> dict[str, Any]:
    device = row.device
    hidden = sum(not allowed.allows(share.holding.namespace) for share in row.shares)
    return {
        "type": device.kind[:_LONGEST],
        "minor": device.minor,
        "model": device.model[:_LONGEST],
        "state": _state(row),
        "percent": row.percent,
        "total": pod_holdings.texts(device.total),
        "holders": [
            {"pod": share.holding.key, "percent": share.percent}
            for share in row.shares
            if allowed.allows(share.holding.namespace)
        ],
        "hidden": hidden,
        "claims": list(row.claims) if allowed.everywhere else [],
    }


def domains(layers: Collection[str], written: Any) -> dict[str, Any]:
    """Return the domains that the status of a ClusterNetworkTopology names, depth first."""
    found = list(_domains(written)) if isinstance(written, list) else []
    return {"layers": list(layers), "domains": found[:_MOST_DOMAINS], "total": len(found)}


def _domains(written: list[Any]) -> Iterator[dict[str, Any]]:
    for one in written:
        info = one.get("topologyInfo") if isinstance(one, dict) else None
        if not isinstance(info, dict):
            continue
        above = one.get("parentTopologyInfo")
        yield {
            "layer": str(info.get("topologyLayer", "")),
            "name": str(info.get("topologyName", "")),
            "parent": str(above.get("topologyName", "")) if isinstance(above, dict) else "",
            "nodes": one.get("nodeNum", 0),
        }
