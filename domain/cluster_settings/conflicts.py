"""Settings of a NodeSLO that are legal one by one and contradict each other."""

from collections.abc import Iterator
from typing import Final

from api.koordinator.settings import slo, strategies
from api.wire import base, quantity
from domain.cluster_settings import node_slo

_PATH: Final = "spec.resourceQOSStrategy"
_THRESHOLD_PAIRS: Final = (
    ("memory_evict_lower_percent", "memory_evict_threshold_percent"),
    ("cpu_evict_lower_percent", "cpu_evict_threshold_percent"),
    ("memory_allocatable_evict_lower_percent", "memory_allocatable_evict_threshold_percent"),
    ("cpu_allocatable_evict_lower_percent", "cpu_allocatable_evict_threshold_percent"),
    ("cpu_evict_be_satisfaction_lower_percent", "cpu_evict_be_satisfaction_upper_percent"),
)
_RANKED: Final = ("lsr_class", "ls_class", "be_class")
_CLASSES: Final = (*_RANKED, "system_class", "cgroup_root")
_STRONGER: Final[tuple[node_slo.Class, ...]] = ("lsrClass", "lsClass")
_NETWORK_PAIRS: Final = (
    ("ingress_request", "ingress_limit"),
    ("egress_request", "egress_limit"),
)


def of(spec: slo.Spec) -> Iterator[str]:
    """Yield a sentence per contradiction."""
    yield from _thresholds(spec.resource_used_threshold_with_be)
    strategy = spec.resource_qos_strategy
    if strategy is None:
        return
    for name in _CLASSES:
        settings: strategies.ClassQOS | None = getattr(strategy, name)
        if settings is not None:
            path = f"{_PATH}.{base.wire_name(name)}"
            yield from _memory(path, settings.memory_qos)
            yield from _cache(path, settings.resctrl_qos)
            yield from _network(path, settings.network_qos)
    batch = list(_batch_above_online(spec))
    yield from batch
    yield from _written_ranks(strategy, _RANKED[:-1] if batch else _RANKED)


def _thresholds(thresholds: strategies.ResourceThresholds | None) -> Iterator[str]:
    for lower, upper in _THRESHOLD_PAIRS if thresholds is not None else ():
        low, high = getattr(thresholds, lower), getattr(thresholds, upper)
        if low is not None and high is not None and low >= high:
            yield (
                f"spec.resourceUsedThresholdWithBE.{base.wire_name(lower)}: {low} is not below "
                f"{base.wire_name(upper)}, which is {high}"
            )


def _memory(path: str, memory: strategies.MemoryQOS | None) -> Iterator[str]:
    if memory is not None and (memory.min_limit_percent or 0) > (memory.low_limit_percent or 0):
        yield f"{path}.memoryQOS.lowLimitPercent: below minLimitPercent, so it has no effect"


def _cache(path: str, cache: strategies.ResctrlQOS | None) -> Iterator[str]:
    start = cache.cat_range_start_percent if cache is not None else None
    end = cache.cat_range_end_percent if cache is not None else None
    if start is not None and end is not None and start >= end:
        yield (
            f"{path}.resctrlQOS.catRangeStartPercent: {start} is not below catRangeEndPercent, "
            f"which is {end}"
        )


def _network(path: str, network: strategies.NetworkQOS | None) -> Iterator[str]:
    for lower, upper in _NETWORK_PAIRS if network is not None else ():
        request, limit = getattr(network, lower), getattr(network, upper)
        (asked, in_percent), (most, of_percent) = _bandwidth(request), _bandwidth(limit)
        if in_percent is of_percent and 0 < most < asked:
            yield (
                f"{path}.networkQOS.{base.wire_name(lower)}: {request} is above "
                f"{base.wire_name(upper)}, which is {limit}"
            )


def _bandwidth(written: int | str) -> tuple[int, bool]:
    """Return a bandwidth and whether it is in percent; 0 as a limit is none."""
    share = strategies.percent(written)
    return (quantity.parse(written).nanos, False) if share is None else (share, True)


def _batch_above_online(spec: slo.Spec) -> Iterator[str]:
    """Compare what nodes enforce: a class without cpuQOS, or with it off, has identity 0."""
    # What plug-ins write has any depth, and says nothing about classes.
    quality = slo.Spec(resource_qos_strategy=spec.resource_qos_strategy)
    enforced = node_slo.of_spec(quality.wire())
    if enforced.policies.cpu_policy not in ("", "groupIdentity"):
        return
    name = min(_STRONGER, key=lambda one: _identity(enforced, one))
    lowest, batch = _identity(enforced, name), _identity(enforced, "beClass")
    if batch > lowest:
        cpu = enforced.classes[name].cpu_qos
        off = "" if cpu is not None and cpu.enable else ", whose cpuQOS is off"
        yield (
            f"{_PATH}.beClass.cpuQOS.groupIdentity: {batch} outranks {lowest} of the stronger "
            f"class {name}{off}"
        )


def _identity(enforced: node_slo.Enforced, name: node_slo.Class) -> int:
    cpu = enforced.classes[name].cpu_qos
    return (cpu.group_identity or 0) if cpu is not None else 0


def _written_ranks(
    strategy: strategies.ResourceQOSStrategy, names: tuple[str, ...]
) -> Iterator[str]:
    """Compare what is written, whether or not it is switched on."""
    stronger: tuple[str, int] | None = None
    for name in names:
        settings: strategies.ClassQOS | None = getattr(strategy, name)
        cpu = settings.cpu_qos if settings is not None else None
        identity = cpu.group_identity if cpu is not None else None
        if identity is None:
            continue
        wire = base.wire_name(name)
        if stronger is not None and identity > stronger[1]:
            yield (
                f"{_PATH}.{wire}.cpuQOS.groupIdentity: {identity} outranks {stronger[1]} of the "
                f"stronger class {stronger[0]}"
            )
        stronger = (wire, identity)
