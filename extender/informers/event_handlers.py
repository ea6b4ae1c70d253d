"""What the extender watches, and how its events reach the cluster state."""

import dataclasses
import logging

from api import names, resources
from api.koordinator.settings import configuration
from api.kubernetes import core
from domain.scoring import objects
from extender.informers import elastic_quotas, network_topology, pod_groups, reservations
from extender.informers.configuration import gpu_templates
from extender.informers.nodes import (
    dynamic_resources,
    node_devices,
    node_metrics,
    node_objects,
    node_topologies,
)
from extender.scoring import traits
from extender.state import deltas, ledger, lending, records
from kube.informers import informer_set, pod_informer, reflector, store
from process.configuration import switches
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Informers:
    """The stores of the extender."""

    pods: store.Store[records.PodRecord]
    nodes: store.Store[records.NodeRecord]
    reports: store.Store[node_metrics.NamedReport]
    configuration: store.Store[core.ConfigMap]
    arguments: store.Store[core.ConfigMap]
    switches: store.Store[core.ConfigMap]
    templates: store.Store[core.ConfigMap] = dataclasses.field(default_factory=store.Store)
    quotas: tuple[elastic_quotas.Quotas, ...] = ()
    groups: tuple[pod_groups.PodGroups, ...] = ()
    topologies: node_topologies.Topologies = dataclasses.field(default_factory=store.Store)
    networks: network_topology.Networks = dataclasses.field(default_factory=store.Store)
    devices: node_devices.Devices = dataclasses.field(default_factory=store.Store)
    reserved: reservations.Reservations = dataclasses.field(default_factory=store.Store)
    elsewhere: dynamic_resources.Watched = dataclasses.field(
        default_factory=dynamic_resources.Watched
    )


def add(
    members: informer_set.InformerSet,
    projector: records.Projector,
    reader: node_metrics.Reader,
    namespace: str,
    pods: store.Store[records.PodRecord] | None = None,
) -> Informers:
    """Add everything that the extender watches; `pods` where a watch of all pods is there."""

    def one(name: str) -> store.Store[core.ConfigMap]:
        return members.add(reflector.config_map(name, namespace))

    return Informers(
        pods=members.add(pod_informer.projection(traits.PlacedPod, projector.pod))
        if pods is None
        else pods,
        nodes=members.add(reflector.Projection(resources.NODES, objects.Node, projector.node)),
        reports=members.add(
            reflector.Projection(resources.NODE_METRICS, node_metrics.NodeMetric, reader.named)
        ),
        configuration=one(names.CONFIG_MAP_SLO),
        arguments=one(names.CONFIG_MAP_SCHEDULER),
        switches=one(names.CONFIG_MAP_SWITCHES),
        templates=one(names.CONFIG_MAP_GPU_TEMPLATES),
        quotas=elastic_quotas.add(members),
        groups=pod_groups.add(members),
        topologies=node_topologies.add(members),
        networks=network_topology.add(members),
        devices=node_devices.add(members),
        reserved=reservations.add(members, projector),
        elsewhere=dynamic_resources.add(members),
    )


def connect(
    feeds: Informers, books: ledger.Ledger, live: switches.Switches, clock: clocks.Clock
) -> None:
    """Let every change reach the view as it arrives."""

    def report(change: store.Change[node_metrics.NamedReport]) -> None:
        books.report(change.key, change.new.report if change.new else None)

    feeds.pods.listen(lambda change: books.pod(change.old, change.new, clock.now()))
    feeds.pods.listen(_tell_unreadable)
    feeds.nodes.listen(lambda change: books.node(change.old, change.new))
    feeds.reports.listen(report)
    elastic_quotas.connect(feeds.quotas, books)
    pod_groups.connect(feeds.groups, books)
    node_objects.connect(feeds.topologies, books, deltas.NODE_TOPOLOGY)
    node_objects.connect(feeds.devices, books, deltas.DEVICE)
    feeds.reserved.listen(lambda change: books.reservations.watched(change.old, change.new))
    network_topology.connect(feeds.networks, books)
    dynamic_resources.connect(feeds.elsewhere, books)
    gpu_templates.connect(feeds.templates, books)
    feeds.configuration.listen(lambda change: _configure(books, change.new))
    feeds.switches.listen(lambda change: live.take(change.new.data if change.new else None))


def _tell_unreadable(change: store.Change[records.PodRecord]) -> None:
    """Name a bound pod whose allocations cannot be read: what it holds is not counted."""
    known = change.old.unreadable if change.old is not None else ()
    if change.new is not None and change.new.unreadable and change.new.unreadable != known:
        logger.warning(
            "allocations of a pod cannot be read pod=%s plugins=%s",
            change.key,
            ",".join(change.new.unreadable),
        )


def _configure(books: ledger.Ledger, written: core.ConfigMap | None) -> None:
    """Take in the strategy for lending; what cannot be read leaves the last one in force."""
    if written is None:
        return
    try:
        rules = lending.read(written.data.get(configuration.COLOCATION, ""))
    except (ValueError, RecursionError) as error:
        logger.warning(
            "configuration is unreadable and the last one stays in force key=%s error=%s",
            configuration.COLOCATION,
            error,
        )
        return
    books.lending(rules)
