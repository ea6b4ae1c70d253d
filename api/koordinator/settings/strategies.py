"""The strategies inside a NodeSLO, which configuration maps and annotations use as well."""

import re
from typing import Annotated, Literal

import pydantic
from pydantic import Field

from api.wire import base, quantity

BurstPolicy = Literal["none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"]
# The models take any text here, so that objects that were stored before stay readable; admission
# refuses others.
SuppressPolicy = Literal["cpuset", "cfsQuota"]
EvictPolicy = Literal["evictByRealLimit", "evictByAllocatable"]
CPUPolicy = Literal["groupIdentity", "coreSched"]
NetworkPolicy = Literal["tc", "terway-qos"]
BlockType = Literal["device", "volumegroup", "podvolume"]


class ResourceThresholds(base.Model):
    """When batch work is suppressed or evicted because the node is under pressure."""

    enable: base.Bool | None = None
    """Master switch of suppression and eviction."""
    cpu_suppress_threshold_percent: base.Percent | None = None
    """Node CPU usage that suppression of batch work aims at; 65 when unset."""
    cpu_suppress_min_percent: base.Percent | None = None
    """Floor of the CPU that batch work keeps under suppression."""
    cpu_suppress_policy: base.Text | None = None
    """How batch work is suppressed: cpuset or cfsQuota; cpuset when unset."""
    memory_evict_threshold_percent: base.Percent | None = None
    """Node memory usage at which eviction starts; 70 when unset."""
    memory_evict_lower_percent: base.Percent | None = None
    """Node memory usage at which eviction stops; the threshold less 2 when unset."""
    memory_allocatable_evict_threshold_percent: base.NonNegative | None = None
    """Memory requested against allocatable at which eviction starts; may exceed 100."""
    memory_allocatable_evict_lower_percent: base.NonNegative | None = None
    """Memory requested against allocatable at which eviction stops; may exceed 100."""
    memory_request_utilization_percent: base.NonNegative | None = None
    """Bound on all memory requested against allocatable of the node; unset means no bound."""
    cpu_evict_be_satisfaction_upper_percent: base.Int64 | None = None
    """Satisfaction (CPU granted against requested) of batch work above which eviction stops."""
    cpu_evict_be_satisfaction_lower_percent: base.Int64 | None = None
    """Satisfaction of batch work below which eviction may start."""
    cpu_evict_be_usage_threshold_percent: base.Int64 | None = None
    """Usage of what batch work was granted that must be reached before it is evicted."""
    cpu_evict_time_window_seconds: base.Int64 | None = None
    """Averaging window of CPU eviction; 300 when unset."""
    cpu_evict_threshold_percent: base.Percent | None = None
    """Node CPU usage at which eviction starts."""
    cpu_evict_lower_percent: base.Percent | None = None
    """Node CPU usage at which eviction stops; the threshold less 2 when unset."""
    cpu_allocatable_evict_threshold_percent: base.NonNegative | None = None
    """CPU requested against allocatable at which eviction starts; may exceed 100."""
    cpu_allocatable_evict_lower_percent: base.NonNegative | None = None
    """CPU requested against allocatable at which eviction stops; may exceed 100."""
    cpu_evict_policy: base.Text | None = None
    """What satisfaction is measured by: evictByRealLimit (default) or evictByAllocatable."""
    evict_enabled_priority_threshold: base.Int32 | None = None
    """Highest pod priority that eviction by usage may touch."""
    allocatable_evict_priority_threshold: base.Int32 | None = None
    """Highest pod priority that eviction by requests may touch."""


class ShorthandThresholds(base.Model):
    """The figures of the shorthand thresholds."""

    cpu_suppress_percent: base.Percent | None = Field(default=None, alias="cpu-suppress-percent")
    """Same as cpuSuppressThresholdPercent."""
    cpu_evict_threshold_percent: base.Percent | None = Field(
        default=None, alias="cpu-evict-threshold-percent"
    )
    """Same as cpuEvictThresholdPercent."""
    memory_evict_threshold_percent: base.Percent | None = Field(
        default=None, alias="memory-evict-threshold-percent"
    )
    """Same as memoryEvictThresholdPercent."""
    memory_request_utilization_percent: base.NonNegative | None = Field(
        default=None, alias="memory-request-utilization-percent"
    )
    """Bound on all memory requested against allocatable of the node."""


