"""NodeResourceTopology of a node, as far as CPUs and NUMA nodes are allocated by it. Pure.

The agent writes the object. An annotation that cannot be read counts as absent, as if the kubelet
or an administrator had set nothing.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from api import names
from api.wire import quantity, untrusted
from domain.cpus import cpu_topology, cpulists
from domain.numa import hint_merge, numa_allocation

LARGEST: Final = untrusted.Bounds(bytes=512 << 10, depth=8, parts=4 * cpu_topology.MOST_CPUS)
MOST_ID: Final = 63
"""NUMA node ids above this are left out."""
_LARGEST_AMOUNT: Final = 1 << 52
_POLICIES: Final = {
    "BestEffort": hint_merge.Policy.BEST_EFFORT,
    "Restricted": hint_merge.Policy.RESTRICTED,
    "SingleNUMANodePodLevel": hint_merge.Policy.SINGLE_NUMA_NODE,
}
"""Policies of the kubelet; it aligns each container by itself under all others."""


class NodeTopology(msgspec.Struct, frozen=True):
    """What the NodeResourceTopology of a node says."""

    cpus: cpu_topology.CpuTopology = cpu_topology.CpuTopology()
    zones: tuple[tuple[int, tuple[tuple[str, int], ...]], ...] = ()
    """What pods may use of each NUMA node, by its id; CPU without the reserved ones."""
    policy: hint_merge.Policy = hint_merge.Policy.NONE
    full_pcpus_only: bool = False
    """Whether the static CPU manager of the kubelet gives whole cores only."""
    reserved: int = 0
    """CPUs that belong to the kubelet, its exclusive pods or the system, as a mask."""
    amplified: bool = False
    """Whether the amounts of the zones are amplified already."""


class _Wire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    pass


class _Cpu(_Wire, frozen=True, gc=False):
    id: int
    core: int = 0
    socket: int = 0
    node: int = 0


class _Topology(_Wire, frozen=True, gc=False):
    detail: tuple[_Cpu, ...] = ()


class _Manager(_Wire, frozen=True, gc=False):
    policy: str = ""
    options: dict[str, str] = {}
    reserved: str = msgspec.field(default="", name="reservedCPUs")


class _PodCpus(_Wire, frozen=True, gc=False):
    uid: str = ""
    cpuset: str = ""
    managed: bool = msgspec.field(default=False, name="managedByKubelet")


class _Reservation(_Wire, frozen=True, gc=False):
    reserved: str = msgspec.field(default="", name="reservedCPUs")


class _System(_Wire, frozen=True, gc=False):
    cpuset: str = ""
    exclusive: bool = msgspec.field(default=True, name="cpusetExclusive")


_DECODED: Final[Mapping[str, Any]] = {
    names.ANNOTATION_CPU_MANAGER_POLICY: _Manager | None,
    names.ANNOTATION_NODE_RESERVATION: _Reservation | None,
    names.ANNOTATION_SYSTEM_QOS: _System | None,
    names.ANNOTATION_POD_CPU_ALLOCS: tuple[_PodCpus, ...] | None,
}
"""Annotations besides the CPU topology, and what each holds; agents write null for nothing."""

T = TypeVar("T")


def read(raw: Mapping[str, Any]) -> NodeTopology:
    """Read a NodeResourceTopology of either version."""
    notes = (raw.get("metadata") or {}).get("annotations") or {}
    cpus = _cpus(notes.get(names.ANNOTATION_CPU_TOPOLOGY, ""))
    manager = _decoded(notes, names.ANNOTATION_CPU_MANAGER_POLICY, _Manager, _Manager())
    reserved = _reserved(notes, manager) & cpus.mask
    policies = raw.get("topologyPolicies") or ()
    known = (_POLICIES[one] for one in policies if isinstance(one, str) and one in _POLICIES)
    return NodeTopology(
        cpus,
        tuple(_zones(raw.get("zones") or (), cpus, reserved)),
        next(known, hint_merge.Policy.NONE),
        full_pcpus_only=manager.policy == "static"
        and manager.options.get("full-pcpus-only") == "true",
        reserved=reserved,
        amplified=bool(notes.get(names.ANNOTATION_AMPLIFICATION)),
    )


def unreadable(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the annotations that are written and cannot be read, which `read` counts as absent."""
    notes = (raw.get("metadata") or {}).get("annotations") or {}
    texts = {name: notes.get(name) or "" for name in (names.ANNOTATION_CPU_TOPOLOGY, *_DECODED)}
    found = [name for name, text in texts.items() if not isinstance(text, str)]
    topology = texts[names.ANNOTATION_CPU_TOPOLOGY]
    if isinstance(topology, str) and topology and not _cpus(topology).valid:
        found.append(names.ANNOTATION_CPU_TOPOLOGY)
    for name, kind in _DECODED.items():
        try:
            if isinstance(texts[name], str) and texts[name]:
                for text in _cpu_lists(untrusted.decode(texts[name], kind, name)):
                    cpulists.parse(text)
        except (untrusted.ReadError, cpulists.CpuListError):
            found.append(name)
    return tuple(sorted(found))


