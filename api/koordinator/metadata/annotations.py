"""Typed access to every annotation whose value has a structure."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Annotated, Final, Generic, Literal, TypeVar

import pydantic

from api import names
from api.koordinator import scheduling
from api.koordinator.metadata import node_payloads, payloads
from api.koordinator.settings import configuration, strategies
from api.kubernetes import meta
from api.wire import base, untrusted

T = TypeVar("T")
Empty = Literal["absent", "error", "default"]


@dataclasses.dataclass(frozen=True, slots=True)
class Payload(Generic[T]):
    """One annotation with a JSON value: where it is, what it holds and what an empty text means."""

    key: str
    adapter: pydantic.TypeAdapter[T]
    empty: Empty = "error"
    fallback: str = ""

    def read(self, annotations: Mapping[str, str]) -> T | None:
        """Return the value, none if there is none; a bad value is an error that names the key."""
        key = self.key
        text = annotations.get(key)
        if self.fallback and not text and self.fallback in annotations:
            key, text = self.fallback, annotations[self.fallback]
        if text is None or (not text and self.empty == "absent"):
            return None
        if not text and self.empty == "default":
            text = "{}"
        what = f"annotation {key}"
        try:
            return self.adapter.validate_python(untrusted.parsed(text, what), context=base.ANY_CASE)
        except pydantic.ValidationError as error:
            raise base.ReadError(f"{what}: {base.explained(error)}") from error

    def text(self, value: T) -> str:
        """Return the value of the annotation."""
        return base.encoded(
            self.adapter.dump_python(
                value, mode="json", by_alias=True, exclude_unset=True, exclude_none=True
            )
        )

    def entry(self, value: T) -> dict[str, str]:
        """Return key and value, ready to be merged into annotations."""
        return {self.key: self.text(value)}


_MOST_RESOURCES: Final = 256
"""Of one node. Nodes offer a dozen; each one that is no quantity would cost an error of its own."""


def _few(value: object) -> object:
    if isinstance(value, Mapping) and len(value) > _MOST_RESOURCES:
        raise ValueError(f"must name at most {_MOST_RESOURCES} resources")
    return value


_A = pydantic.TypeAdapter
_RESOURCES: Final = _A(base.ResourceList)
_NAMES: Final = _A(tuple[base.Text, ...])
_POOLS: Final = _A(tuple[node_payloads.SharedPool, ...] | None)

# --- Pods ---------------------------------------------------------------------------------------
EXTENDED_RESOURCE_SPEC: Final = Payload(
    names.ANNOTATION_EXTENDED_RESOURCE_SPEC, _A(payloads.ExtendedResourceSpec)
)
CPU_BURST: Final = Payload(names.ANNOTATION_CPU_BURST, _A(strategies.CPUBurst))
CPU_QOS: Final = Payload(names.ANNOTATION_CPU_QOS, _A(strategies.CPUQOS))
MEMORY_QOS: Final = Payload(names.ANNOTATION_MEMORY_QOS, _A(payloads.MemoryQOS))
BLKIO_QOS: Final = Payload(names.ANNOTATION_BLKIO_QOS, _A(strategies.BlkIOQOS), empty="default")
NETWORK_QOS: Final = Payload(names.ANNOTATION_NETWORK_QOS, _A(payloads.NetworkQOS))
RESCTRL: Final = Payload(names.ANNOTATION_RESCTRL, _A(payloads.Resctrl))
OOM_SCORE_ADJ_SPEC: Final = Payload(names.ANNOTATION_OOM_SCORE_ADJ_SPEC, _A(dict[str, base.Int64]))
EVICTION_POLICY: Final = Payload(names.ANNOTATION_EVICTION_POLICY, _NAMES)
RESOURCE_SPEC: Final = Payload(names.ANNOTATION_RESOURCE_SPEC, _A(payloads.ResourceSpec))
RESOURCE_STATUS: Final = Payload(names.ANNOTATION_RESOURCE_STATUS, _A(payloads.ResourceStatus))
NUMA_TOPOLOGY_SPEC: Final = Payload(
    names.ANNOTATION_NUMA_TOPOLOGY_SPEC, _A(payloads.NumaTopologySpec)
)
LOAD_SCALING_FACTORS: Final = Payload(
    names.ANNOTATION_LOAD_SCALING_FACTORS, _A(dict[str, base.Int64])
)
SCHEDULING_HINT: Final = Payload(
    names.ANNOTATION_SCHEDULING_HINT,
    _A(payloads.SchedulingHint),
    empty="absent",
    fallback=names.ANNOTATION_SCHEDULING_HINT_OLD,
)
SOFT_EVICTION: Final = Payload(names.ANNOTATION_SOFT_EVICTION, _A(payloads.SoftEviction))
PLACEMENT: Final = Payload(names.PLACEMENT, _A(payloads.Placement))

# --- Gangs --------------------------------------------------------------------------------------
GANG_GROUPS: Final = Payload(names.ANNOTATION_GANG_GROUPS, _NAMES, empty="absent")
GANG_NETWORK_TOPOLOGY: Final = Payload(
    names.ANNOTATION_GANG_NETWORK_TOPOLOGY, _A(payloads.NetworkTopologySpec), empty="absent"
)

# --- Reservations -------------------------------------------------------------------------------
RESERVATION_AFFINITY: Final = Payload(
    names.ANNOTATION_RESERVATION_AFFINITY, _A(payloads.ReservationAffinity), empty="default"
)
RESERVATION_ALLOCATED: Final = Payload(
    names.ANNOTATION_RESERVATION_ALLOCATED, _A(payloads.ReservationAllocated)
)
RESERVATION_RESTRICTED: Final = Payload(
    names.ANNOTATION_RESERVATION_RESTRICTED, _A(payloads.RestrictedOptions), empty="absent"
)
EXACT_MATCH_RESERVATION: Final = Payload(
    names.ANNOTATION_EXACT_MATCH_RESERVATION, _A(payloads.ExactMatch), empty="absent"
)
RESERVATION_OWNERS: Final = Payload(
    names.ANNOTATION_RESERVATION_OWNERS, _A(tuple[scheduling.Owner, ...])
)
RESERVATION_CURRENT_OWNER: Final = Payload(
    names.ANNOTATION_RESERVATION_CURRENT_OWNER, _A(meta.ObjectReference)
)
RESERVATION_RESIZE: Final = Payload(
    names.ANNOTATION_RESERVATION_RESIZE, _A(payloads.ResizeAllocatable)
)

# --- Devices ------------------------------------------------------------------------------------
DEVICE_ALLOCATED: Final = Payload(names.ANNOTATION_DEVICE_ALLOCATED, _A(payloads.DeviceAllocations))
DEVICE_HINTS: Final = Payload(names.ANNOTATION_DEVICE_HINT, _A(dict[str, payloads.DeviceHint]))
DEVICE_JOINT: Final = Payload(names.ANNOTATION_DEVICE_JOINT, _A(payloads.JointAllocate))
GPU_PARTITION_SPEC: Final = Payload(names.ANNOTATION_GPU_PARTITION_SPEC, _A(payloads.PartitionSpec))
GPU_PARTITIONS: Final = Payload(
    names.ANNOTATION_GPU_PARTITIONS,
    _A(dict[int, tuple[payloads.Partition, ...]]),
    empty="absent",
)

# --- Nodes --------------------------------------------------------------------------------------
COLOCATION_STRATEGY: Final = Payload(
    names.ANNOTATION_COLOCATION_STRATEGY, _A(configuration.ColocationStrategy)
)
NODE_RESERVATION: Final = Payload(
    names.ANNOTATION_NODE_RESERVATION, _A(node_payloads.NodeReservation)
)
SYSTEM_QOS: Final = Payload(names.ANNOTATION_SYSTEM_QOS, _A(node_payloads.SystemQOSResource))
AMPLIFICATION: Final = Payload(names.ANNOTATION_AMPLIFICATION, _A(node_payloads.Ratios | None))
RAW_ALLOCATABLE: Final = Payload(
    names.ANNOTATION_RAW_ALLOCATABLE,
    _A(Annotated[base.ResourceList | None, pydantic.BeforeValidator(_few)]),
)
USAGE_THRESHOLDS: Final = Payload(
    names.ANNOTATION_USAGE_THRESHOLDS, _A(node_payloads.UsageThresholds)
)
ORIGIN_ALLOCATABLE: Final = Payload(
    names.ANNOTATION_ORIGIN_ALLOCATABLE, _A(node_payloads.OriginAllocatable)
)
THIRD_PARTY: Final = Payload(names.ANNOTATION_THIRD_PARTY, _A(node_payloads.ThirdPartyAllocations))

# --- Node topologies ----------------------------------------------------------------------------
CPU_TOPOLOGY: Final = Payload(names.ANNOTATION_CPU_TOPOLOGY, _A(node_payloads.CpuTopology))
POD_CPU_ALLOCS: Final = Payload(
    names.ANNOTATION_POD_CPU_ALLOCS, _A(tuple[node_payloads.PodCpus, ...] | None)
)
CPU_SHARED_POOLS: Final = Payload(names.ANNOTATION_CPU_SHARED_POOLS, _POOLS)
BE_CPU_SHARED_POOLS: Final = Payload(names.ANNOTATION_BE_CPU_SHARED_POOLS, _POOLS)
CPU_MANAGER_POLICY: Final = Payload(
    names.ANNOTATION_CPU_MANAGER_POLICY, _A(node_payloads.CpuManagerPolicy)
)
CPU_BASIC_INFO: Final = Payload(names.ANNOTATION_CPU_BASIC_INFO, _A(node_payloads.CpuBasicInfo))

# --- Quotas -------------------------------------------------------------------------------------
QUOTA_WEIGHT: Final = Payload(names.ANNOTATION_QUOTA_WEIGHT, _RESOURCES)
QUOTA_NAMESPACES: Final = Payload(names.ANNOTATION_QUOTA_NAMESPACES, _NAMES)
QUOTA_RUNTIME: Final = Payload(names.ANNOTATION_QUOTA_RUNTIME, _RESOURCES)
QUOTA_REQUEST: Final = Payload(names.ANNOTATION_QUOTA_REQUEST, _RESOURCES)
QUOTA_CHILD_REQUEST: Final = Payload(names.ANNOTATION_QUOTA_CHILD_REQUEST, _RESOURCES)
QUOTA_GUARANTEED: Final = Payload(names.ANNOTATION_QUOTA_GUARANTEED, _RESOURCES)
QUOTA_ALLOCATED: Final = Payload(names.ANNOTATION_QUOTA_ALLOCATED, _RESOURCES)
QUOTA_NON_PREEMPTIBLE_REQUEST: Final = Payload(
    names.ANNOTATION_QUOTA_NON_PREEMPTIBLE_REQUEST, _RESOURCES
)
QUOTA_NON_PREEMPTIBLE_USED: Final = Payload(names.ANNOTATION_QUOTA_NON_PREEMPTIBLE_USED, _RESOURCES)
QUOTA_TOTAL: Final = Payload(names.ANNOTATION_QUOTA_TOTAL, _RESOURCES)
QUOTA_UNSCHEDULABLE: Final = Payload(names.ANNOTATION_QUOTA_UNSCHEDULABLE, _RESOURCES)
QUOTA_RESOURCE_KEYS: Final = Payload(names.ANNOTATION_QUOTA_RESOURCE_KEYS, _NAMES)
QUOTA_ADMISSION: Final = Payload(names.ANNOTATION_QUOTA_ADMISSION, _RESOURCES)
QUOTA_STRICT_KEYS: Final = Payload(names.ANNOTATION_QUOTA_STRICT_KEYS, _NAMES)

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_COST: Final = re.compile(r"0|-[0-9]+|[1-9][0-9]*", re.ASCII)
NEVER_EVICT: Final = 2**31 - 1


def integer(values: Mapping[str, str], key: str, *, bits: int = 32) -> int | None:
    """Return a decimal integer from a label or annotation, none when it is missing or empty."""
    text = values.get(key, "")
    if not text:
        return None
    limit = 2 ** (bits - 1)
    value = int(text) if _INTEGER.fullmatch(text) and len(text) <= 20 else limit
    if not -limit <= value < limit:
        raise base.ReadError(f'{key}: "{text}" is no decimal integer of {bits} bits')
    return value


def number(values: Mapping[str, str], key: str) -> float | None:
    """Return a plain decimal number from a label or annotation, none when it is missing."""
    text = values.get(key, "")
    if not text:
        return None
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text, re.ASCII):
        raise base.ReadError(f'{key}: "{text}" is no number')
    return float(text)


def eviction_cost(annotations: Mapping[str, str]) -> int:
    """Return how much a pod would cost to evict, 0 when it is missing or no 32-bit integer."""
    return _cost(annotations.get(names.ANNOTATION_EVICTION_COST, ""))


def deletion_cost(annotations: Mapping[str, str]) -> int:
    """Return how much a pod would cost to delete, 0 when it is missing or no 32-bit integer."""
    return _cost(annotations.get(names.ANNOTATION_POD_DELETION_COST, ""))


def _cost(text: str) -> int:
    value = int(text) if _COST.fullmatch(text) and len(text) <= 20 else 0
    return value if -(2**31) <= value < 2**31 else 0
