"""Check NodeSLOs and NodeMetrics: settings that are legal one by one and contradict each other."""

from collections.abc import Iterator
from typing import Final

from api.koordinator.metrics import nodemetric
from api.koordinator.settings import slo, strategies
from api.wire import base
from webhook import review

_PAIRS: Final = (
    ("memory_evict_lower_percent", "memory_evict_threshold_percent"),
    ("cpu_evict_lower_percent", "cpu_evict_threshold_percent"),
    ("memory_allocatable_evict_lower_percent", "memory_allocatable_evict_threshold_percent"),
    ("cpu_allocatable_evict_lower_percent", "cpu_allocatable_evict_threshold_percent"),
    ("cpu_evict_be_satisfaction_lower_percent", "cpu_evict_be_satisfaction_upper_percent"),
)
_CLASSES: Final = ("lsr_class", "ls_class", "be_class", "system_class", "cgroup_root")


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Look at bounds that belong together.

    Nothing is refused: the manager writes these objects, and a node without one is worse off.
    """
    read = slo.review_node_slo(asked.object)
    doubts = (*_thresholds(read.value.spec), *_caches(read.value.spec))
    return review.Findings((), (*read.warnings, *doubts))


def check_metric(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Report where the two shapes of a NodeMetric disagree."""
    return review.Findings((), nodemetric.review_node_metric(asked.object).warnings)


def _thresholds(spec: slo.Spec) -> Iterator[str]:
    thresholds = spec.resource_used_threshold_with_be
    for lower, upper in _PAIRS if thresholds is not None else ():
        low, high = getattr(thresholds, lower), getattr(thresholds, upper)
        if low is not None and high is not None and low >= high:
            path = "spec.resourceUsedThresholdWithBE"
            yield (
                f"{path}.{base.wire_name(lower)}: {low} is not below "
                f"{base.wire_name(upper)}, which is {high}"
            )


def _caches(spec: slo.Spec) -> Iterator[str]:
    qos = spec.resource_qos_strategy
    for name in _CLASSES if qos is not None else ():
        settings: strategies.ClassQOS | None = getattr(qos, name)
        cache = settings.resctrl_qos if settings is not None else None
        start = cache.cat_range_start_percent if cache is not None else None
        end = cache.cat_range_end_percent if cache is not None else None
        if start is not None and end is not None and start >= end:
            place = f"spec.resourceQOSStrategy.{base.wire_name(name)}"
            yield (
                f"{place}.resctrlQOS.catRangeStartPercent: {start} is not below "
                f"catRangeEndPercent, which is {end}"
            )
