"""What annotations say about reserved cpus. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from agent.model import annotations, state
from agent.model.cpus import packing
from api import names
from api.kubernetes import core
from api.wire import quantity, untrusted
from domain.cpus import cpulists

STATIC: Final = "static"
"""The policy of a kubelet that hands out cpus."""
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


def read(
    node: core.Node,
    topology: Mapping[str, str] | None = None,
    processors: Sequence[state.Processor] = (),
) -> state.Reserved:
    """Read what a node keeps back; annotations that cannot be parsed count as absent and are named.

    `topology` are the annotations that describe its cpus, by default the node's own. Who reserves
    an amount without cpus gets some that belong together, where the processors are known.
    """
    own_words = node.metadata.annotations
    where = own_words if topology is None else topology
    problems: dict[str, str] = {}
    system = _system(where, problems)
    reservation = _decode(where, names.ANNOTATION_NODE_RESERVATION, _Reservation, problems)
    manager = _decode(where, names.ANNOTATION_CPU_MANAGER_POLICY, _CpuManager, problems)
    own = _decode(own_words, names.ANNOTATION_NODE_RESERVATION, _Reservation, problems)
    amount = _annotated(own, problems)
    cpus = _cpus(reservation.reserved_cpus, names.ANNOTATION_NODE_RESERVATION, problems)
    if not reservation.reserved_cpus:
        cpus = packing.pick(processors, -(-_annotated(reservation, problems) // 1000))
    return state.Reserved(
        milli_cpu=max(_unallocatable(node), amount),
        cpus=cpus,
        system_cpus=system.cpus if system and system.exclusive else frozenset(),
        static_cpu_manager=manager.policy == STATIC,
        system_qos=system,
        problems=problems,
    )


def beside(found: state.Reserved, kubelet: state.KubeletCpus | None) -> state.Reserved:
    """Add what a kubelet handed out."""
    if kubelet is None:
        return found
    return msgspec.structs.replace(
        found,
        kubelet_cpus=frozenset[int]().union(*(one.cpus for one in kubelet.given)),
        static_cpu_manager=found.static_cpu_manager or kubelet.policy == STATIC,
        problems={**found.problems, **kubelet.problems},
    )


def claimed_cpus(pod: core.Pod) -> tuple[frozenset[int], str]:
    """Return the cpus that a pod claims, and why its claim cannot be read."""
    written = pod.metadata.annotations.get(names.ANNOTATION_RESOURCE_STATUS)
    try:
        return (_CLAIMED(written) if written else frozenset()), ""
    except annotations.ReadError as error:
        return frozenset(), str(error)


_CLAIMED = annotations.Reader(
    names.ANNOTATION_RESOURCE_STATUS,
    _ResourceStatus,
    lambda status: cpulists.parse(status.cpuset),
    strict=False,
)


def _system(where: Mapping[str, str], problems: dict[str, str]) -> state.SystemQos | None:
    key = names.ANNOTATION_SYSTEM_QOS
    found = _decode(where, key, _SystemQos, problems)
    cpus = _cpus(found.cpuset, key, problems)
    return state.SystemQos(cpus, found.cpuset_exclusive) if cpus else None


def _unallocatable(node: core.Node) -> int:
    capacity, allocatable = (
        state.core_amount(side, names.CPU)
        for side in (node.status.capacity, node.status.allocatable)
    )
    return max(0, capacity - allocatable)


def _annotated(reservation: _Reservation, problems: dict[str, str]) -> int:
    key = names.ANNOTATION_NODE_RESERVATION
    if cpus := _cpus(reservation.reserved_cpus, key, problems):
        return len(cpus) * 1000
    try:
        return state.core_amount(reservation.resources, names.CPU)
    except quantity.QuantityError as error:
        problems[f"annotation {key}"] = str(error)
        return 0


def _cpus(written: str, key: str, problems: dict[str, str]) -> frozenset[int]:
    try:
        return cpulists.parse(written)
    except cpulists.CpuListError as error:
        problems[f"annotation {key}"] = str(error)
        return frozenset()


def _decode(where: Mapping[str, str], key: str, kind: type[T], problems: dict[str, str]) -> T:
    """Decode JSON of people; what cannot be read says nothing."""
    try:
        return untrusted.decode(where.get(key) or "{}", kind, f"annotation {key}", strict=False)
    except untrusted.ReadError as error:
        problems[f"annotation {key}"] = str(error)
        return kind()
