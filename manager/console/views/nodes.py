"""All nodes as columns for the heat map, and the pods of one node. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from api import names
from domain.lending import colocation
from manager.console.access import scope
from manager.console.views import pods, usage
from manager.model import projections

_MIB: Final = 1 << 20
_ZONE: Final = "topology.kubernetes.io/zone"
_LENT: Final = {
    names.CPU: (names.BATCH_CPU, 1),
    names.MEMORY: (names.BATCH_MEMORY, _MIB),
}

Report = Callable[[str], projections.Report | None]


def columns(
    nodes: Iterable[projections.Node], reports: Report | None, index: pods.PodIndex | None
) -> dict[str, Any]:
    """Return a column per figure, in the order of names: cpu in milli-cores, memory in MiB.

    Reports and pods are None where they may not be shown; their columns are then missing.
    """
    ordered = sorted(nodes, key=lambda node: node.name)
    zones: dict[str, int] = {}
    document: dict[str, Any] = {
        "names": [node.name for node in ordered],
        "ready": [int(node.schedulable) for node in ordered],
        "zone": [zones.setdefault(node.labels.get(_ZONE, ""), len(zones)) for node in ordered],
        "zones": list(zones),
        "cpu": _offered(ordered, names.CPU),
        "memory": _offered(ordered, names.MEMORY),
    }
    if reports is not None:
        _add_used(document, ordered, reports)
    if index is not None:
        _add_requested(document, [index.of_node(node.name) for node in ordered])
    return document


def _offered(nodes: list[projections.Node], native: str) -> dict[str, list[int]]:
    lent, unit = _LENT[native]
    pick = 0 if native == names.CPU else 1
    return {
        "capacity": [node.allocatable[pick] // unit for node in nodes],
        "lent": [node.offered.get(lent, 0) // unit for node in nodes],
    }


def lent(node: projections.Node) -> colocation.Amount:
    """Return what a node lends to batch pods."""
    offered = node.offered
    return colocation.Amount(offered.get(names.BATCH_CPU, 0), offered.get(names.BATCH_MEMORY, 0))


def _add_used(document: dict[str, Any], nodes: list[projections.Node], reports: Report) -> None:
    found = [reports(node.name) for node in nodes]
    usage = [one.usage if one is not None else None for one in found]
    document["cpu"]["used"] = [None if one is None else one.cpu for one in usage]
    document["memory"]["used"] = [None if one is None else one.memory // _MIB for one in usage]


def _add_requested(document: dict[str, Any], sums: list[pods.Sums]) -> None:
    cpu, memory = document["cpu"], document["memory"]
    cpu["requested"] = [one.cpu for one in sums]
    cpu["borrowed"] = [one.batch_cpu for one in sums]
    memory["requested"] = [one.memory // _MIB for one in sums]
    memory["borrowed"] = [one.batch_memory // _MIB for one in sums]
    document["pods"] = [len(one.keys) for one in sums]


def usage_by_class(report: projections.Report | None) -> dict[str, Any] | None:
    """Return what online and batch pods use of a node; None where nothing is measured."""
    found = usage.use(report) if report is not None else None
    if report is None or found is None:
        return None
    return {
        "node": found.whole._asdict(),
        "online": found.online._asdict(),
        "batch": found.batch._asdict(),
        "system": report.system._asdict(),
    }


def pods_of(sums: pods.Sums, allowed: scope.Scope) -> list[dict[str, Any]]:
    """Return the pods of a node that may be shown, by namespace and name."""
    return [row(pod) for _, pod in sorted(sums.keys.items()) if allowed.allows(pod.namespace)]


def row(pod: pods.Pod) -> dict[str, Any]:
    """Return a pod with what it asks for; batch pods ask for batch resources."""
    asked = pod.asked
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "class": asked.quality,
        "batch": asked.batch,
        "cpu": asked.cpu or asked.batch_cpu,
        "memory": asked.memory or asked.batch_memory,
    }


def detail(
    node: projections.Node, sums: pods.Sums, allowed: scope.Scope, shown: Mapping[str, Any]
) -> dict[str, Any]:
    """Return one node with its labels, taints and pods, and what else may be shown of it."""
    return {
        "name": node.name,
        "ready": node.schedulable,
        "labels": dict(sorted(node.labels.items())),
        "taints": [f"{one.key}={one.value or ''}:{one.effect}" for one in node.taints],
        "offered": dict(sorted(node.offered.items())),
        "pods": pods_of(sums, allowed),
        "somePodsHidden": not allowed.everywhere,
        **shown,
    }
