"""What load-aware placement adds up on a node, for people; in the shape of Koordinator's page."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from api.wire import durations
from domain.usage import load
from extender.framework import views

_SUMS = {
    "prodUsage": "prod_usage",
    "nodeDelta": "node_delta",
    "prodDelta": "prod_delta",
    "nodeEstimated": "node_estimated",
}


class Counting(Protocol):
    """The part of the plug-in that adds up."""

    universe: tuple[str, ...]

    def report(self, facts: views.NodeInfo) -> load.Report | None:
        """Return the report of a node."""

    def sums(self, facts: views.NodeInfo) -> load.Sums | None:
        """Return what the pods of a node add to it."""

    def resident(self, pod: views.PodRecord) -> load.Resident:
        """Return what matters of a pod."""


def counted(plugin: Counting, facts: views.NodeInfo) -> dict[str, Any]:
    """Return the pods of a node in the order in which they came, and what they add."""
    pods = sorted(facts.pods, key=lambda pod: (pod.assigned_at, pod.key))
    seen: dict[str, Any] = {
        "pods": [
            {"timestamp": durations.moment(int(pod.assigned_at)), "pod": pod.key} for pod in pods
        ]
    }
    report, sums = plugin.report(facts), plugin.sums(facts)
    if report is None or sums is None:
        return seen
    there = tuple(map(plugin.resident, facts.pods))
    for key, attribute in _SUMS.items():
        seen[key] = dict(zip(plugin.universe, getattr(sums, attribute), strict=True))
        if attribute != "prod_usage":
            width = len(plugin.universe)
            seen[f"{key}Pods"] = _contributors(width, report, there, attribute)
    return seen


def inspected(plugin: Counting, facts: views.NodeInfo, profile: load.Profile) -> dict[str, Any]:
    """Return the same beside what was measured, the totals and the thresholds."""
    report = plugin.report(facts)
    seen = counted(plugin, facts) | {
        "total": dict(zip(plugin.universe, _total(plugin, facts), strict=True)),
        "thresholds": _thresholds(profile),
    }
    if report is None or report.usage is None:
        return seen
    return seen | {
        "measured": dict(zip(plugin.universe, report.usage, strict=True)),
        "measuredAt": report.updated_at and durations.moment(int(report.updated_at)),
    }


def _total(plugin: Counting, facts: views.NodeInfo) -> load.Vector:
    return load.vector(dict(facts.node.total), plugin.universe)


def _contributors(
    width: int, report: load.Report, there: Sequence[load.Resident], attribute: str
) -> list[str]:
    def adds(resident: load.Resident) -> bool:
        alone = load.accumulate(report, (resident,), width, include_system=False)
        return any(getattr(alone, attribute))

    return sorted(resident.key for resident in there if adds(resident))


def _thresholds(profile: load.Profile) -> Mapping[str, Any]:
    """Return the percentages that hold on a node, by the kind of pod that is compared."""
    shown: dict[str, Any] = {}
    for name, prod in (("prod", True), ("others", False)):
        group, compares_prod = profile.chosen(prod=prod)
        shown[name] = {
            "percent": {resource: value for resource, value in group.percent.items() if value},
            "aggregation": group.kind,
            "comparedWith": "usage of prod pods" if compares_prod else "usage of the node",
        }
    return shown
