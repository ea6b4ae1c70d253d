"""What annotations say about cpus that are kept for somebody. Pure."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from agent import state
from api import core, names, quantity
from domain import cpulists

CPU_MANAGER_POLICY = "kubelet.koordinator.sh/cpu-manager-policy"
T = TypeVar("T", bound=msgspec.Struct)


class _Reservation(msgspec.Struct, frozen=True, rename="camel"):
    resources: core.ResourceList = {}
    reserved_cpus: str = msgspec.field(name="reservedCPUs", default="")


class _SystemQos(msgspec.Struct, frozen=True, rename="camel"):
    cpuset: str = ""
    cpuset_exclusive: bool = True


class _CpuManager(msgspec.Struct, frozen=True):
    policy: str = ""


class _ResourceStatus(msgspec.Struct, frozen=True):
    cpuset: str = ""


def read(node: core.Node, topology: Mapping[str, str] | None = None) -> state.Reserved:
    """Read what a node keeps back; unreadable annotations count as absent.

    `topology` are the annotations that describe its cpus, by default the node's own.
    """
    annotations = node.metadata.annotations
    where = annotations if topology is None else topology
    system = _decode(where.get(names.ANNOTATION_SYSTEM_QOS), _SystemQos)
    reservation = _decode(where.get(names.ANNOTATION_NODE_RESERVATION), _Reservation)
    manager = _decode(where.get(CPU_MANAGER_POLICY), _CpuManager)
    own = _decode(annotations.get(names.ANNOTATION_NODE_RESERVATION), _Reservation)
    return state.Reserved(
        milli_cpu=max(_unallocatable(node), _annotated(own)),
        cpus=_cpus(reservation.reserved_cpus),
        system_cpus=_cpus(system.cpuset) if system.cpuset_exclusive else frozenset(),
        static_cpu_manager=manager.policy == "static",
    )


def bound_cpus(pod: core.Pod) -> frozenset[int]:
    """Return the cpus that the scheduler gave to a pod; none where nothing readable says so."""
    written = pod.metadata.annotations.get(names.ANNOTATION_RESOURCE_STATUS)
    return _cpus(_decode(written, _ResourceStatus).cpuset)


def _unallocatable(node: core.Node) -> int:
    capacity, allocatable = (
        state.core_amount(side, names.CPU)
        for side in (node.status.capacity, node.status.allocatable)
    )
    return max(0, capacity - allocatable)


def _annotated(reservation: _Reservation) -> int:
    if cpus := _cpus(reservation.reserved_cpus):
        return len(cpus) * 1000
    try:
        return state.core_amount(reservation.resources, names.CPU)
    except quantity.QuantityError:
        return 0


def _cpus(written: str) -> frozenset[int]:
    try:
        return cpulists.parse(written)
    except cpulists.CpuListError:
        return frozenset()


def _decode(written: str | None, kind: type[T]) -> T:
    """Decode JSON of people; what cannot be read says nothing."""
    try:
        return msgspec.json.decode(written or "{}", type=kind, strict=False)
    except (msgspec.MsgspecError, ValueError):
        return kind()
