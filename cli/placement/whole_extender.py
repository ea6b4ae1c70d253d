"""An extender with all its plug-ins, in the state that a snapshot shows.

Plug-ins that decide by measured usage are left out where a snapshot holds no NodeMetrics; so is
Coscheduling, which refuses members without a plan: a simulation makes the plan.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec
import pydantic

from api import names, resources
from api.koordinator import devices, scheduling
from api.koordinator.settings import configuration
from api.kubernetes import dynamic_resources as dra
from api.plugin_args import models
from api.wire import base
from cli import reading
from cli.quota import cluster as clusters
from cli.quota import extender_state
from cli.snapshot import format as formats
from cli.snapshot import projection
from domain.devices import dynamic_resources, inventory
from domain.devices.requests import gpu_templates
from domain.numa import node_topology
from domain.scheduler_settings import bounded_yaml, documents, known_names
from extender import plugin_selection, registry
from extender.informers.nodes import node_metrics
from extender.scoring import traits
from extender.settings import PluginSettings
from extender.state import cluster_state, deltas, lending, records
from extender.state.reservations import reservation_claims

MEASURED: Final = frozenset({models.LOAD_AWARE})
"""Plug-ins that decide by the usage that agents report."""
PREEMPTION_SWITCH: Final = "preemption"
"""Key among the live switches: whether the extender evicts pods for others."""
_SETTINGS_KEY: Final = "settings.yaml"
_TEMPLATES_KEY: Final = "data.yaml"
_UNREADABLE: Final = (*reading.UNREADABLE, base.ReadError)
_READERS: Final = (
    (resources.NODE_RESOURCE_TOPOLOGIES, deltas.NODE_TOPOLOGY, node_topology.read),
    (
        resources.DEVICES,
        deltas.DEVICE,
        lambda raw: inventory.read(devices.read_device({**raw, "status": None})),
    ),
)
"""Objects that describe a node: the resource, the kind in the state, and how one is read."""


class UnknownPluginError(ValueError):
    """A plug-in that does not exist; names it and those that do."""


class Whole(NamedTuple):
    """The extender, and what it lacks."""

    extender: extender_state.Extender
    plugins: tuple[str, ...]
    """Those that decide here."""
    notes: tuple[str, ...] = ()


def build(
    snapshot: formats.Snapshot,
    cluster: clusters.Cluster,
    more: Iterable[str] = (),
    scoring: traits.Projector | None = None,
) -> Whole:
    """Return the extender of a snapshot; `more` are plug-ins that it is said to have as well.

    With `scoring`, what kube-scheduler's scores depend on is read as well.
    """
    notes: list[str] = []
    chosen = _chosen(snapshot, more, notes)
    is_measured = bool(snapshot.of(resources.NODE_METRICS))
    left_out = {models.COSCHEDULING} | (frozenset() if is_measured else MEASURED)
    known = registry.at_home(registry.PLUGINS, cluster.home)
    known = {name: make for name, make in known.items() if name not in left_out}
    built = registry.build(chosen, known=known)
    plugins = tuple(built.plugins.values())
    extender = extender_state.empty(
        registry.assemble(built), plugins, registry.every(built), scoring
    )
    notes += _add_lending(snapshot, extender.state)
    for node in cluster.nodes.values():
        record = reading.either(None, extender.records.node, node)
        if record is None:
            notes.append(f"Node {node.metadata.name} cannot be read and is left out")
        else:
            extender.state.apply(deltas.NodeDelta(record.name, None, record))
    extender_state.add_quotas(extender.state, cluster.forest)
    if is_measured:
        notes += _add_usage(snapshot, extender.state, registry.universe(plugins))
    notes += _add_hardware(snapshot, extender.state)
    notes += _add_templates(snapshot, extender.state)
    notes += _add_elsewhere(snapshot, extender.state)
    notes += _add_reservations(snapshot, extender.state, extender.records)
    measured = sorted(MEASURED.intersection(chosen.names()))
    if measured and not is_measured:
        notes.append(
            f"the snapshot holds no measured usage, so {' and '.join(measured)} refuses and scores "
            "nothing here"
        )
    if not clusters.enforces(snapshot, PREEMPTION_SWITCH):
        notes.append("the live switch preemption keeps the extender from evicting pods of its own")
    return Whole(extender, tuple(built.plugins), tuple(notes))


def _chosen(
    snapshot: formats.Snapshot, more: Iterable[str], notes: list[str]
) -> plugin_selection.Selection:
    """Return which plug-ins are enabled, by the settings of the process and by the ConfigMap."""
    settings = _settings(snapshot, notes)
    added = tuple(known_names.full(name) for name in more)
    present = tuple(map(known_names.full, settings.enabled))
    enabled = (*present, *(name for name in dict.fromkeys(added) if name not in present))
    settings = settings.model_copy(update={"enabled": enabled})
    try:
        registry.check(settings)
    except ValueError as error:
        raise UnknownPluginError(str(error)) from error
    written = documents.read(clusters.settings(snapshot, names.CONFIG_MAP_SCHEDULER))
    if written.settings is None:
        notes.append(f"ConfigMap {names.CONFIG_MAP_SCHEDULER} has faults and is not used")
    return plugin_selection.select(settings, written.settings or documents.NOTHING)


def _settings(snapshot: formats.Snapshot, notes: list[str]) -> PluginSettings:
    written = clusters.settings(snapshot, projection.EXTENDER_SETTINGS)
    if not written:
        notes.append(
            f"there is no ConfigMap {projection.EXTENDER_SETTINGS}, so the plug-ins are those "
            "that are enabled by default"
        )
        return PluginSettings()
    try:
        found = bounded_yaml.parse(written.get(_SETTINGS_KEY, "")) or {}
        mode = (found.get("preemption") or {}).get("mode", "enforce")
        if mode != "enforce":
            notes.append(f"preemption.mode {mode} keeps the extender from evicting pods of its own")
        return PluginSettings.model_validate(found.get("plugins") or {})
    except (pydantic.ValidationError, *_UNREADABLE):
        notes.append(
            f"ConfigMap {projection.EXTENDER_SETTINGS} cannot be read, so the plug-ins are those "
            "that are enabled by default"
        )
        return PluginSettings()


def _add_hardware(snapshot: formats.Snapshot, state: cluster_state.ClusterState) -> Iterator[str]:
    for resource, kind, read in _READERS:
        if snapshot.lacks(resource):
            yield (
                f"an older release took this snapshot, without {resource.review_name()}: take it "
                "again to count CPUs and devices"
            )
        for raw in snapshot.of(resource):
            name = raw["metadata"]["name"]
            try:
                found = read(raw)
            except _UNREADABLE:
                yield f"{resource.kind} {name} cannot be read and is left out"
                continue
            known = state.told(kind, name)
            before = None if known is None else known.after
            state.apply(deltas.ObjectDelta(kind, name, before, found, node=name))


def _add_templates(snapshot: formats.Snapshot, state: cluster_state.ClusterState) -> Iterator[str]:
    name = names.CONFIG_MAP_GPU_TEMPLATES
    text = clusters.settings(snapshot, name).get(_TEMPLATES_KEY, "")
    try:
        found = gpu_templates.read(bounded_yaml.parse(text)) if text.strip() else None
    except _UNREADABLE:
        yield f"ConfigMap {name} cannot be read and is left out"
        return
    if found is not None:
        state.apply(deltas.ObjectDelta(deltas.GPU_TEMPLATES, name, None, found))


def _add_lending(snapshot: formats.Snapshot, state: cluster_state.ClusterState) -> Iterator[str]:
    """Set what nodes lend to batch pods; before the nodes, whose figures depend on it."""
    text = clusters.settings(snapshot, names.CONFIG_MAP_SLO).get(configuration.COLOCATION, "")
    try:
        rules = lending.read(text)
    except _UNREADABLE:
        yield f"{configuration.COLOCATION} in ConfigMap {names.CONFIG_MAP_SLO} cannot be read"
        return
    state.apply(deltas.LendingDelta(state.rules(), rules))


def _add_usage(
    snapshot: formats.Snapshot, state: cluster_state.ClusterState, universe: tuple[str, ...]
) -> Iterator[str]:
    """Tell the usage that agents have reported, of the nodes that are there."""
    reader = node_metrics.Reader(universe)
    for raw in snapshot.of(resources.NODE_METRICS):
        name = raw["metadata"]["name"]
        node = state.node(name)
        try:
            told = reader.named(msgspec.convert(raw, node_metrics.NodeMetric))
        except _UNREADABLE:
            yield f"NodeMetric {name} cannot be read and is left out"
            continue
        if node is not None and node.owns(told.report):
            state.apply(deltas.ReportDelta(name, state.report(name), told.report))


def _add_elsewhere(snapshot: formats.Snapshot, state: cluster_state.ClusterState) -> Iterator[str]:
    """Count the devices that ResourceClaims hold as taken."""
    index, nodes = dynamic_resources.Index(), set[str]()
    for raw in snapshot.of(resources.RESOURCE_SLICES):
        name = raw["metadata"]["name"]
        try:
            offered = dynamic_resources.read_slice(dra.read_slice(raw))
        except _UNREADABLE:
            yield f"ResourceSlice {name} cannot be read and is left out"
            continue
        nodes |= index.slice_changed(name, offered)
    for raw in snapshot.of(resources.RESOURCE_CLAIMS):
        name = f"{raw['metadata'].get('namespace', '')}/{raw['metadata']['name']}"
        try:
            given = dynamic_resources.given(dra.read_claim(raw))
        except _UNREADABLE:
            yield f"ResourceClaim {name} cannot be read and is left out"
            continue
        nodes |= index.claim_changed(name, given)
    for node in sorted(nodes):
        if (held := index.held(node)) is not None:
            kind = deltas.DEVICES_ELSEWHERE
            state.apply(deltas.ObjectDelta(kind, node, None, held, node=node))


def _add_reservations(
    snapshot: formats.Snapshot, state: cluster_state.ClusterState, projector: records.Projector
) -> Iterator[str]:
    if snapshot.lacks(resources.RESERVATIONS):
        yield "an older release took this snapshot, without Reservations: take it again"
    for raw in snapshot.of(resources.RESERVATIONS):
        try:
            held = reservation_claims.claim(scheduling.read_reservation(raw), projector)
        except _UNREADABLE:
            yield f"Reservation {raw['metadata']['name']} cannot be read and is left out"
            continue
        if held is not None and state.claim(held.id) is None:
            state.apply(deltas.ClaimDelta(held.id, None, held))