@functools.lru_cache(maxsize=64)
def _cpus(text: str) -> cpu_topology.CpuTopology:
    """Return the CPU topology; nodes of one machine type share it."""
    if not text:
        return cpu_topology.CpuTopology()
    try:
        found = untrusted.decode(text, _Topology, names.ANNOTATION_CPU_TOPOLOGY, bounds=LARGEST)
    except untrusted.ReadError:
        return cpu_topology.CpuTopology()
    return cpu_topology.build(
        cpu_topology.Cpu(cpu.id, cpu.core, cpu.socket, cpu.node)
        for cpu in found.detail
        if cpu.core < 1 << 16 and cpu.node <= MOST_ID
    )


def _decoded(notes: Mapping[str, Any], key: str, kind: Any, absent: T) -> T:
    text = notes.get(key)
    if not isinstance(text, str) or not text:
        return absent
    try:
        found: T | None = untrusted.decode(text, kind | None, key)
    except untrusted.ReadError:
        return absent
    return absent if found is None else found


def _cpu_lists(found: _Manager | _Reservation | _System | tuple[_PodCpus, ...] | None) -> list[str]:
    """Return the CPU lists that an annotation takes from pods."""
    match found:
        case _Manager() | _Reservation():
            return [found.reserved]
        case _System():
            return [found.cpuset if found.exclusive else ""]
        case _:
            return [one.cpuset for one in found or () if one.managed and one.uid]


def _reserved(notes: Mapping[str, Any], manager: _Manager) -> int:
    """Return the CPUs that no pod may get from us."""
    reservation = _decoded(notes, names.ANNOTATION_NODE_RESERVATION, _Reservation, _Reservation())
    system = _decoded(notes, names.ANNOTATION_SYSTEM_QOS, _System, _System())
    none: tuple[_PodCpus, ...] = ()
    pods = _decoded(notes, names.ANNOTATION_POD_CPU_ALLOCS, tuple[_PodCpus, ...], none)
    texts = [text for one in (manager, reservation, system, pods) for text in _cpu_lists(one)]
    mask = 0
    for text in texts:
        try:
            mask |= cpu_topology.mask_of(cpulists.parse(text))
        except cpulists.CpuListError:
            # One list that cannot be read must not free the CPUs of all others.
            continue
    return mask


def _zones(
    zones: Iterable[Any], cpus: cpu_topology.CpuTopology, reserved: int
) -> Iterator[tuple[int, tuple[tuple[str, int], ...]]]:
    """Yield the NUMA nodes by id, at most as many as can be aligned."""
    found: dict[int, Mapping[str, int]] = {}
    for zone in zones:
        node = _id(zone)
        if node is not None:
            found.setdefault(node, _allocatable(zone.get("resources") or ()))
    for node, amounts in sorted(found.items())[: numa_allocation.MOST_ZONES]:
        inside = 1000 * (reserved & cpus.nodes.get(node, 0)).bit_count()
        left = {
            name: max(0, value - inside) if name == names.CPU else value
            for name, value in amounts.items()
        }
        yield node, tuple(sorted(left.items()))


def _id(zone: Any) -> int | None:
    """Return the id of a NUMA node; its name tells it, never its position."""
    if not isinstance(zone, Mapping) or zone.get("type") != "Node":
        return None
    digits = str(zone.get("name", ""))
    digits = digits.removeprefix("node-") if digits.startswith("node-") else ""
    short = len(digits) <= 2 and digits.isascii() and digits.isdigit()
    return int(digits) if short and int(digits) <= MOST_ID else None


def _allocatable(resources: Iterable[Any]) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for one in resources:
        try:
            name = str(one["name"])
            amounts[name] = min(max(0, quantity.amount(name, one["allocatable"])), _LARGEST_AMOUNT)
        except (LookupError, TypeError, ValueError, ArithmeticError):
            # One resource that cannot be read must not hide all others.
            continue
    return amounts
