"""The state of the cluster in one picture: what nodes have, request, use and lend."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from api import names
from api.koordinator.metadata import qos
from api.koordinator.metrics import nodemetric
from api.kubernetes import core
from api.wire import quantity
from cli import reading
from cli.doctor import live_switches
from cli.quota import table
from cli.report import agents
from cli.view import scheduler_arguments
from domain.daily_sums import sums
from domain.pods import pending_reason, resources

MEMORY = "memory"
MOST_NODES = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Gauge:
    """One resource of a node, cpu in milli-cores and memory in bytes."""

    capacity: int
    requested: int
    """Requested by pods that are not batch."""
    used: int | None
    """Measured, None where nothing is reported."""
    lent: int
    """May be used by batch pods."""
    borrowed: int
    """Requested by batch pods that run there."""


@dataclasses.dataclass(frozen=True, slots=True)
class NodeRow:
    """One node."""

    name: str
    ready: bool
    cpu: Gauge
    memory: Gauge
    pods: int


@dataclasses.dataclass(frozen=True, slots=True)
class PendingRow:
    """A pod without a node, and why."""

    key: str
    qos: str
    asks: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """What `koord status` and the live view show."""

    nodes: tuple[NodeRow, ...]
    pending: tuple[PendingRow, ...]
    running: int
    batch_running: int
    switched: tuple[str, ...] = ()
    """What the live switches say."""
    configured: tuple[str, ...] = ()
    """The arguments of the extender's plug-ins."""
    quotas: tuple[table.Row, ...] = ()
    """ElasticQuotas of all groups."""
    agents: tuple[str, ...] = ()
    """What agents did on the latest day, by the daily sums of the manager."""
    unreadable: tuple[str, ...] = ()
    """Objects of an unexpected shape, which are left out."""
    forbidden: tuple[str, ...] = ()
    """What is not shown because the user may not read it."""


class Maps(NamedTuple):
    """Data of configuration maps; empty where there is none or it may not be read."""

    switches: Mapping[str, str] = {}
    arguments: Mapping[str, str] = {}
    sums: Mapping[str, str] = {}


class _Seen(NamedTuple):
    """A pod and what it asks for."""

    pod: core.Pod
    asked: Mapping[str, int]
    batch: bool


def _seen(pod: core.Pod) -> _Seen:
    return _Seen(pod, resources.pod_requests(pod), qos.band_of_pod(pod) is qos.Band.BATCH)


def take(
    nodes: Sequence[core.Node],
    pods: Sequence[core.Pod],
    metrics: Mapping[str, nodemetric.NodeMetric],
    maps: Maps = Maps(),  # noqa: B008 - immutable
    odd: Iterable[str] = (),
) -> Picture:
    """Put nodes, pods, reports (by node name) and configuration maps into one picture.

    `odd` names objects that could not be read; one whose figures cannot be read joins them.
    """
    left_out = list(odd)
    bound: dict[str, list[_Seen]] = {}
    pending: list[_Seen] = []
    for pod in pods:
        if pod.finished:
            continue
        seen = reading.either(None, _seen, pod)
        if seen is None:
            left_out.append(f"Pod {pod.metadata.key}")
        elif pod.spec.node_name:
            bound.setdefault(pod.spec.node_name, []).append(seen)
        else:
            pending.append(seen)
    rows = []
    for node in nodes:
        row = reading.either(None, _node, node, bound.get(node.metadata.name, []), metrics)
        if row is None:
            left_out.append(f"Node {node.metadata.name}")
        else:
            rows.append(row)
    placed = [seen for group in bound.values() for seen in group]
    return Picture(
        nodes=tuple(sorted(rows, key=lambda row: row.name)),
        pending=tuple(sorted((_pending(seen, rows) for seen in pending), key=lambda row: row.key)),
        running=len(placed),
        batch_running=sum(1 for seen in placed if seen.batch),
        switched=_switched(maps.switches, nodes),
        configured=scheduler_arguments.told(maps.arguments),
        agents=tuple(_agents(maps.sums)),
        unreadable=tuple(left_out),
    )


def only(
    picture: Picture,
    nodes: Collection[tuple[str, str]] | None,
    holds: Callable[[str], bool],
) -> Picture:
    """Return what a picture says of these nodes, None for all, and of the namespaces that hold."""
    return dataclasses.replace(
        picture,
        nodes=tuple(row for row in picture.nodes if nodes is None or ("", row.name) in nodes),
        pending=tuple(row for row in picture.pending if holds(row.key.partition("/")[0])),
        quotas=tuple(row for row in picture.quotas if holds(row.namespace)),
    )


