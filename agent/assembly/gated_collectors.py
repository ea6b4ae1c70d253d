"""What is measured beside cpu and memory, made only where a gate or a setting asks for it."""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from agent import settings as agent_settings
from agent.host import file_descriptors
from agent.observe import collectors
from agent.observe.cold_memory import cold_memory
from process.runtime import metrics

Maker = Callable[[agent_settings.MeasureSettings, metrics.Registry], collectors.Collector]


def of(
    settings: agent_settings.MeasureSettings, enabled: Collection[str], figures: metrics.Registry
) -> tuple[collectors.Collector, ...]:
    """Return the sources that are asked for; nothing of the others is even imported."""
    wanted = [make for gate, make in _BY_GATE.items() if gate in enabled]
    if settings.disks:
        wanted.append(_disks)
    if settings.network == "processes":
        wanted.append(_traffic)
    return tuple(make(settings, figures) for make in wanted)


def _pressure(
    settings: agent_settings.MeasureSettings, figures: metrics.Registry
) -> collectors.Collector:
    from agent.observe.cgroups import pressure  # noqa: PLC0415 - 9 KiB

    return pressure.Pressures(figures, settings.pressure_seconds)


def _throttling(
    settings: agent_settings.MeasureSettings, figures: metrics.Registry
) -> collectors.Collector:
    from agent.observe.cgroups import throttling  # noqa: PLC0415 - 7 KiB

    return throttling.Throttling(figures, settings.throttling_seconds)


def _performance(
    settings: agent_settings.MeasureSettings, figures: metrics.Registry
) -> collectors.Collector:
    from agent.observe.cgroups import cycles_per_instruction, perf_event  # noqa: PLC0415 - 44 KiB

    allowed = file_descriptors.share(file_descriptors.limit()).counters
    habits = cycles_per_instruction.Habits(
        settings.performance_seconds,
        settings.performance_window_seconds,
        min(settings.performance_descriptors, allowed),
    )
    return cycles_per_instruction.Performance(figures, habits, perf_event.Kernel())


def _coldness(
    settings: agent_settings.MeasureSettings, figures: metrics.Registry
) -> collectors.Collector:
    return cold_memory.Coldness(figures, settings.cold_pages_seconds)


def _caches(
    settings: agent_settings.MeasureSettings, figures: metrics.Registry
) -> collectors.Collector:
    from agent.observe.cgroups import resctrl  # noqa: PLC0415 - 14 KiB

    return resctrl.Caches(figures, settings.cache_seconds)


def _volumes(
    settings: agent_settings.MeasureSettings, _figures: metrics.Registry
) -> collectors.Collector:
    from agent.observe.storage import volumes  # noqa: PLC0415 - 53 KiB

    return volumes.Volumes(settings.disks_seconds)


def _disks(
    settings: agent_settings.MeasureSettings, figures: metrics.Registry
) -> collectors.Collector:
    from agent.observe.storage import disks  # noqa: PLC0415 - 52 KiB

    return disks.Disks(figures, settings.disks_seconds)


def _traffic(
    settings: agent_settings.MeasureSettings, figures: metrics.Registry
) -> collectors.Collector:
    from agent.observe.network import traffic  # noqa: PLC0415 - 35 KiB

    return traffic.Traffic(figures, settings.network_seconds)


_BY_GATE: Final[Mapping[str, Maker]] = {
    "PSICollector": _pressure,
    "ThrottlingCollector": _throttling,
    "CPICollector": _performance,
    "ColdPageCollector": _coldness,
    "ResctrlCollector": _caches,
    "BlkIOReconcile": _volumes,
}
