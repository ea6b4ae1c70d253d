"""What a NodeResourceTopology says about this node, and how it differs from others. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from agent.model import state
from agent.model.cpus import shared_pools
from api import names, resources
from api.kubernetes import core
from api.wire import quantity, untrusted
from domain.cpus import cpulists

RESOURCE: Final = resources.NODE_RESOURCE_TOPOLOGIES._replace(version="v1alpha2")
"""The stored version: in the first one, attributes that others wrote would be lost."""
MADE: Final = {
    names.LABEL_MANAGED_BY: names.MANAGED_BY,
    names.LABEL_CREATED_BY: "koord-agent",
}
"""Labels of an object that did not exist before."""
_HUGE: Final = (names.HUGE_PAGES_1G, names.HUGE_PAGES_2M)
_SIDES: Final = ("capacity", "allocatable", "available")
Amounts = Mapping[str, tuple[int, int]]
"""What there is and what pods may use of it, by resource."""
Object = Mapping[str, Any]


class Zone(msgspec.Struct, frozen=True):
    """One NUMA node as it is to be told."""

    name: str
    amounts: Amounts


class Report(msgspec.Struct, frozen=True):
    """Everything that is to be told."""

    node: core.Node
    policy: str
    labels: Mapping[str, str]
    annotations: Mapping[str, Any]
    """Values before they are written as JSON, by key."""
    zones: tuple[Zone, ...]


def unknown(picture: state.NodeState | None) -> str | None:
    """Name what is still missing to tell how a node is built; None when nothing is."""
    if picture is None or picture.node is None:
        return "the Node has not been seen yet"
    if not picture.processors or not picture.numa:
        return "the processors or the NUMA nodes of this machine cannot be read"
    if picture.kubelet is None:
        return "the kubelet has not told its configuration"
    return None if picture.pods_known else "the kubelet has not named its pods"


def report(picture: state.NodeState | None) -> Report | None:
    """Return what is to be told; None as long as a part of it is unknown."""
    if unknown(picture) or picture is None or picture.node is None or picture.kubelet is None:
        return None
    node, kubelet, shared = picture.node, picture.kubelet, shared_pools.of(picture)
    label = node.metadata.labels.get(names.LABEL_NUMA_RESERVATION)
    return Report(
        node=node,
        policy=kubelet.topology,
        labels={names.LABEL_NUMA_RESERVATION: label} if label else {},
        annotations={
            names.ANNOTATION_CPU_BASIC_INFO: _info(picture.processor_info),
            names.ANNOTATION_CPU_TOPOLOGY: _topology(picture.processors),
            names.ANNOTATION_CPU_SHARED_POOLS: _pools(shared.online),
            names.ANNOTATION_BE_CPU_SHARED_POOLS: _pools(shared.best_effort),
            names.ANNOTATION_CPU_MANAGER_POLICY: _manager(kubelet),
            names.ANNOTATION_POD_CPU_ALLOCS: _given(kubelet.given),
            names.ANNOTATION_NODE_RESERVATION: _reservation(node, picture.reserved),
            names.ANNOTATION_SYSTEM_QOS: _system(picture.reserved.system_qos),
        },
        zones=zones(picture),
    )


def zones(picture: state.NodeState) -> tuple[Zone, ...]:
    """Return the NUMA nodes that have cpus, in the order of their numbers."""
    cpus: dict[int, int] = {}
    for processor in picture.processors:
        cpus[processor.node] = cpus.get(processor.node, 0) + 1
    found = [node for node in sorted(picture.numa, key=lambda n: n.number) if node.number in cpus]
    kept = _kept(picture.node, len(found))
    return tuple(
        Zone(f"node-{node.number}", _amounts(node, cpus[node.number], kept)) for node in found
    )


def _amounts(node: state.NumaNode, cpus: int, kept: tuple[int, int]) -> Amounts:
    """Return what a NUMA node has: cpu in milli, memory without its huge pages."""
    huge = {name: node.huge.get(name, 0) for name in _HUGE}
    there = cpus * 1000, max(0, node.memory - sum(huge.values()))
    cpu, memory = ((all_, max(0, all_ - part)) for all_, part in zip(there, kept, strict=True))
    return {
        names.CPU: cpu,
        **{name: (amount, amount) for name, amount in huge.items()},
        names.MEMORY: memory,
    }


def _kept(node: core.Node | None, among: int) -> tuple[int, int]:
    """Return what each NUMA node gives of what the kubelet keeps from pods, where that is asked."""
    if node is None or node.metadata.labels.get(names.LABEL_NUMA_RESERVATION) != "true":
        return 0, 0
    amounts = state.core_amount
    cpu, memory = (
        max(0, amounts(node.status.capacity, name) - amounts(node.status.allocatable, name))
        for name in (names.CPU, names.MEMORY)
    )
    return -(-cpu // among), -(-memory // among)


def _info(found: state.ProcessorInfo) -> Object:
    return {
        "cpuModel": found.model,
        "hyperThreadEnabled": found.hyper_threads,
        "turboEnabled": found.turbo,
        "catL3CbmMask": found.cache_mask,
        "vendorID": found.vendor,
    }


def _topology(processors: Iterable[state.Processor]) -> Object:
    return {
        "detail": [
            {"id": p.cpu, "core": p.core, "socket": p.socket, "node": p.node}
            for p in sorted(processors, key=lambda p: p.cpu)
        ]
    }


def _pools(found: Sequence[shared_pools.Pool]) -> list[Object] | None:
    return [
        {"socket": p.socket, "node": p.node, "cpuset": cpulists.text(p.cpus)} for p in found
    ] or None


def _manager(kubelet: state.KubeletCpus) -> Object:
    told = {
        "policy": kubelet.policy,
        "options": dict(kubelet.options),
        "reservedCPUs": cpulists.text(kubelet.reserved),
    }
    return {key: value for key, value in told.items() if value}


def _given(found: Iterable[state.GivenCpus]) -> list[Object] | None:
    return [
        {
            "namespace": one.namespace,
            "name": one.name,
            "uid": one.uid,
            "cpuset": cpulists.text(one.cpus),
            "managedByKubelet": True,
        }
        for one in sorted(found, key=lambda one: one.uid)
    ] or None


def _reservation(node: core.Node, kept: state.Reserved) -> Object:
    """Return the node's own words with the cpus that they came to."""
    written = node.metadata.annotations.get(names.ANNOTATION_NODE_RESERVATION)
    try:
        what = f"annotation {names.ANNOTATION_NODE_RESERVATION}"
        found = untrusted.decode(written or "{}", dict[str, Any], what)
    except untrusted.ReadError:
        return {}
    if kept.cpus:
        return {**found, "reservedCPUs": cpulists.text(kept.cpus)}
    return found


