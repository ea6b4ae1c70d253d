"""Sockets, NUMA nodes, CPUs and devices of a node and which pod holds what, as a document.

It is what the extender's plug-ins count of the same objects, so a placement is judged by these very
figures. CPU sets are Linux CPU lists, amounts are Kubernetes quantities.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from api.koordinator import devices as device_objects
from api.kubernetes import core
from api.plugin_args import node as node_arguments
from api.wire import quantity
from cli import reading
from domain.cpus import cpu_topology, cpulists
from domain.devices import inventory
from domain.numa import node_topology
from extender.framework import protocols
from extender.plugins.device_share import device_share
from extender.plugins.device_share import tracker as device_tracker
from extender.plugins.node_numa_resource import allocation, node_numa_resource
from extender.plugins.node_numa_resource import inspection as numa_inspection
from extender.plugins.node_numa_resource import tracker as numa_tracker
from extender.state import claims, cluster_state, deltas, records, requirement_reader

Raw = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Objects:
    """What was read of a node; None where there is none."""

    node: Raw
    topology: Raw | None = None
    """Its NodeResourceTopology."""
    device: Raw | None = None
    """Its Device object."""
    pods: Sequence[Raw] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """What plug-ins count of a node."""

    name: str
    numa: numa_tracker.NodeNuma
    devices: inventory.NodeDevices
    claims: Sequence[claims.Claim]
    problems: Sequence[str]

    def held(self) -> list[tuple[str, int, allocation.CpuAllocation]]:
        """Return pod, CPU mask and allocation of every pod that holds CPUs or NUMA amounts."""
        found = [(claim.pod.key, numa_tracker.held_by(claim)) for claim in self.claims]
        return [(key, allocation.mask(one.cpuset), one) for key, one in sorted(found) if one]


def document(objects: Objects) -> dict[str, Any]:
    """Return the layout of a node."""
    found = counted(objects)
    nodes, topology = found.numa.nodes, found.numa.nodes.topology
    held = nodes.usage.held() & topology.mask
    return {
        "node": found.name,
        "topologyPolicy": numa_inspection.policy_name(found.numa.policy),
        "cpuBindPolicy": found.numa.bind.value,
        "cpus": {
            "count": topology.mask.bit_count(),
            "cores": len(topology.cores),
            "threadsPerCore": topology.cpus_per_core,
            "siblings": siblings(topology),
            **_sets(found, topology.mask),
            "held": _list(held),
        },
        "sockets": [
            {
                "socket": socket,
                "cpus": _list(mask),
                "numaNodes": [n for n, at in topology.socket_of_node.items() if at == socket],
            }
            for socket, mask in topology.sockets.items()
        ],
        "numaNodes": [_numa_node(found, n) for n in sorted({*topology.nodes, *nodes.zones})],
        "devices": list(_devices(found)),
        "pods": list(_pods(found)),
        "problems": [*found.problems, *_impossible(found)],
    }


def counted(objects: Objects) -> Counted:
    """Return what the extender's plug-ins count of these objects."""
    numa = node_numa_resource.NodeNUMAResource(node_numa_resource.Arguments())
    shares = device_share.DeviceShare(
        device_share.arguments(node_arguments.DeviceShareArgs().complete())
    )
    labels = frozenset((*records.LABELS, *numa.pod_labels, *shares.pod_labels))
    inputs = requirement_reader.Inputs(
        labels, frozenset((*numa.pod_annotations, *shares.pod_annotations))
    )
    plugins: tuple[protocols.Plugin, ...] = (numa, shares)
    codecs = [one for one in plugins if isinstance(one, protocols.AllocationCodec)]
    projector = records.Projector(None, codecs, inputs)
    state = cluster_state.ClusterState((numa, shares), ("cpu", "memory"))
    record = projector.node(msgspec.convert(objects.node, core.Node))
    state.apply(deltas.NodeDelta(record.name, None, record))
    problems: list[str] = []
    _tell(state, deltas.NODE_TOPOLOGY, record.name, objects.topology, problems)
    _tell(state, deltas.DEVICE, record.name, objects.device, problems)
    for pod in filter(None, (_record(projector, raw, problems) for raw in objects.pods)):
        claim = claims.Claim(
            pod.uid or pod.key, claims.ClaimKind.BOUND, record.name, pod, pod.allocations
        )
        state.apply(deltas.ClaimDelta(claim.id, None, claim))
    values = state.view().values(0)
    zones = values.get(numa.name)
    devices = values.get(shares.name)
    return Counted(
        record.name,
        zones if isinstance(zones, numa_tracker.NodeNuma) else numa_tracker.NOTHING,
        devices if isinstance(devices, inventory.NodeDevices) else inventory.NodeDevices.of(
            inventory.NOTHING, inventory.Uses()
        ),
        state.claims_on(record.name),
        problems,
    )  # fmt: skip


_READERS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    deltas.NODE_TOPOLOGY: ("NodeResourceTopology", node_topology.read),
    deltas.DEVICE: (
        "Device",
        lambda raw: inventory.read(device_objects.read_device({**raw, "status": None})),
    ),
}


def _tell(
    state: cluster_state.ClusterState,
    kind: str,
    node: str,
    raw: Raw | None,
    problems: list[str],
) -> None:
    """Count an object of the node; one that cannot be read is a problem and counts as absent."""
    name, read = _READERS[kind]
    if raw is None:
        if kind == deltas.NODE_TOPOLOGY:
            problems.append(f"The node has no {name}, which its agent writes.")
        return
    try:
        found = read(raw)
        if kind == deltas.NODE_TOPOLOGY:
            void = node_topology.unreadable(raw)
            problems += [f"Annotation {one} of the {name} cannot be read." for one in void]
    except reading.UNREADABLE as error:
        problems.append(f"The {name} cannot be read: {reading.why(error)}.")
        return
    state.apply(deltas.ObjectDelta(kind, node, None, found, node=node))


