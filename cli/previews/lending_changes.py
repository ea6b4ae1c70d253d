"""What other cluster settings would lend, node by node, by the manager's own functions."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cli import reading
from cli.doctor.checkup import facts
from cli.explain import lending_breakdown
from domain import wording
from manager.cluster_settings import plan as cluster_settings
from process.runtime import clock as clocks

Raw = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One lent resource of one node, in milli-cores or bytes."""

    node: str
    resource: str
    before: int
    after: int


@dataclasses.dataclass(frozen=True, slots=True)
class Changes:
    """What differs, and what could not be told."""

    changes: tuple[Change, ...]
    nodes: int
    problems: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """What lending is calculated from."""

    nodes: Sequence[Raw]
    pods: Sequence[Raw]
    metrics: Sequence[Raw]


def compared(
    cluster: Cluster,
    before: Mapping[str, str] | None,
    after: Mapping[str, str] | None,
    clock: clocks.Clock,
) -> Changes:
    """Calculate every node with the settings that hold and with those that are asked for."""
    pods: dict[str, list[Raw]] = {}
    for pod in cluster.pods:
        pods.setdefault(_node_of(pod), []).append(pod)
    metrics = {reading.either("", facts.name, raw): raw for raw in cluster.metrics}
    found: list[Change] = []
    problems = [problem.sentence for problem in cluster_settings.read(None, after).problems]
    for node in cluster.nodes:
        name = reading.either("", facts.name, node)
        known = (node, pods.get(name, []), metrics.get(name))
        both = [
            reading.either(None, lending_breakdown.explained, *known, settings, clock)
            for settings in (before, after)
        ]
        if both[0] is None or both[1] is None:
            problems.append(f"Node {name or 'without a name'} cannot be read and is left out")
            continue
        found += _differences(name, _offered(both[0]), _offered(both[1]))
    return Changes(tuple(found), len(cluster.nodes), tuple(problems))


def _node_of(pod: Raw) -> str:
    spec = pod.get("spec")
    return str((spec if isinstance(spec, Mapping) else {}).get("nodeName") or "")


def _offered(document: Mapping[str, Any]) -> dict[str, int]:
    return {one["resource"]: one["offered"] for one in document["resources"]}


def _differences(
    node: str, before: Mapping[str, int], after: Mapping[str, int]
) -> Iterator[Change]:
    for resource in sorted({*before, *after}):
        old, new = before.get(resource, 0), after.get(resource, 0)
        if old != new:
            yield Change(node, resource, old, new)


def amount(resource: str, value: int) -> str:
    """Write an amount for people."""
    if resource.endswith("cpu"):
        return f"{value / 1000:.1f}"
    return f"{value / 2**30:.1f}Gi"


def lines(found: Changes) -> Iterator[str]:
    """Yield what differs for people."""
    nodes = {change.node for change in found.changes}
    every = wording.count(found.nodes, "node", "nodes")
    yield f"cluster settings: {len(nodes)} of {every} would lend other amounts"
    for change in found.changes:
        old, new = amount(change.resource, change.before), amount(change.resource, change.after)
        sign = "+" if change.after > change.before else "-"
        moved = amount(change.resource, abs(change.after - change.before))
        yield f"  {change.node}  {change.resource}  {old} -> {new}  ({sign}{moved})"
    yield from (f"  problem: {problem}" for problem in found.problems)


def document(found: Changes) -> dict[str, Any]:
    """Return the same for programs."""
    return dataclasses.asdict(found)