def _system(found: state.SystemQos | None) -> Object | None:
    if found is None:
        return None
    return {"cpuset": cpulists.text(found.cpus), "cpusetExclusive": found.exclusive}


def merged(told: Report, current: Object | None) -> Object:
    """Return the object with what is to be told; everything that others wrote in it stays."""
    base = current or {
        "apiVersion": RESOURCE.api_version,
        "kind": RESOURCE.kind,
        "metadata": {"name": told.node.metadata.name, "labels": MADE},
    }
    found: dict[str, Any] = {**base, "topologyPolicies": [told.policy]}
    meta = dict(base["metadata"])
    labels = {**(meta.get("labels") or {}), **told.labels}
    if labels:
        meta["labels"] = labels
    meta["annotations"] = _annotated(meta.get("annotations") or {}, told.annotations)
    meta["ownerReferences"] = _owned(meta.get("ownerReferences") or [], told.node)
    found["metadata"] = meta
    before = {zone["name"]: zone for zone in base.get("zones") or ()}
    found["zones"] = [_zone(zone, before.get(zone.name)) for zone in told.zones]
    return found


def _annotated(before: Mapping[str, str], told: Mapping[str, Any]) -> dict[str, str]:
    """Write values, unless what stands there says the same in other words."""
    return dict(before) | {
        key: msgspec.json.encode(value).decode()
        for key, value in told.items()
        if not _says(before.get(key), value)
    }


def _says(written: str | None, value: Any) -> bool:
    if written is None:
        return False
    try:
        return bool(untrusted.parsed(written, "annotation") == value)
    except untrusted.ReadError:
        return False


def _owned(before: Sequence[Object], node: core.Node) -> list[Object]:
    """Return the owners, this Node among them: the object goes with it.

    It does not hold up the Node's deletion, which some clusters allow to few.
    """
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": node.metadata.name,
        "uid": node.metadata.uid,
    }
    if any(one.get("uid") == owner["uid"] for one in before):
        return list(before)
    others = [one for one in before if one.get("kind") != "Node"]
    controlled = any(one.get("controller") for one in others)
    return [*others, owner if controlled else {**owner, "controller": True}]


def _zone(told: Zone, before: Object | None) -> Object:
    base = dict(before or {"name": told.name})
    listed = {item["name"]: item for item in base.get("resources") or ()}
    for name, (capacity, allocatable) in told.amounts.items():
        amounts = dict(zip(_SIDES, (capacity, allocatable, allocatable), strict=True))
        listed[name] = _item(name, amounts, listed.get(name) or {})
    return {**base, "type": "Node", "resources": [listed[name] for name in sorted(listed)]}


def _item(name: str, told: Mapping[str, int], before: Object) -> Object:
    """Return a resource of a zone, in the words that stand there where they say the same."""
    return {**before, "name": name} | {
        side: quantity.text(name, value)
        for side, value in told.items()
        if not _amounts_to(name, before.get(side), value)
    }


def _amounts_to(name: str, written: quantity.Written | None, value: int) -> bool:
    try:
        return written is not None and quantity.amount(name, written) == value
    except quantity.QuantityError:
        return False