def _record(
    projector: records.Projector, raw: Raw, problems: list[str]
) -> records.PodRecord | None:
    try:
        found = projector.pod(msgspec.convert(raw, core.Pod))
    except reading.UNREADABLE as error:
        problems.append(f"A pod of the node cannot be read: {reading.why(error)}.")
        return None
    if found is not None and found.unreadable:
        plugins = ", ".join(found.unreadable)
        problems.append(
            f"Pod {found.key} carries allocations of {plugins} that it cannot have been given; "
            "they are not counted."
        )
    return found


def _list(mask: int) -> str:
    return cpulists.text(cpu_topology.cpus_of(mask))


def _sets(found: Counted, inside: int) -> dict[str, Any]:
    """Return which CPUs of a mask are free and reserved."""
    nodes = found.numa.nodes
    free = nodes.available & inside
    return {
        "free": _list(free),
        "freeCount": free.bit_count(),
        "freeInWholeCores": nodes.topology.whole_cores(free).bit_count(),
        "reserved": _list(nodes.reserved & inside),
    }


def siblings(topology: cpu_topology.CpuTopology) -> str:
    """Say which CPUs are threads of one core, in a few words where they follow a rule."""
    cores = [core.cpus for core in topology.cores]
    if all(len(cpus) < 2 for cpus in cores):
        return ""
    steps = {tuple(cpu - cpus[0] for cpu in cpus) for cpus in cores}
    if len(steps) == 1:
        (offsets,) = steps
        return ", ".join("n" if not offset else f"n+{offset}" for offset in offsets)
    return "; ".join(cpulists.text(cpus) for cpus in sorted(cores))


def _numa_node(found: Counted, node: int) -> dict[str, Any]:
    nodes = found.numa.nodes
    inside = nodes.topology.nodes.get(node, 0)
    zone = nodes.zones.get(node, {})
    holders = []
    for key, mask, held in found.held():
        amounts = dict(held.zones).get(node, ())
        if mask & inside or amounts:
            texts = quantity.texts(dict(amounts))
            holders.append({"pod": key, "cpus": _list(mask & inside), "resources": texts})
    return {
        "numaNode": node,
        "socket": nodes.topology.socket_of_node.get(node),
        "cpus": _list(inside),
        "cores": len(nodes.topology.node_cores.get(node, ())),
        **_sets(found, inside),
        "resources": {
            name: {
                "allocatable": quantity.text(name, value),
                "held": quantity.text(name, nodes.allocated.get(node, {}).get(name, 0)),
                "free": quantity.text(name, nodes.free(node, name)),
            }
            for name, value in zone.items()
        },
        "holders": holders,
    }


def _devices(found: Counted) -> Iterator[dict[str, Any]]:
    node = found.devices
    for kind, by_minor in sorted(node.inventory.devices.items()):
        for minor, device in sorted(by_minor.items()):
            place = device.place
            known = place is not None and place.numa != inventory.UNKNOWN_NUMA
            yield {
                "type": kind,
                "minor": minor,
                "id": device.id,
                "healthy": any(device.total.values()),
                "numaNode": place.numa if place is not None and known else None,
                "pcie": place.pcie if place is not None else "",
                "total": quantity.texts(device.total),
                "free": quantity.texts(node.free[kind][minor]),
                "holders": list(_holders(found, kind, minor)),
            }


def _holders(found: Counted, kind: str, minor: int) -> Iterator[dict[str, Any]]:
    for claim in sorted(found.claims, key=lambda one: one.pod.key):
        for one in (device_tracker.held_by(claim) or {}).get(kind, ()):
            if one.minor == minor:
                functions = [function.bus_id for function in one.functions]
                held = {"pod": claim.pod.key, "resources": quantity.texts(one.amounts)}
                yield held | ({"functions": functions} if functions else {})


def _pods(found: Counted) -> Iterator[dict[str, Any]]:
    numa = {key: held for key, _, held in found.held()}
    for claim in sorted(found.claims, key=lambda one: one.pod.key):
        devices = device_tracker.held_by(claim) or {}
        held = numa.get(claim.pod.key)
        if held is None and not devices:
            continue
        yield {
            "pod": claim.pod.key,
            "cpus": held.cpuset if held else "",
            "numaNodes": {
                str(node): quantity.texts(dict(amounts))
                for node, amounts in (held.zones if held else ())
            },
            "devices": {
                kind: cpulists.text(sorted({one.minor for one in granted}))
                for kind, granted in sorted(devices.items())
            },
        }


def _impossible(found: Counted) -> Iterator[str]:
    """Yield what cannot be true of who holds what."""
    nodes, seen = found.numa.nodes, 0
    for key, mask, _ in found.held():
        for cpus, why in (
            (mask & seen, "are held by another pod as well"),
            (mask & nodes.reserved, "are reserved on the node"),
            (mask & ~nodes.topology.mask, "do not exist on the node"),
        ):
            if cpus and nodes.topology.mask:
                yield f"CPUs {_list(cpus)} of pod {key} {why}."
        seen |= mask
    for kind, minor, name, held, there in found.devices.overused():
        yield (
            f"Pods hold {quantity.text(name, held)} {name} of {kind} {minor}, "
            f"which has {quantity.text(name, there)}."
        )
