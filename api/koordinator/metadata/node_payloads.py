"""What annotations on nodes and node topologies say, as models."""

from typing import Annotated, Literal

import pydantic
from pydantic import Field

from api.wire import base


class NodeReservation(base.Model):
    """What a node keeps for its own daemons."""

    resources: base.ResourceList = Field(default={})
    reserved_cpus: base.Text = ""
    apply_policy: base.Text = ""


class SystemQOSResource(base.Model):
    """CPUs set apart for system daemons."""

    cpuset: base.Text = ""
    cpuset_exclusive: base.Bool = True


class OriginAllocatable(base.Model):
    """Extended resources of a node before third parties took theirs."""

    resources: base.ResourceList = Field(default={})


class ThirdPartyAllocation(base.Model):
    """Resources that another allocator has handed out."""

    name: base.Text = ""
    priority: base.Text = ""
    resources: base.ResourceList = Field(default={})


class ThirdPartyAllocations(base.Model):
    """Resources that other allocators have handed out."""

    allocations: tuple[ThirdPartyAllocation, ...] = ()


Thresholds = dict[str, base.Int64]


class AggregatedThresholds(base.Model):
    """Usage thresholds on a statistic over a window."""

    usage_thresholds: Thresholds = Field(default={})
    usage_aggregation_type: Literal["", "avg", "p50", "p90", "p95", "p99"] = ""
    usage_aggregated_duration: base.Duration | None = None


class UsageThresholds(base.Model):
    """Usage above which a node takes no more pods, in percent by resource."""

    usage_thresholds: Thresholds = Field(default={})
    prod_usage_thresholds: Thresholds = Field(default={})
    aggregated_usage: AggregatedThresholds | None = None


class Cpu(base.Model):
    """One logical CPU."""

    id: base.Int32
    core: base.Int32
    socket: base.Int32
    node: base.Int32


class CpuTopology(base.Model):
    """All logical CPUs of a node."""

    detail: tuple[Cpu, ...] = ()


class PodCpus(base.Model):
    """CPUs that a pod has to itself."""

    namespace: base.Text = ""
    name: base.Text = ""
    uid: base.Text = ""
    cpuset: base.Text = ""
    managed_by_kubelet: base.Bool = False


class SharedPool(base.Model):
    """CPUs of one NUMA node that pods share."""

    socket: base.Int32 = 0
    node: base.Int32 = 0
    cpuset: base.Text = ""


class CpuManagerPolicy(base.Model):
    """How the kubelet hands out CPUs."""

    policy: base.Text = ""
    options: dict[str, base.Text] = Field(default={})
    reserved_cpus: base.Text = ""


class CpuBasicInfo(base.Model):
    """What the processors of a node are."""

    cpu_model: base.Text = ""
    hyper_thread_enabled: base.Bool = False
    turbo_enabled: base.Bool = False
    cat_l3_cbm_mask: base.Text = ""
    vendor_id: base.Text = ""


def _ratio(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    return value


Ratios = dict[str, Annotated[float, pydantic.BeforeValidator(_ratio)]]
