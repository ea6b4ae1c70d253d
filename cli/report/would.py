"""What colocation would give a cluster without Koord, by the manager's own calculation. Pure.

Reports are made of metrics as agents would report them: what pods do not use of a node is the
system's. Then the manager's calculation says what every node would lend.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from api import names, resources
from api.koordinator.metadata import qos
from api.koordinator.settings import configuration
from api.kubernetes import core
from api.wire import quantity
from cli import reading
from cli.output import charts, written_reports
from cli.report import uses
from cli.simulation import lent
from cli.snapshot import format as formats
from domain import wording
from domain.pods import resources as amounts

_GIB: Final = 1 << 30
_MOST_TEAMS: Final = 200
_MOST_BARS: Final = 12
_OTHERS: Final = "(others)"


@dataclasses.dataclass(frozen=True, slots=True)
class Team:
    """The pods of one namespace."""

    name: str
    pods: int
    requested: uses.Use
    used: uses.Use
    """Of those pods that are measured; the others count with their requests."""

    @property
    def left(self) -> uses.Use:
        """What it requests and does not use."""
        cpu = max(self.requested.cpu - self.used.cpu, 0)
        return uses.Use(cpu, max(self.requested.memory - self.used.memory, 0))


@dataclasses.dataclass(frozen=True, slots=True)
class Would:
    """What colocation would give."""

    said: str
    nodes: int
    allocatable: uses.Use
    requested: uses.Use
    used: uses.Use
    lent: lent.Lent
    teams: tuple[Team, ...]
    notes: tuple[str, ...]


def reported(snapshot: formats.Snapshot, measured: uses.Measured) -> formats.Snapshot:
    """Return the snapshot with the reports that agents would have made of these figures."""
    kind = resources.NODE_METRICS
    placed: dict[str, list[core.Pod]] = {}
    for pod in _pods(snapshot):
        if pod.spec.node_name:
            placed.setdefault(pod.spec.node_name, []).append(pod)
    made = []
    for raw in snapshot.of(resources.NODES):
        name = raw["metadata"]["name"]
        pods = [
            (pod, measured.pods[pod.metadata.key])
            for pod in placed.get(name, ())
            if pod.metadata.key in measured.pods
        ]
        total = uses.NOTHING
        for _, use in pods:
            total = total.plus(use)
        # Where nothing is known of the node, its pods are all there is.
        node = measured.nodes.get(name, total)
        system = uses.Use(max(node.cpu - total.cpu, 0), max(node.memory - total.memory, 0))
        status = {
            "updateTime": snapshot.taken_at,
            "nodeMetric": {"nodeUsage": _resources(node), "systemUsage": _resources(system)},
            "podsMetric": [
                {
                    "namespace": pod.metadata.namespace,
                    "name": pod.metadata.name,
                    "priority": str(qos.band_of_pod(pod)),
                    "podUsage": _resources(use),
                }
                for pod, use in pods
            ],
        }
        head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
        made.append({**head, "status": status})
    objects = {**snapshot.objects, kind.review_name(): tuple(made)}
    return msgspec.structs.replace(snapshot, objects=objects)


def _resources(use: uses.Use) -> dict[str, Any]:
    return {"resources": quantity.texts({names.CPU: use.cpu, names.MEMORY: use.memory})}


def switched_on(snapshot: formats.Snapshot) -> formats.Snapshot:
    """Return the snapshot with lending on, by its settings where there are any, else by default."""
    data = dict(lent.settings(snapshot) or {})
    text = data.get(configuration.COLOCATION) or "{}"
    written: Any = reading.either(None, json.loads, text)
    strategy = {**(written if isinstance(written, Mapping) else {}), "enable": True}
    data[configuration.COLOCATION] = json.dumps(strategy)
    made = {"metadata": {"name": names.CONFIG_MAP_SLO}, "data": data}
    others = tuple(
        one
        for one in snapshot.of(resources.CONFIG_MAPS)
        if one["metadata"]["name"] != names.CONFIG_MAP_SLO
    )
    objects = {**snapshot.objects, resources.CONFIG_MAPS.review_name(): (*others, made)}
    return msgspec.structs.replace(snapshot, objects=objects)


def calculated(snapshot: formats.Snapshot, measured: uses.Measured) -> Would:
    """Return what the nodes of a snapshot would lend with these figures."""
    given = lent.calculated(reported(switched_on(snapshot), measured))
    teams = tuple(_teams(snapshot, measured))
    requested = used = uses.NOTHING
    for team in teams:
        requested, used = requested.plus(team.requested), used.plus(team.used)
    nodes = [_allocatable(raw) for raw in snapshot.of(resources.NODES)]
    allocatable = uses.NOTHING
    for one in nodes:
        allocatable = allocatable.plus(one)
    notes = list(given.problems)
    lacking = len(nodes) - sum(
        1 for raw in snapshot.of(resources.NODES) if raw["metadata"]["name"] in measured.nodes
    )
    if lacking:
        notes.append(
            f"of {wording.count(lacking, 'node', 'nodes')} only the pods are measured: use of "
            f"{wording.form(lacking, 'its system', 'their systems')} is not taken off"
        )
    return Would(
        measured.said, len(nodes), allocatable, requested, used, given, teams, tuple(notes)
    )


def _pods(snapshot: formats.Snapshot) -> Iterator[core.Pod]:
    for raw in snapshot.of(resources.PODS):
        pod = reading.either(None, msgspec.convert, raw, core.Pod)
        if pod is not None and not pod.finished:
            yield pod


def _allocatable(raw: formats.Raw) -> uses.Use:
    node = reading.either(core.Node(), msgspec.convert, raw, core.Node)
    found = reading.either({}, amounts.node_allocatable, node)
    return uses.Use(found.get(names.CPU, 0), found.get(names.MEMORY, 0))


def _teams(snapshot: formats.Snapshot, measured: uses.Measured) -> Iterator[Team]:
    """Yield the namespaces, the one that leaves most first; small ones together."""
    sums: dict[str, tuple[int, uses.Use, uses.Use]] = {}
    for pod in _pods(snapshot):
        if not pod.spec.node_name:
            continue
        found = reading.either({}, amounts.pod_requests, pod)
        asked = uses.Use(found.get(names.CPU, 0), found.get(names.MEMORY, 0))
        use = measured.pods.get(pod.metadata.key, asked)
        count, requested, used = sums.get(pod.metadata.namespace, (0, uses.NOTHING, uses.NOTHING))
        sums[pod.metadata.namespace] = count + 1, requested.plus(asked), used.plus(use)
    teams = [Team(name, *parts) for name, parts in sums.items()]
    teams.sort(key=lambda one: (-one.left.cpu, one.name))
    yield from teams[:_MOST_TEAMS]
    rest = teams[_MOST_TEAMS:]
    if rest:
        requested = used = uses.NOTHING
        for one in rest:
            requested, used = requested.plus(one.requested), used.plus(one.used)
        yield Team(_OTHERS, sum(one.pods for one in rest), requested, used)


# -- as a report -----------------------------------------------------------------------------


def report(found: Would) -> written_reports.Report:
    """Return it as a report."""
    bars = [
        (one.name, {"requested": one.requested.cpu / 1000, "used": one.used.cpu / 1000})
        for one in found.teams[:_MOST_BARS]
    ]
    return written_reports.Report(
        "What colocation would give",
        tuple(_sentences(found)),
        (_of_teams(found), _of_nodes(found)),
        (charts.bars("Cores that teams request and use", "cores", bars),) if bars else (),
        found.notes,
    )


def _sentences(found: Would) -> Iterator[str]:
    cpu, memory = (found.lent.total(name) for name in names.BATCH_RESOURCES)
    percent = 100 / (found.allocatable.cpu or 1)
    average = found.allocatable.cpu / found.nodes if found.nodes else 0.0
    yield f"Measured: {found.said}."
    yield (
        f"{wording.count(found.nodes, 'node offers', 'nodes offer')} "
        f"{_cores(found.allocatable.cpu)} cores; "
        f"{percent * found.requested.cpu:.0f} % are requested and "
        f"{percent * found.used.cpu:.0f} % used."
    )
    yield (
        f"Colocation would lend {_cores(cpu)} cores and {_gib(memory)} GiB to batch pods, as much "
        f"as {cpu / average if average else 0.0:.1f} nodes of average size have."
    )


def _of_teams(found: Would) -> written_reports.Table:
    rows = []
    for one in found.teams:
        cpu = (_cores(part.cpu) for part in (one.requested, one.used, one.left))
        memory = (_gib(part.memory) for part in (one.requested, one.used, one.left))
        rows.append((one.name, str(one.pods), *cpu, *memory))
    head = (
        "NAMESPACE", "PODS", "REQUESTED CORES", "USED CORES", "LEFT CORES", "REQUESTED GIB",
        "USED GIB", "LEFT GIB",
    )  # fmt: skip
    return written_reports.Table("What teams leave", head, tuple(rows))


def _of_nodes(found: Would) -> written_reports.Table:
    rows = (
        (node, _cores(lends.get(names.BATCH_CPU, 0)), _gib(lends.get(names.BATCH_MEMORY, 0)))
        for node, lends in sorted(found.lent.nodes.items())
    )
    head = ("NODE", "BATCH CORES", "BATCH GIB")
    return written_reports.Table("What nodes would lend", head, tuple(rows))


def _cores(milli: float) -> str:
    return f"{milli / 1000:.1f}"


def _gib(size: float) -> str:
    return f"{size / _GIB:.1f}"


def document(found: Would) -> dict[str, Any]:
    """Return it for programs: thousandths of a core, and bytes."""
    return {
        "measured": found.said,
        "nodes": found.nodes,
        "allocatable": found.allocatable._asdict(),
        "requested": found.requested._asdict(),
        "used": found.used._asdict(),
        "lent": {node: dict(lends) for node, lends in found.lent.nodes.items()},
        "teams": [
            {
                "name": one.name,
                "pods": one.pods,
                "requested": one.requested._asdict(),
                "used": one.used._asdict(),
                "left": one.left._asdict(),
            }
            for one in found.teams
        ],
        "notes": list(found.notes),
    }
