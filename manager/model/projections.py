"""What the manager keeps of the objects it watches: small, comparable, already calculated.

A change that a view does not show is no news to any controller, so node heartbeats cost nothing.
"""

from collections.abc import Container, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from api import names
from api.koordinator.metadata import annotations as payloads
from api.koordinator.metadata import qos
from api.koordinator.metrics import nodemetric
from api.kubernetes import core
from api.wire import quantity
from domain.cpus import cpulists
from domain.daily_sums import effects
from domain.devices import pod_holdings
from domain.devices.requests import accelerators, network
from domain.lending import colocation, node_capability
from domain.pods import resources
from manager.model import origins
from manager.reconcile import node_objects

ANNOTATIONS: Final = (
    names.ANNOTATION_COLOCATION_STRATEGY,
    names.ANNOTATION_NETWORK_BANDWIDTH,
    names.ANNOTATION_CPU_NORMALIZATION,
    names.ANNOTATION_AMPLIFICATION,
    names.ANNOTATION_THIRD_PARTY,
    names.ANNOTATION_ORIGIN_ALLOCATABLE,
    names.ANNOTATION_DEVICES_OFFERED,
)
_KEEPS_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})
_LENDS_NOTHING: Final = '{"enable":false}'
MANAGED: Final = (
    *names.BATCH_RESOURCES,
    *names.MID_RESOURCES,
    *accelerators.RESOURCES,
    *network.RESOURCES,
)
"""The resources that this process writes into the status of nodes."""


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node as far as lending and its settings are concerned."""

    name: str
    uid: str
    labels: dict[str, str]
    annotations: dict[str, str]
    """Only those that bear on what is written for the node."""
    capacity: colocation.Amount | None
    """None while the node has not said what it has."""
    allocatable: colocation.Amount
    reserved: colocation.Amount
    """Kept back by the kubelet or by annotation, the larger of the two."""
    published: tuple[dict[str, int], dict[str, int]]
    """Those of ours that stand in capacity and in allocatable."""
    offered: dict[str, int] = {}
    """Everything that is allocatable."""
    schedulable: bool = True
    """Whether it is ready and open for pods."""
    taints: tuple[core.Taint, ...] = ()
    """Those that keep pods away that do not tolerate them."""


class Fault(NamedTuple):
    """Something wrong with a pod that admission cannot have seen."""

    kind: str
    note: str


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod that holds resources of a node, or has a fault."""

    node: str
    """Empty while it waits."""
    band: qos.Band
    request: colocation.Amount
    exclusive: bool
    """Whether its cpu is its own, used or not."""
    zones: tuple[int, ...] = ()
    """The NUMA zones it is bound to; empty where it may run on all of them."""
    faults: tuple[Fault, ...] = ()
    uid: str = ""
    """Known of pods with faults only."""
    origin: origins.Origin | None = None
    """Where it comes from; None while it waits."""
    devices: pod_holdings.Holding | None = None
    """What it was given of the devices of its node."""


class Report(msgspec.Struct, frozen=True, gc=False):
    """What the agent of a node measured last."""

    updated_at: float | None
    system: colocation.Amount
    """Use outside pods and host applications."""
    pods: dict[str, tuple[colocation.Amount, qos.Band]]
    """Use and reported band by namespace/name."""
    hosts: colocation.Amount = colocation.NOTHING
    """Use of host applications that serve online traffic, mid ones included."""
    prod_hosts: colocation.Amount = colocation.NOTHING
    """The same without mid ones."""
    usage: colocation.Amount | None = None
    """Use of the whole node; None unless both cpu and memory are reported."""
    reclaimable: colocation.Amount = colocation.NOTHING
    """What online pods have requested and are predicted not to use."""
    scorecard: effects.Card | None = None
    """What the agent says that it did today; nothing of it is checked."""
    measured: bool = True
    """Whether the report holds any figures of the node."""
    containers: dict[str, dict[str, colocation.Amount]] = {}
    """Use by namespace/name and container, of pods in namespaces that a Recommendation names."""

    @property
    def outside(self) -> colocation.Amount:
        """Use outside pods as batch pods see it."""
        return self.system.plus(self.hosts)


class Metric(msgspec.Struct, frozen=True, gc=False):
    """A NodeMetric: its settings, which we write, and its figures, which the agent writes."""

    present: node_objects.Present
    report: Report


def node(raw: core.Node) -> Node:
    """Project a node."""
    status, metadata = raw.status, raw.metadata
    known = bool(status.capacity and status.allocatable)
    capacity, allocatable = _amount(status.capacity), _amount(status.allocatable)
    kept = capacity.minus(_true(metadata.annotations, allocatable)).most(colocation.NOTHING)
    return Node(
        name=metadata.name,
        uid=metadata.uid,
        labels=metadata.labels,
        annotations=_kept(metadata.annotations),
        capacity=capacity if known else None,
        allocatable=allocatable,
        reserved=kept.most(_reserved(metadata.annotations)),
        published=(_managed(status.capacity), _managed(status.allocatable)),
        offered=resources.node_allocatable(raw),
        schedulable=raw.ready and not raw.spec.unschedulable,
        taints=tuple(one for one in raw.spec.taints if one.effect in _KEEPS_AWAY),
    )


