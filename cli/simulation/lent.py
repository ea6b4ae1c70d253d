"""What the nodes of a snapshot would lend, by the manager's own calculation. Pure."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from api import names, resources
from api.kubernetes import core
from api.wire import base, durations, quantity
from cli import reading
from cli.snapshot import format as formats
from domain.devices.requests import accelerators
from kube.informers import store
from manager.cluster_settings import effective
from manager.cluster_settings import plan as cluster_settings
from manager.model import projections
from manager.overcommit import columns, inventory, sweep

Amounts = Mapping[str, int]
"""By resource: thousandths of a core, bytes."""
Read = Callable[[Mapping[str, Any]], Any]

RESOURCES: Final = (*names.BATCH_RESOURCES, *names.MID_RESOURCES)
"""The lent resources, in the order in which the manager calculates it."""
_AMOUNTS: Final = ("capacity", "allocatable")
_UNREADABLE: Final = (*reading.UNREADABLE, base.ReadError)


@dataclasses.dataclass(frozen=True, slots=True)
class Lent:
    """What every node lends at one moment."""

    nodes: Mapping[str, Amounts]
    """By node; a node that lends nothing has no amounts."""
    problems: tuple[str, ...] = ()
    """What could not be read, or is wrong in the settings."""

    def total(self, resource: str) -> int:
        """Return the sum over all nodes."""
        return sum(amounts.get(resource, 0) for amounts in self.nodes.values())


def calculated(snapshot: formats.Snapshot) -> Lent:
    """Calculate what the manager publishes for every node, by the settings of the snapshot."""
    problems: list[str] = []
    read = cluster_settings.read(None, settings(snapshot))
    problems += [one.sentence for one in read.problems]
    usable = effective.usable(read.settings)
    if usable is None:
        problems.append(f"ConfigMap {names.CONFIG_MAP_SLO} cannot be used: correct it first")
        return Lent({}, tuple(problems))
    sources = _sources(snapshot, problems)
    now = reading.either(0.0, durations.timestamp, snapshot.taken_at)
    picture = sweep.Sweep(sources).picture(usable, now)
    found = {}
    for at, node in enumerate(picture.nodes):
        amounts = zip(RESOURCES, picture.offered[:, at].tolist(), strict=True)
        found[node.name] = {name: value for name, value in amounts if value != columns.MISSING}
    return Lent(found, tuple(problems))


def published(snapshot: formats.Snapshot, lent: Lent) -> formats.Snapshot:
    """Return the snapshot as it is once the manager has written these amounts."""
    nodes = tuple(_written(raw, lent.nodes) for raw in snapshot.of(resources.NODES))
    objects = {**snapshot.objects, resources.NODES.review_name(): nodes}
    return msgspec.structs.replace(snapshot, objects=objects)


def _written(raw: formats.Raw, lent: Mapping[str, Amounts]) -> formats.Raw:
    name, status = raw["metadata"]["name"], raw.get("status") or {}
    if name not in lent or not isinstance(status, dict):
        return raw
    amounts = {key: quantity.text(key, value) for key, value in lent[name].items()}
    held = {part: reading.either({}, dict, status.get(part) or {}) for part in _AMOUNTS}
    parts = {
        part: {k: v for k, v in there.items() if k not in RESOURCES} | amounts
        for part, there in held.items()
    }
    return {**raw, "status": {**status, **parts}}


def settings(snapshot: formats.Snapshot) -> Mapping[str, str] | None:
    """Return the cluster settings, None where there are none."""
    for raw in snapshot.of(resources.CONFIG_MAPS):
        if raw["metadata"]["name"] == names.CONFIG_MAP_SLO:
            return reading.either({}, dict, raw.get("data") or {})
    return None


def _sources(snapshot: formats.Snapshot, problems: list[str]) -> sweep.Sources:
    """Fill the stores that the manager calculates from, as its informers do."""
    found = sweep.Sources(
        store.Store[projections.Node](),
        store.Store[projections.Metric](),
        store.Store[projections.Pod](),
        store.Store[inventory.Topology](),
        store.Store[accelerators.Inventory](),
    )
    fillings: tuple[tuple[resources.Resource, store.Store[Any], Read], ...] = (
        (resources.NODES, found.nodes, _node),
        (resources.NODE_METRICS, found.metrics, projections.metric),
        (resources.NODE_RESOURCE_TOPOLOGIES, found.topologies, inventory.read_topology),
        (resources.DEVICES, found.devices, inventory.read_devices),
        (resources.PODS, found.pods, _pod),
    )
    for resource, kept, read in fillings:
        for raw in snapshot.of(resource):
            meta = _meta(raw)
            try:
                kept.put(meta, read(raw))
            except _UNREADABLE:
                problems.append(f"{resource.kind} {meta.key} cannot be read and is left out")
    return found


def _meta(raw: formats.Raw) -> store.Meta:
    """Return the identity of an object: namespaced ones are known by namespace/name."""
    metadata = raw["metadata"]
    key = f"{metadata.get('namespace', '')}/{metadata['name']}".strip("/")
    return store.Meta(key, str(metadata.get("uid", "")), 0)


def _node(raw: Mapping[str, Any]) -> projections.Node:
    return projections.node(msgspec.convert(raw, core.Node))


def _pod(raw: Mapping[str, Any]) -> projections.Pod | None:
    return projections.pod(msgspec.convert(raw, core.Pod))
