"""The configuration map that administrators write, one model per key."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import pydantic

from api.koordinator.metadata import pod_overrides
from api.koordinator.metrics import metric_collection
from api.koordinator.settings import strategies
from api.kubernetes import meta
from api.wire import base, untrusted

COLOCATION: Final = "colocation-config"
RESOURCE_THRESHOLD: Final = "resource-threshold-config"
RESOURCE_QOS: Final = "resource-qos-config"
CPU_BURST: Final = "cpu-burst-config"
SYSTEM: Final = "system-config"
HOST_APPLICATION: Final = "host-application-config"
POD_OVERRIDE_LIMITS: Final = "pod-override-limits-config"
CPU_NORMALIZATION: Final = "cpu-normalization-config"
RESOURCE_AMPLIFICATION: Final = "resource-amplification-config"


def _decimal(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    return value


Number = Annotated[float, pydantic.BeforeValidator(_decimal)]


class Entry(base.Model):
    """What every entry for some nodes carries besides its strategy."""

    name: base.Text = ""
    """Name of the entry, for people."""
    node_selector: meta.LabelSelector | None = None
    """Nodes by their labels; none when unset."""


class ColocationStrategy(base.Model):
    """How much of a node's idle capacity is lent to batch work."""

    enable: base.Bool | None = None
    """Master switch of colocation; off when unset."""
    metric_aggregate_duration_seconds: base.Int64 | None = None
    """Window of averages in NodeMetric; 300 when unset."""
    metric_report_interval_seconds: base.Int64 | None = None
    """Time between NodeMetric reports; 60 when unset."""
    metric_aggregate_policy: metric_collection.AggregatePolicy | None = None
    """Windows of percentiles in NodeMetric; 5m, 10m and 30m when unset."""
    metric_memory_collect_policy: base.Text | None = None
    """Whether page cache counts as usage; usageWithoutPageCache when unset."""
    cpu_reclaim_threshold_percent: base.Int64 | None = None
    """Share of the node's CPU that may be used in total; 60 when unset, may exceed 100."""
    memory_reclaim_threshold_percent: base.Int64 | None = None
    """Share of the node's memory that may be used in total; 65 when unset, may exceed 100."""
    cpu_calculate_policy: base.Text | None = None
    """How batch CPU is computed: usage (default), maxUsageRequest or overcommitRatio."""
    memory_calculate_policy: base.Text | None = None
    """How batch memory is computed: usage (default), request, maxUsageRequest, overcommitRatio."""
    overcommit_percent: base.Int64 | None = None
    """With overcommitRatio: percent of allocatable less non-batch requests that is lent."""
    degrade_time_minutes: base.Int64 | None = None
    """Age of a NodeMetric from which nothing is lent any more; 15 when unset."""
    update_time_threshold_seconds: base.Int64 | None = None
    """Longest time between updates of a node; 300 when unset."""
    resource_diff_threshold: Number | None = None
    """Relative change that causes an update at once; 0.1 when unset."""
    mid_reclaim_mode: base.Text | None = None
    """static, or anything else for dynamic."""
    mid_cpu_threshold_percent: base.Int64 | None = None
    """Cap of mid CPU in percent of the node; 100 when unset."""
    mid_memory_threshold_percent: base.Int64 | None = None
    """Cap of mid memory in percent of the node; 100 when unset."""
    mid_unallocated_percent: base.Int64 | None = None
    """Share of what no pod requests that is added to mid; 0 when unset."""
    mid_static_cpu_reserved_percent: base.Int64 | None = None
    """In static mode, share of the node's CPU that mid gets."""
    mid_static_memory_reserved_percent: base.Int64 | None = None
    """In static mode, share of the node's memory that mid gets."""
    batch_cpu_threshold_percent: base.Int64 | None = None
    """Cap of batch CPU in percent of the node; none when unset."""
    batch_memory_threshold_percent: base.Int64 | None = None
    """Cap of batch memory in percent of the node; none when unset."""
    extensions: base.AnyObject | None = None
    """Data of plug-ins."""


class ColocationEntry(ColocationStrategy, Entry):
    """Colocation for some nodes."""


class ColocationConfig(ColocationStrategy):
    """Value of ``colocation-config``."""

    node_configs: tuple[ColocationEntry, ...] = ()
    """Entries for some nodes; the first that matches counts."""


DEFAULT_COLOCATION: Final = ColocationStrategy(
    enable=False,
    metric_aggregate_duration_seconds=300,
    metric_report_interval_seconds=60,
    metric_aggregate_policy=metric_collection.AggregatePolicy(durations=(300.0, 600.0, 1800.0)),
    metric_memory_collect_policy="usageWithoutPageCache",
    cpu_reclaim_threshold_percent=60,
    memory_reclaim_threshold_percent=65,
    cpu_calculate_policy="usage",
    memory_calculate_policy="usage",
    degrade_time_minutes=15,
    update_time_threshold_seconds=300,
    resource_diff_threshold=0.1,
    mid_cpu_threshold_percent=100,
    mid_memory_threshold_percent=100,
    mid_unallocated_percent=0,
    mid_static_cpu_reserved_percent=0,
    mid_static_memory_reserved_percent=0,
)


