"""What a pod wants of CPUs and NUMA nodes, what it was given, and how that is recorded on it."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from api import names
from api.koordinator.metadata import annotations, qos
from api.wire import base, quantity, untrusted
from domain import wording
from domain.cpus import cpu_accumulator, cpu_topology, cpu_usage, cpulists
from domain.numa import hint_merge, numa_allocation
from extender.framework import verdicts, views

NAME: Final = "NodeNUMAResource"
NO_POLICY: Final = cpu_accumulator.BindPolicy.NONE
BOUND: Final = (cpu_accumulator.BindPolicy.FULL_PCPUS, cpu_accumulator.BindPolicy.SPREAD_BY_PCPUS)
POLICIES: Final = {
    "BestEffort": hint_merge.Policy.BEST_EFFORT,
    "Restricted": hint_merge.Policy.RESTRICTED,
    "SingleNUMANode": hint_merge.Policy.SINGLE_NUMA_NODE,
}
INTEGER: Final = verdicts.Status("the requested CPUs must be integer")
UNREADABLE: Final = verdicts.Status(
    "resource-spec or numa-topology-spec of the pod cannot be read; correct the annotation"
)
_CPUSET_CLASSES: Final = ("LSE", "LSR")


class Wanted(msgspec.Struct, frozen=True):
    """What PreFilter reads of a pod; pods that are alike have equal ones."""

    requests: views.Pairs
    preferred: cpu_accumulator.BindPolicy = cpu_accumulator.BindPolicy.NONE
    """How it wants CPUs of its own; empty: it runs in the shared pool."""
    required: bool = False
    exclusive: cpu_usage.ExclusivePolicy = cpu_usage.ExclusivePolicy.NONE
    policy: hint_merge.Policy = hint_merge.Policy.NONE
    """The topology policy that the pod itself asks for."""
    alone: bool = False
    """Whether it wants its NUMA nodes without pods that span several."""
    spec: str = ""
    """Its annotation resource-spec."""
    priority: int = 0

    @property
    def cpu(self) -> int:
        """Return the millicores that it requests."""
        return next((value for name, value in self.requests if name == names.CPU), 0)

    @property
    def bound(self) -> bool:
        """Whether it asks for CPUs of its own on every node."""
        return self.preferred in BOUND and self.cpu > 0


@views.PodRequirements.remembered(4096)
def wanted(requirements: views.PodRequirements, default: str) -> Wanted | verdicts.Status | None:
    """Read what a pod wants; None: it requests nothing."""
    if not requirements.requests:
        return None
    inputs = dict(requirements.inputs)
    try:
        spec = annotations.RESOURCE_SPEC.read(inputs)
        numa = annotations.NUMA_TOPOLOGY_SPEC.read(inputs)
    except untrusted.ReadError:
        return UNREADABLE
    policy = POLICIES.get(numa.numa_topology_policy if numa else "", hint_merge.Policy.NONE)
    exclusive = numa.single_numa_node_exclusive if numa else ""
    found = Wanted(
        requirements.requests,
        exclusive=cpu_usage.exclusive_policy(spec.preferred_cpu_exclusive_policy if spec else ""),
        policy=policy,
        alone=exclusive == "Required" or (not exclusive and policy is not hint_merge.Policy.NONE),
        spec=inputs.get(names.ANNOTATION_RESOURCE_SPEC, ""),
        priority=requirements.priority,
    )
    may_bind = inputs.get(names.LABEL_QOS) in _CPUSET_CLASSES
    if not may_bind or requirements.band is not qos.Band.PROD:
        return found
    required = _chosen(spec.required_cpu_bind_policy if spec else "", default)
    preferred = _chosen((spec.preferred_cpu_bind_policy if spec else "") or "Default", default)
    bind = cpu_accumulator.bind_policy(required or preferred)
    if bind not in BOUND:
        return found
    if found.cpu % 1000:
        return INTEGER
    return msgspec.structs.replace(found, preferred=bind, required=bool(required))


def _chosen(policy: str, default: str) -> str:
    return default if policy == "Default" else policy


class CpuAllocation(msgspec.Struct, frozen=True):
    """CPUs and amounts of NUMA nodes that one pod holds."""

    cpuset: str = ""
    zones: tuple[tuple[int, views.Pairs], ...] = ()
    spec: str = ""
    """Its annotation resource-spec: by which policies it was given them."""

    def without(self, parts: Sequence["CpuAllocation"]) -> "CpuAllocation | None":
        """Return the CPUs and amounts that others do not hold, None where that is nothing."""
        cpus = mask(self.cpuset)
        held: dict[int, dict[str, int]] = {}
        for one in parts:
            cpus &= ~mask(one.cpuset)
            for node, amounts in one.zones:
                there = held.setdefault(node, {})
                for name, value in amounts:
                    there[name] = there.get(name, 0) + value
        zones = tuple(
            (node, left)
            for node, amounts in self.zones
            if (left := _left(amounts, held.get(node, {})))
        )
        if not cpus and not zones:
            return None
        return CpuAllocation(cpulists.text(cpu_topology.cpus_of(cpus)), zones, self.spec)

    def holding(self) -> numa_allocation.Holding:
        """Return what is counted."""
        return numa_allocation.Holding(mask(self.cpuset), _exclusive(self.spec), self.zones)


def _left(amounts: views.Pairs, held: Mapping[str, int]) -> views.Pairs:
    found = ((name, value - held.get(name, 0)) for name, value in amounts)
    return tuple((name, value) for name, value in found if value > 0)


@functools.lru_cache(maxsize=8192)
def mask(cpuset: str) -> int:
    """Return the CPUs of a list as a mask."""
    return cpu_topology.mask_of(cpulists.parse(cpuset))


@functools.lru_cache(maxsize=1024)
def _exclusive(spec: str) -> cpu_usage.ExclusivePolicy:
    name = views.annotated(spec).get("preferredCPUExclusivePolicy", "")
    return cpu_usage.exclusive_policy(name if isinstance(name, str) else "")


def granted(found: numa_allocation.Allocated, spec: str) -> CpuAllocation:
    """Return an allocation as it is recorded."""
    zones = tuple((node, tuple(sorted(one.items()))) for node, one in sorted(found.zones.items()))
    return CpuAllocation(cpulists.text(cpu_topology.cpus_of(found.cpus)), zones, spec)


def completed(spec: str, bind: cpu_accumulator.BindPolicy, *, required: bool) -> str:
    """Return resource-spec with the policy by which a pod was bound, where it left it open."""
    written: dict[str, Any] = dict(views.annotated(spec))
    own_required = written.get("requiredCPUBindPolicy") or ""
    own_preferred = written.get("preferredCPUBindPolicy") or ""
    if required and own_required in ("", "Default"):
        written["requiredCPUBindPolicy"] = bind.value
    elif own_preferred == "Default" or not (own_required or own_preferred):
        written["preferredCPUBindPolicy"] = bind.value
    else:
        return spec
    return base.encoded(written)


class Codec:
    """AllocationCodec: the annotations that agents and Koordinator's scheduler read."""

    name = NAME
    annotations = (names.ANNOTATION_RESOURCE_STATUS, names.ANNOTATION_RESOURCE_SPEC)

    def decode(
        self, annotations: Mapping[str, str], wanted: views.PodRequirements
    ) -> CpuAllocation | None:
        """Read what a pod holds; ValueError where it cannot have been given that."""
        text = annotations.get(names.ANNOTATION_RESOURCE_STATUS, "")
        if not text:
            return None
        status = _STATUS.read({names.ANNOTATION_RESOURCE_STATUS: text})
        if status is None or not (status.cpuset or status.numa_node_resources):
            return None
        requests = dict(wanted.requests)
        cpus = cpulists.parse(status.cpuset)
        if 1000 * len(cpus) > requests.get(names.CPU, 0):
            given = wording.count(len(cpus), "CPU", "CPUs")
            raise ValueError(f"{given} for {requests.get(names.CPU, 0)} millicores")
        if max(cpus, default=0) >= cpu_topology.MOST_CPUS:
            raise ValueError(f"no machine has CPU {max(cpus)}")
        zones: dict[int, views.Pairs] = {}
        for one in status.numa_node_resources:
            if not 0 <= one.node < cpu_topology.MOST_CPUS or one.node in zones:
                raise ValueError(f"NUMA node {one.node} is none, or given twice")
            amounts = quantity.amounts(one.resources)
            zones[one.node] = tuple(sorted(amounts.items()))
            for name, value in amounts.items():
                requests[name] = requests.get(name, 0) - value
                if value < 0 or requests[name] < 0:
                    raise ValueError(f"more {name} than the pod requests")
        spec = annotations.get(names.ANNOTATION_RESOURCE_SPEC, "")
        return CpuAllocation(cpulists.text(cpus), tuple(sorted(zones.items())), spec)

    def encode(self, allocation: CpuAllocation) -> Mapping[str, str]:
        """Write what a pod holds."""
        status: dict[str, Any] = {}
        if allocation.cpuset:
            status["cpuset"] = allocation.cpuset
        if allocation.zones:
            status["numaNodeResources"] = [
                {"node": node, "resources": quantity.texts(dict(amounts))}
                for node, amounts in allocation.zones
            ]
        texts = {names.ANNOTATION_RESOURCE_STATUS: base.encoded(status)}
        if allocation.spec:
            texts[names.ANNOTATION_RESOURCE_SPEC] = allocation.spec
        return texts

    def conflicts(self, one: CpuAllocation, other: CpuAllocation) -> bool:
        """Whether a CPU was given to two pods."""
        return bool(mask(one.cpuset) & mask(other.cpuset))


_STATUS: Final = annotations.RESOURCE_STATUS
