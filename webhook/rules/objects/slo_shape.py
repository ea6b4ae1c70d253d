"""Check NodeSLOs and NodeMetrics: values out of range, and settings that contradict each other."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.koordinator.metrics import nodemetric
from api.koordinator.settings import configuration, slo, strategies
from api.wire import base
from domain import field_ownership
from domain.cluster_settings import value_limits
from webhook import review

_PAIRS: Final = (
    ("memory_evict_lower_percent", "memory_evict_threshold_percent"),
    ("cpu_evict_lower_percent", "cpu_evict_threshold_percent"),
    ("memory_allocatable_evict_lower_percent", "memory_allocatable_evict_threshold_percent"),
    ("cpu_allocatable_evict_lower_percent", "cpu_allocatable_evict_threshold_percent"),
    ("cpu_evict_be_satisfaction_lower_percent", "cpu_evict_be_satisfaction_upper_percent"),
)
_LIMITED: Final = {configuration.RESOURCE_THRESHOLD: "resourceUsedThresholdWithBE"}
"""Keys of the cluster settings, and where a NodeSLO has values within the same limits."""
_CLASSES: Final = ("lsr_class", "ls_class", "be_class", "system_class", "cgroup_root")


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Look at values and their limits, and at bounds that belong together."""
    read = slo.review_node_slo(asked.object)
    spec = read.value.spec
    doubts = (*_thresholds(spec), *_caches(spec))
    return review.Findings(tuple(_faults(asked.object, spec)), (*read.warnings, *doubts))


def check_metric(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Report where the two shapes of a NodeMetric disagree."""
    return review.Findings((), nodemetric.review_node_metric(asked.object).warnings)


def _faults(body: review.Pod, spec: slo.Spec) -> Iterator[str]:
    """Yield the values that are not allowed, but for those that a manager alone has set.

    They come from the cluster settings, where they are refused or reported. Refused here, they
    would keep every other setting from the node.
    """
    written = {name: value for name, value in spec.wire().items() if name in _LIMITED.values()}
    said = _without_managers(written, review.section(body, "metadata").get("managedFields"))
    for key, name in _LIMITED.items():
        part = (f"spec.{name}", said.get(name) or {})
        yield from map(str, value_limits.faults(key, (part,), pairs=False))


def _without_managers(written: Mapping[str, Any], managed_fields: Any) -> dict[str, Any]:
    managers = field_ownership.owned(managed_fields, field_ownership.is_managers)
    others = field_ownership.owned(
        managed_fields, lambda entry: not field_ownership.is_managers(entry)
    )
    kept: dict[str, Any] = {}
    for path, value in field_ownership.leaves(written):
        if field_ownership.covers(others, path) or not field_ownership.covers(managers, path):
            field_ownership.place(kept, path, value)
    return kept


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