class ThresholdEntry(strategies.ResourceThresholds, Entry):
    """Thresholds for some nodes."""


class ResourceThresholdConfig(base.Model):
    """Value of ``resource-threshold-config``."""

    cluster_strategy: strategies.ResourceThresholds | None = None
    """For all nodes."""
    node_strategies: tuple[ThresholdEntry, ...] = ()
    """Entries for some nodes; the first that matches counts."""


class QOSEntry(strategies.ResourceQOSStrategy, Entry):
    """QoS settings for some nodes."""


class ResourceQOSConfig(base.Model):
    """Value of ``resource-qos-config``."""

    cluster_strategy: strategies.ResourceQOSStrategy | None = None
    """For all nodes."""
    node_strategies: tuple[QOSEntry, ...] = ()
    """Entries for some nodes; the first that matches counts."""


class BurstEntry(strategies.CPUBurstStrategy, Entry):
    """CPU burst for some nodes."""


class CPUBurstConfig(base.Model):
    """Value of ``cpu-burst-config``."""

    cluster_strategy: strategies.CPUBurstStrategy | None = None
    """For all nodes."""
    node_strategies: tuple[BurstEntry, ...] = ()
    """Entries for some nodes; the first that matches counts."""


class SystemEntry(strategies.SystemStrategy, Entry):
    """Kernel settings for some nodes."""


class SystemConfig(base.Model):
    """Value of ``system-config``."""

    cluster_strategy: strategies.SystemStrategy | None = None
    """For all nodes."""
    node_strategies: tuple[SystemEntry, ...] = ()
    """Entries for some nodes; the first that matches counts."""


class PodOverrideLimitsEntry(pod_overrides.PodOverrideLimits, Entry):
    """What pods may ask some nodes for."""


class PodOverrideLimitsConfig(base.Model):
    """Value of ``pod-override-limits-config``."""

    cluster_strategy: pod_overrides.PodOverrideLimits | None = None
    """For all nodes."""
    node_strategies: tuple[PodOverrideLimitsEntry, ...] = ()
    """Entries for some nodes; the first that matches counts."""


class HostApplicationEntry(Entry):
    """Host applications of some nodes."""

    applications: tuple[strategies.HostApplication, ...] = ()
    """The applications; they replace those of the cluster."""


class HostApplicationConfig(base.Model):
    """Value of ``host-application-config``."""

    applications: tuple[strategies.HostApplication, ...] = ()
    """The applications of all nodes."""
    node_configs: tuple[HostApplicationEntry, ...] = ()
    """Entries for some nodes; the first that matches counts."""


class ModelRatios(base.Model):
    """How fast a CPU model is, relative to the slowest of the cluster."""

    base_ratio: Number | None = None
    """Neither hyper-threading nor turbo."""
    hyper_thread_enabled_ratio: Number | None = None
    """Hyper-threading only."""
    turbo_enabled_ratio: Number | None = None
    """Turbo only."""
    hyper_thread_turbo_enabled_ratio: Number | None = None
    """Hyper-threading and turbo."""


class CPUNormalizationStrategy(base.Model):
    """How CPU amounts of unequal machines are made comparable."""

    enable: base.Bool | None = None
    """Off when unset."""
    default_ratio: Number | None = None
    """Ratio of models that are not listed."""
    ratio_model: dict[str, ModelRatios] | None = None
    """Ratios by the exact name of the CPU model."""


class CPUNormalizationEntry(CPUNormalizationStrategy, Entry):
    """CPU normalization for some nodes."""


class CPUNormalizationConfig(CPUNormalizationStrategy):
    """Value of ``cpu-normalization-config``."""

    node_configs: tuple[CPUNormalizationEntry, ...] = ()
    """Entries for some nodes; the first that matches counts."""


class ResourceAmplificationStrategy(base.Model):
    """How much more a node offers than it has."""

    enable: base.Bool | None = None
    """Off when unset."""
    resource_amplification_ratio: dict[str, Number] | None = None
    """Ratio by resource."""


class ResourceAmplificationEntry(ResourceAmplificationStrategy, Entry):
    """Amplification for some nodes."""


class ResourceAmplificationConfig(ResourceAmplificationStrategy):
    """Value of ``resource-amplification-config``."""

    node_configs: tuple[ResourceAmplificationEntry, ...] = ()
    """Entries for some nodes; the first that matches counts."""


MODELS: Final[Mapping[str, type[base.Model]]] = {
    COLOCATION: ColocationConfig,
    RESOURCE_THRESHOLD: ResourceThresholdConfig,
    RESOURCE_QOS: ResourceQOSConfig,
    CPU_BURST: CPUBurstConfig,
    SYSTEM: SystemConfig,
    HOST_APPLICATION: HostApplicationConfig,
    POD_OVERRIDE_LIMITS: PodOverrideLimitsConfig,
    CPU_NORMALIZATION: CPUNormalizationConfig,
    RESOURCE_AMPLIFICATION: ResourceAmplificationConfig,
}


def read(key: str, text: str) -> base.Model:
    """Read the value of one key; an empty text is an error like any other that is no JSON."""
    return base.decoded(MODELS[key], text, key, untrusted.DOCUMENT)