class ResourceThresholdStrategy(base.Model):
    """Shorthand for resourceUsedThresholdWithBE."""

    enable: base.Bool | None = None
    """Master switch of suppression and eviction."""
    thresholds: ShorthandThresholds | None = None
    """The figures; percentages lie in 0..100."""


class CPUQOS(base.Model):
    """How the kernel favours the CPU time of a class."""

    enable: base.Bool | None = None
    """Whether CPU settings are written for the class."""
    group_identity: Annotated[base.Int64, Field(ge=-1, le=2)] | None = None
    """Identity from -1 (weakest) to 2 (strongest)."""
    sched_idle: base.Flag | None = None
    """1 runs the class only on CPU time that no other class wants."""
    core_expeller: base.Bool | None = None
    """Whether the class drives others from sibling threads under core scheduling."""


class MemoryQOS(base.Model):
    """How the memory of a class is protected and reclaimed."""

    enable: base.Bool | None = None
    """Whether memory settings are written for the class."""
    min_limit_percent: base.NonNegative | None = None
    """Share of the request that is never reclaimed (memory.min)."""
    low_limit_percent: base.NonNegative | None = None
    """Share of the request that is reclaimed last (memory.low)."""
    throttling_percent: base.NonNegative | None = None
    """Where between request and limit throttling starts (memory.high); 0 is off, above 100 too."""
    wmark_ratio: base.Percent | None = None
    """Share of the limit at which background reclaim starts."""
    wmark_scale_permill: Annotated[base.Int64, Field(ge=1, le=1000)] | None = None
    """How much background reclaim frees, in thousandths of the limit."""
    wmark_min_adj: Annotated[base.Int64, Field(ge=-25, le=50)] | None = None
    """Shift of the global minimum watermark; negative protects, positive reclaims earlier."""
    priority_enable: base.Flag | None = None
    """1 turns reclaim by priority on."""
    priority: Annotated[base.Int64, Field(ge=0, le=12)] | None = None
    """Reclaim priority from 0 (first) to 12 (last)."""
    oom_kill_group: base.Flag | None = None
    """1 kills all processes of a container together when memory runs out."""
    page_cache_enable: base.Bool | None = None
    """Whether the page cache is limited."""
    page_cache_limit_percent: base.Percent | None = None
    """Page cache limit in percent of the memory limit."""
    page_cache_limit_size: base.Int64 | None = None
    """Page cache limit in bytes; wins over the percentage."""
    page_cache_reclaim_sync: base.Bool | None = None
    """Whether the page cache is reclaimed synchronously."""


class ResctrlQOS(base.Model):
    """Which part of the last-level cache and memory bandwidth a class may use."""

    enable: base.Bool | None = None
    """Whether resctrl settings are written for the class."""
    cat_range_start_percent: base.Percent | None = None
    """Start of the cache range."""
    cat_range_end_percent: base.Percent | None = None
    """End of the cache range."""
    mba_percent: base.Percent | None = None
    """Memory bandwidth."""


