"""What annotations on pods, reservations and gangs say, as models."""

from typing import Annotated, Any, Literal

from pydantic import Field

from api.koordinator.settings import strategies
from api.kubernetes import meta
from api.wire import base

CPUBindPolicy = Literal["", "Default", "FullPCPUs", "SpreadByPCPUs", "ConstrainedBurst"]


class ContainerResources(base.Model):
    """Extended resources of one container."""

    limits: base.ResourceList = Field(default={})
    requests: base.ResourceList = Field(default={})


class ExtendedResourceSpec(base.Model):
    """Extended resources by container, for those who do not see the pod's spec."""

    containers: dict[str, ContainerResources] = Field(default={})


class MemoryQOS(strategies.MemoryQOS):
    """Memory settings of one pod."""

    policy: Literal["", "default", "none", "auto"] = ""


class NetworkQOS(base.Model):
    """Bandwidth of one pod in bits per second; 0 is unlimited."""

    ingress_limit: base.Text = "0"
    egress_limit: base.Text = "0"


class ResctrlShare(base.Model):
    """Share of a cache or of memory bandwidth."""

    percent: base.Int64 | None = None
    range: tuple[base.Int64, ...] = ()


class ResctrlCacheShare(ResctrlShare):
    """Share of one particular cache."""

    cache_id: base.Int64 = 0


class ResctrlPart(base.Model):
    """Shares for all caches and for particular ones."""

    schemata: ResctrlShare = ResctrlShare()
    schemata_per_cache: tuple[ResctrlCacheShare, ...] = ()


class Resctrl(base.Model):
    """Cache and memory bandwidth of one pod."""

    llc: ResctrlPart = ResctrlPart()
    mb: ResctrlPart = ResctrlPart()


class ResourceSpec(base.Model):
    """How a pod wants its CPUs."""

    required_cpu_bind_policy: CPUBindPolicy = ""
    preferred_cpu_bind_policy: CPUBindPolicy = ""
    preferred_cpu_exclusive_policy: Literal["", "None", "PCPULevel", "NUMANodeLevel"] = ""


class NumaResources(base.Model):
    """What a pod got on one NUMA node."""

    node: base.Int32 = 0
    resources: base.ResourceList = Field(default={})


class ResourceStatus(base.Model):
    """Which CPUs and NUMA nodes a pod got."""

    cpuset: base.Text = ""
    numa_node_resources: tuple[NumaResources, ...] = ()


class NumaTopologySpec(base.Model):
    """How a pod wants to be aligned."""

    numa_topology_policy: Literal["", "BestEffort", "Restricted", "SingleNUMANode"] = ""
    single_numa_node_exclusive: Literal["", "Preferred", "Required"] = ""


class SchedulingHint(base.Model):
    """Where a pod should go first."""

    node_names: tuple[base.Text, ...] = ()
    preferred_node_names: tuple[base.Text, ...] = ()
    extensions: dict[str, Any] = Field(default={})


class GatherLayer(base.Model):
    """How strictly a gang stays inside one domain of a layer."""

    layer: base.Name
    strategy: Literal["MustGather", "PreferGather"]
    pod_count_multiple: base.Int64 = 0


class NetworkTopologySpec(base.Model):
    """How a gang wants to be gathered."""

    gather_strategy: tuple[GatherLayer, ...] = ()


class Toleration(base.Model):
    """A taint that is tolerated."""

    key: base.Text = ""
    operator: base.Text = "Equal"
    value: base.Text = ""
    effect: base.Text = ""
    toleration_seconds: base.Int64 | None = None


class NodeRequirement(base.Model):
    """One condition of a selector term."""

    key: base.Text
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[base.Text, ...] = ()


class SelectorTerm(base.Model):
    """Conditions on labels and fields that must all hold."""

    match_expressions: tuple[NodeRequirement, ...] = ()
    match_fields: tuple[NodeRequirement, ...] = ()


class RequiredReservation(base.Model):
    """Selector terms of which one must match."""

    reservation_selector_terms: tuple[SelectorTerm, ...] = ()


class ReservationAffinity(base.Model):
    """Which reservations a pod wants to use."""

    name: base.Text = ""
    required: RequiredReservation | None = Field(
        default=None, alias="requiredDuringSchedulingIgnoredDuringExecution"
    )
    reservation_selector: dict[str, base.Text] = Field(default={})
    tolerations: tuple[Toleration, ...] = ()


class ReservationAllocated(base.Model):
    """Which reservation a pod uses."""

    name: base.Text = ""
    uid: base.Text = ""


class RestrictedOptions(base.Model):
    """Which reserved resources are restricted."""

    resources: tuple[base.Text, ...] = ()


class ExactMatch(base.Model):
    """Resources whose request must equal what is reserved."""

    resource_names: tuple[base.Text, ...] = ()


class ResizeAllocatable(base.Model):
    """What a reservation really got."""

    resources: base.ResourceList = Field(default={})


class AllocatedFunction(base.Model):
    """A virtual function that a pod got."""

    minor: base.Int32 = 0
    bus_id: base.Text = ""


class AllocationExtension(base.Model):
    """More about a device that a pod got."""

    vfs: tuple[AllocatedFunction, ...] = ()
    gpu_shared_resource_template: base.Text = ""


class DeviceAllocation(base.Model):
    """One device, or a part of it, that a pod got."""

    minor: base.Int32 = 0
    resources: base.ResourceList = Field(default={})
    id: base.Text = ""
    extension: AllocationExtension | None = None


DeviceAllocations = dict[str, tuple[DeviceAllocation, ...]]


class DeviceHint(base.Model):
    """How a pod wants devices of one type."""

    selector: meta.LabelSelector | None = None
    vf_selector: meta.LabelSelector | None = None
    allocate_strategy: Literal["", "ApplyForAll", "RequestsAsCount"] = ""
    required_topology_scope: Literal["", "Device", "PCIe", "NUMANode", "Node"] = ""
    exclusive_policy: Literal["", "DeviceLevel", "PCIeLevel"] = ""


class JointAllocate(base.Model):
    """Types of devices that a pod wants close together."""

    device_types: tuple[base.Text, ...] = ()
    required_scope: Literal["", "SamePCIe"] = ""


class PartitionSpec(base.Model):
    """How strictly a pod wants the GPUs of one partition."""

    allocate_policy: Literal["", "Restricted", "BestEffort"] = ""
    ring_bus_bandwidth: base.Quantity | None = None


class Partition(base.Model):
    """GPUs that belong together."""

    minors: tuple[base.Int64, ...] = ()
    gpu_link_type: base.Text = ""
    ring_bus_bandwidth: base.Quantity | None = None
    allocation_score: base.Int64 = 0


class SoftEviction(base.Model):
    """A request to an external controller to evict a pod."""

    timestamp: base.Moment | None = None
    delete_options: dict[str, Any] | None = None
    initiator: base.Text = ""
    reason: base.Text = ""


class Placement(base.Model):
    """What a pod was promised when it was bound."""

    v: Annotated[int, Field(ge=1)]
    id: base.Text = ""
    node: base.Text
    at: base.Moment
    reasons: tuple[base.Text, ...] = ()
    granted: dict[str, dict[str, Any]] = Field(default={})