def _switched(switches: Mapping[str, str], nodes: Sequence[core.Node]) -> tuple[str, ...]:
    labels = {node.metadata.name: node.metadata.labels for node in nodes}
    said, unknown = live_switches.told(switches, labels)
    return (*said, *(f"{sentence} (this changes nothing)" for sentence in unknown))


def _agents(data: Mapping[str, str]) -> Iterator[str]:
    """Yield what agents did on the latest day; nothing where the sums cannot be read."""
    for day in reading.either((), sums.read, data)[-1:]:
        for said in agents.sentences([(day.date, day.agents)]):
            yield f"{day.date} (UTC): {said}"


def _node(
    node: core.Node, pods: Sequence[_Seen], metrics: Mapping[str, nodemetric.NodeMetric]
) -> NodeRow:
    requested: dict[str, int] = {}
    for seen in pods:
        requested = resources.add(requested, seen.asked)
    offered = resources.node_allocatable(node)
    used = reading.either(None, _used, metrics.get(node.metadata.name))
    return NodeRow(
        name=node.metadata.name,
        ready=node.ready,
        cpu=_gauge(names.CPU, names.BATCH_CPU, offered, requested, used),
        memory=_gauge(MEMORY, names.BATCH_MEMORY, offered, requested, used),
        pods=len(pods),
    )


def _gauge(
    native: str,
    batch: str,
    offered: Mapping[str, int],
    requested: Mapping[str, int],
    used: Mapping[str, int] | None,
) -> Gauge:
    return Gauge(
        capacity=offered.get(native, 0),
        requested=requested.get(native, 0),
        used=None if used is None else used.get(native, 0),
        lent=offered.get(batch, 0),
        borrowed=requested.get(batch, 0),
    )


def _used(metric: nodemetric.NodeMetric | None) -> dict[str, int] | None:
    if metric is None or metric.status.node_metric is None:
        return None
    usage = metric.status.node_metric.node_usage
    return {name: quantity.amount(name, value) for name, value in usage.resources.items()}


def _pending(seen: _Seen, rows: Iterable[NodeRow]) -> PendingRow:
    pod, asked = seen.pod, seen.asked
    reason = pending_reason.of(pod).text
    if pod.status.condition("PodScheduled") is not None and not pod.spec.scheduling_gates:
        # The scheduler only says that it is not enough.
        reason += _free_to_batch(rows) if asked.get(names.BATCH_CPU) else ""
    return PendingRow(pod.metadata.key, str(qos.of_pod(pod)), _asks(asked), reason)


def _free_to_batch(rows: Iterable[NodeRow]) -> str:
    """Say where there is how much."""
    free = sorted(rows, key=lambda row: row.cpu.borrowed - row.cpu.lent)[:MOST_NODES]
    parts = (f"{row.name} {cores(row.cpu.lent - row.cpu.borrowed)}" for row in free)
    return f" Free batch cores: {', '.join(parts)}."


def _asks(asked: Mapping[str, int]) -> str:
    shown = {
        "cpu": asked.get(names.CPU, 0) or asked.get(names.BATCH_CPU, 0),
        "memory": asked.get(MEMORY, 0) or asked.get(names.BATCH_MEMORY, 0),
    }
    kind = "batch " if asked.get(names.BATCH_CPU) or asked.get(names.BATCH_MEMORY) else ""
    return f"{kind}{cores(shown['cpu'])} cores, {gibibytes(shown['memory'])}"


def cores(milli: int) -> str:
    """Write milli-cores as cores with one digit."""
    return f"{milli / 1000:.1f}"


def gibibytes(amount: int) -> str:
    """Write bytes as GiB with one digit."""
    return f"{amount / 2**30:.1f}Gi"


def hidden(picture: Picture) -> Iterator[str]:
    """Yield a sentence that names what the user may not read; none where nothing is hidden."""
    if picture.forbidden:
        yield f"not shown, because you may not read it: {', '.join(picture.forbidden)}"


def as_json(picture: Picture) -> dict[str, Any]:
    """Return the picture as plain data, cpu in milli-cores and memory in bytes."""
    plain = dataclasses.asdict(dataclasses.replace(picture, quotas=()))
    return plain | {"quotas": table.document(picture.quotas, ())["items"]}