class IOConfig(base.Model):
    """Limits and weights of one block device."""

    read_iops: base.NonNegative | None = None
    """Read operations per second; 0 is unlimited."""
    write_iops: base.NonNegative | None = None
    """Write operations per second; 0 is unlimited."""
    read_bps: base.NonNegative | None = None
    """Bytes read per second; 0 is unlimited."""
    write_bps: base.NonNegative | None = None
    """Bytes written per second; 0 is unlimited."""
    io_weight_percent: Annotated[base.Int64, Field(ge=1, le=100)] | None = None
    """Relative weight; 100 when unset."""
    read_latency: base.Int64 | None = None
    """Target read latency in microseconds; root class only."""
    write_latency: base.Int64 | None = None
    """Target write latency in microseconds; root class only."""
    read_latency_percent: base.Percent | None = None
    """Share of reads that must meet the target."""
    write_latency_percent: base.Percent | None = None
    """Share of writes that must meet the target."""
    enable_user_model: base.Bool | None = None
    """Whether the figures below replace the kernel's own model of the device."""
    model_read_bps: Annotated[base.Int64, Field(ge=1)] | None = None
    """Bytes per second of sequential reads that the device can do."""
    model_write_bps: Annotated[base.Int64, Field(ge=1)] | None = None
    """Bytes per second of sequential writes that the device can do."""
    model_read_seq_iops: Annotated[base.Int64, Field(ge=1)] | None = None
    """Sequential reads per second that the device can do."""
    model_write_seq_iops: Annotated[base.Int64, Field(ge=1)] | None = None
    """Sequential writes per second that the device can do."""
    model_read_rand_iops: Annotated[base.Int64, Field(ge=1)] | None = None
    """Random reads per second that the device can do."""
    model_write_rand_iops: Annotated[base.Int64, Field(ge=1)] | None = None
    """Random writes per second that the device can do."""


class Block(base.Model):
    """One block device, volume group or pod volume."""

    name: base.Text = ""
    """Device path, volume group or volume name."""
    type: base.Text = ""
    """What the name names: device, volumegroup or podvolume."""
    io_cfg: IOConfig = IOConfig()
    """Limits and weights."""


class BlkIOQOS(base.Model):
    """Block I/O of a class."""

    enable: base.Bool | None = None
    """Whether block I/O settings are written for the class."""
    blocks: tuple[Block, ...] = ()
    """The devices."""


_POSITIVE_PATTERN = quantity.PATTERN.replace(r"(\+|-)?", r"\+?", 1)
_PERCENT_PATTERN = "^(100|[0-9]?[0-9])%$"


def percent(value: int | str) -> int | None:
    """Return the percent that a bandwidth such as 10 or "10%" is; None for absolute amounts."""
    if isinstance(value, int):
        return value
    return int(value[:-1]) if re.match(_PERCENT_PATTERN, value, re.ASCII) else None


