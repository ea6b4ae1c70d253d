"""The settings that hold on one node, merged from those of the cluster."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from api.koordinator.settings import configuration
from domain.lending import colocation

DEFAULT: Final[Mapping[str, Any]] = configuration.DEFAULT_COLOCATION.wire()
_STATIC: Final = "static"


@dataclasses.dataclass(frozen=True, slots=True)
class Mid:
    """How much of a node mid pods get, in percent of its capacity."""

    static: bool
    """Whether a fixed share is given, instead of what online services are predicted to leave."""
    cpu_cap: int
    memory_cap: int
    unallocated: int
    """Share of what no pod requests that is added; dynamic mode only."""
    static_cpu: int
    static_memory: int


@dataclasses.dataclass(frozen=True, slots=True)
class Normalization:
    """How the cpu of a node is made comparable with that of others."""

    enable: bool
    default: float | None
    """Ratio of models that are not listed, and of states of a model that are not."""
    models: Mapping[str, configuration.ModelRatios]


@dataclasses.dataclass(frozen=True, slots=True)
class Amplification:
    """How much more a node offers than it has."""

    enable: bool
    ratios: Mapping[str, float]
    """By resource name."""


@dataclasses.dataclass(frozen=True, slots=True)
class Strategy:
    """How one node is measured and how much of it is lent."""

    enable: bool
    aggregate_seconds: int
    report_seconds: int
    windows: tuple[str, ...]
    memory_collect_policy: str
    cpu: colocation.Rule
    memory: colocation.Rule
    degrade_seconds: int
    refresh_seconds: int
    difference: float
    mid: Mid
    extensions: Mapping[str, Any]
    """Data of plug-ins."""


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What one node enforces, by section."""

    threshold: Mapping[str, Any]
    qos: Mapping[str, Any]
    burst: Mapping[str, Any]
    system: Mapping[str, Any]
    host_applications: tuple[Mapping[str, Any], ...]
    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    """Parts of a NodeSLO whose keys were never readable: what stands there goes on to hold."""


def read(merged: Mapping[str, Any]) -> Strategy:
    """Read a strategy; what is not in it has its default."""
    merged = {**DEFAULT, **merged}
    overcommit = merged.get("overcommitPercent", 0)
    return Strategy(
        enable=merged["enable"],
        aggregate_seconds=merged["metricAggregateDurationSeconds"],
        report_seconds=merged["metricReportIntervalSeconds"],
        windows=tuple(merged["metricAggregatePolicy"].get("durations") or ()),
        memory_collect_policy=merged["metricMemoryCollectPolicy"],
        cpu=colocation.Rule(
            policy=colocation.cpu_policy(merged["cpuCalculatePolicy"]),
            reclaim_percent=merged["cpuReclaimThresholdPercent"],
            cap_percent=merged.get("batchCPUThresholdPercent"),
            overcommit_percent=overcommit,
        ),
        memory=colocation.Rule(
            policy=colocation.memory_policy(merged["memoryCalculatePolicy"]),
            reclaim_percent=merged["memoryReclaimThresholdPercent"],
            cap_percent=merged.get("batchMemoryThresholdPercent"),
            overcommit_percent=overcommit,
        ),
        degrade_seconds=merged["degradeTimeMinutes"] * 60,
        refresh_seconds=merged["updateTimeThresholdSeconds"],
        difference=merged["resourceDiffThreshold"],
        mid=_mid(merged),
        extensions=merged.get("extensions") or {},
    )


def _mid(merged: Mapping[str, Any]) -> Mid:
    return Mid(
        static=merged.get("midReclaimMode") == _STATIC,
        cpu_cap=merged["midCPUThresholdPercent"],
        memory_cap=merged["midMemoryThresholdPercent"],
        unallocated=merged["midUnallocatedPercent"],
        static_cpu=merged["midStaticCPUReservedPercent"],
        static_memory=merged["midStaticMemoryReservedPercent"],
    )


def read_normalization(merged: Mapping[str, Any]) -> Normalization:
    """Read how the cpu of a node is normalized."""
    found = configuration.CPUNormalizationStrategy.model_validate(merged)
    return Normalization(bool(found.enable), found.default_ratio, found.ratio_model or {})


def read_amplification(merged: Mapping[str, Any]) -> Amplification:
    """Read how a node is amplified."""
    found = configuration.ResourceAmplificationStrategy.model_validate(merged)
    return Amplification(bool(found.enable), found.resource_amplification_ratio or {})