def _kept(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what bears on lending; a node that could not take it back lends nothing."""
    kept = {key: annotations[key] for key in ANNOTATIONS if key in annotations}
    if why := node_capability.broken(annotations):
        kept[names.ANNOTATION_COLOCATION_STRATEGY] = _LENDS_NOTHING
        kept[names.ANNOTATION_STRATEGIES] = why
    return kept


def _true(annotations: Mapping[str, str], allocatable: colocation.Amount) -> colocation.Amount:
    """Return what the kubelet offers, where the node offers more than it has."""
    try:
        raw = payloads.RAW_ALLOCATABLE.read(annotations)
    except ValueError:
        return allocatable
    if not raw:
        return allocatable
    return colocation.Amount(
        quantity.milli(raw[names.CPU]) if names.CPU in raw else allocatable.cpu,
        quantity.whole(raw[names.MEMORY]) if names.MEMORY in raw else allocatable.memory,
    )


def _reserved(annotations: Mapping[str, str]) -> colocation.Amount:
    """Read what the owner of a node keeps back; an unreadable annotation counts as none."""
    try:
        written = payloads.NODE_RESERVATION.read(annotations)
        if written is None:
            return colocation.NOTHING
        kept = _amount(written.resources)
        cpus = written.reserved_cpus
        return kept._replace(cpu=len(cpulists.parse(cpus)) * 1000) if cpus else kept
    except ValueError:
        return colocation.NOTHING


def pod(raw: core.Pod) -> Pod | None:
    """Project a pod; one that is not placed, or is over, holds nothing."""
    if not raw.spec.node_name or raw.status.phase not in {"Running", "Pending"}:
        return None
    requests = resources.pod_requests(raw)
    return Pod(
        node=raw.spec.node_name,
        band=qos.band_of_pod(raw),
        request=colocation.Amount(requests.get(names.CPU, 0), requests.get(names.MEMORY, 0)),
        exclusive=qos.of_pod(raw) is qos.QoS.LSE,
        zones=_zones(raw.metadata.annotations),
        origin=origins.of(raw),
        devices=pod_holdings.holding(raw),
    )


def _amount(written: Mapping[str, quantity.Written]) -> colocation.Amount:
    return colocation.Amount(
        quantity.milli(written.get(names.CPU, 0)), quantity.whole(written.get(names.MEMORY, 0))
    )


def _managed(written: Mapping[str, quantity.Written]) -> dict[str, int]:
    return {name: quantity.whole(written[name]) for name in MANAGED if name in written}


def _zones(annotations: Mapping[str, str]) -> tuple[int, ...]:
    """Read to which NUMA zones a pod was bound; who cannot read it takes it for unbound."""
    try:
        written = payloads.RESOURCE_STATUS.read(annotations)
    except ValueError:
        return ()
    return tuple(part.node for part in written.numa_node_resources or ()) if written else ()


def metric(raw: Mapping[str, Any], asked: Container[str] = ()) -> Metric:
    """Project a NodeMetric; of pods in the namespaces that are asked for, by container."""
    return Metric(node_objects.present(raw), report(raw, asked))


def report(raw: Mapping[str, Any], asked: Container[str] = ()) -> Report:
    """Project the figures of a NodeMetric."""
    status = nodemetric.read_node_metric(raw).status
    node = status.node_metric
    hosts = {qos.Band.PROD: colocation.NOTHING, qos.Band.MID: colocation.NOTHING}
    for application in status.host_application_metric:
        band = _band(application.priority)
        if band in hosts:
            hosts[band] = hosts[band].plus(_usage(application.usage))
    predicted = status.prod_reclaimable_metric
    return Report(
        updated_at=status.update_time,
        system=_usage(node.system_usage) if node else colocation.NOTHING,
        pods={
            f"{item.namespace}/{item.name}": (_usage(item.pod_usage), _band(item.priority))
            for item in status.pods_metric
        },
        hosts=hosts[qos.Band.PROD].plus(hosts[qos.Band.MID]),
        prod_hosts=hosts[qos.Band.PROD],
        usage=_complete(node.node_usage) if node else None,
        reclaimable=_usage(predicted.resource) if predicted else colocation.NOTHING,
        scorecard=effects.card(status.scorecard),
        measured=node is not None,
        containers={
            f"{pod.pod_ref.namespace}/{pod.pod_ref.name}": {
                container.name: _amount(container.usage) for container in pod.containers
            }
            for pod in status.pod_metrics
            if pod.pod_ref.namespace in asked
        },
    )


def _complete(figures: nodemetric.ResourceMap) -> colocation.Amount | None:
    known = figures.resources.keys() >= {names.CPU, names.MEMORY}
    return _usage(figures) if known else None


def _band(written: str) -> qos.Band:
    try:
        return qos.Band(written)
    except ValueError:
        return qos.Band.NONE


def _usage(figures: nodemetric.ResourceMap) -> colocation.Amount:
    return _amount(figures.resources)