def _bandwidth(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a percentage 0..100 or a quantity such as 50M")
    share = percent(value)
    if share is None and quantity.parse(value).nanos < 0:
        raise ValueError("must not be negative")
    if share is not None and not 0 <= share <= 100:
        raise ValueError("a number is a percentage of the node's bandwidth and lies in 0..100")
    return value


_SHARE_PATTERN = f"{_POSITIVE_PATTERN}|{_PERCENT_PATTERN}"


def _bandwidth_schema(default: int) -> pydantic.WithJsonSchema:
    return base.schema(
        **{"x-kubernetes-int-or-string": True, "pattern": _SHARE_PATTERN, "minimum": 0},
        maximum=100,
        **{"x-default": default},
    )


Share = Annotated[int | str, pydantic.BeforeValidator(_bandwidth), _bandwidth_schema(0)]
Ceiling = Annotated[int | str, pydantic.BeforeValidator(_bandwidth), _bandwidth_schema(100)]


class NetworkQOS(base.Model):
    """Network bandwidth of a class: percent of the node's bandwidth, or an absolute amount."""

    enable: base.Bool | None = None
    """Whether network settings are written for the class."""
    ingress_request: Share = 0
    """Guaranteed incoming bandwidth."""
    ingress_limit: Ceiling = 0
    """Most incoming bandwidth; 0 is unlimited."""
    egress_request: Share = 0
    """Guaranteed outgoing bandwidth."""
    egress_limit: Ceiling = 0
    """Most outgoing bandwidth; 0 is unlimited."""


class ClassQOS(base.Model):
    """All settings of one QoS class."""

    cpu_qos: CPUQOS | None = None
    """CPU time."""
    memory_qos: MemoryQOS | None = None
    """Memory."""
    blkio_qos: BlkIOQOS | None = None
    """Block I/O."""
    shorthand_blkio_qos: BlkIOQOS | None = Field(default=None, alias="blkIOQOS")
    """Another spelling of blkioQOS."""
    resctrl_qos: ResctrlQOS | None = None
    """Cache and memory bandwidth."""
    network_qos: NetworkQOS | None = None
    """Network."""


class QOSPolicies(base.Model):
    """By which kernel mechanism classes are told apart."""

    cpu_policy: base.Text | None = None
    """groupIdentity (default) or coreSched."""
    net_qos_policy: base.Text | None = None
    """tc (default) or terway-qos."""


class ResourceQOSStrategy(base.Model):
    """Settings of every QoS class on a node."""

    policies: QOSPolicies | None = None
    """Mechanisms."""
    lsr_class: ClassQOS | None = None
    """Settings of LSR (and LSE) pods."""
    ls_class: ClassQOS | None = None
    """Settings of LS pods."""
    be_class: ClassQOS | None = None
    """Settings of BE pods."""
    system_class: ClassQOS | None = None
    """Settings of system daemons."""
    cgroup_root: ClassQOS | None = None
    """Settings of the root of the cgroup tree."""


class CPUBurst(base.Model):
    """How a throttled container may exceed its CPU limit for a while."""

    policy: BurstPolicy | None = None
    """none (default), cpuBurstOnly, cfsQuotaBurstOnly or auto."""
    cpu_burst_percent: Annotated[base.Int64, Field(ge=0, le=10000)] | None = None
    """Size of the kernel's burst budget in percent of the limit; 1000 when unset."""
    cfs_quota_burst_percent: base.NonNegative | None = None
    """How far the quota may be raised, in percent of the limit; 300 when unset."""
    cfs_quota_burst_period_seconds: Annotated[base.Int64, Field(ge=-1)] | None = None
    """How long the quota may stay raised; -1 (default) is for ever."""


class CPUBurstStrategy(CPUBurst):
    """CPU burst on a node."""

    share_pool_threshold_percent: base.Percent | None = None
    """Load of the shared CPUs that ends bursting; 50 when unset."""


def _bandwidth_total(value: object) -> object:
    if isinstance(value, str | int) and quantity.parse(value).nanos < 0:
        raise ValueError("must not be negative")
    return value


class SystemStrategy(base.Model):
    """Kernel settings of the whole node."""

    min_free_kbytes_factor: base.Int64 | None = None
    """vm.min_free_kbytes in ten-thousandths of the node's memory."""
    watermark_scale_factor: base.Int64 | None = None
    """vm.watermark_scale_factor."""
    memcg_reap_back_ground: base.Int64 | None = None
    """1 reclaims memory of dead cgroups in the background."""
    sched_group_identity_enabled: base.Int64 | None = None
    """1 turns group identity on, 0 off."""
    sched_idle_saver_wmark: base.Int64 | None = None
    """Idle time below which batch work avoids a CPU, in nanoseconds."""
    sched_features: dict[str, base.Bool] | None = None
    """Scheduler features of the kernel to switch on or off."""
    page_cache_limit_enabled: base.Int64 | None = None
    """1 turns page cache limits on."""
    total_network_bandwidth: Annotated[
        base.Quantity,
        pydantic.BeforeValidator(_bandwidth_total),
        base.schema(
            **{"x-kubernetes-int-or-string": True, "pattern": _POSITIVE_PATTERN, "minimum": 0}
        ),
    ] = "0"
    """Bandwidth of the node in bits per second."""


class CgroupPath(base.Model):
    """Where the cgroup of a host application is."""

    base: Literal["CgroupRoot", "Kubepods", "KubepodsBurstable", "KubepodsBesteffort", ""] = ""
    """The directory that the path starts from."""
    parent_dir: str = ""
    """Directory below the base."""
    relative_path: str = ""
    """Directory of the application below the parent."""


class HostApplication(base.Model):
    """A process outside Kubernetes that takes part in colocation."""

    name: base.Text = ""
    """Name of the application."""
    priority: base.Text = ""
    """Priority band, for instance koord-prod."""
    qos: base.Text = ""
    """QoS class, for instance LS."""
    cgroup_path: CgroupPath | None = None
    """Its cgroup."""
    strategy: base.AnyObject | None = None
    """Reserved."""
