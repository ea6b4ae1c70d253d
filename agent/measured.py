"""What is measured beside cpu and memory, made only where a gate or a setting asks for it."""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from agent import collectors
from agent import settings as agent_settings
from process import metrics

Maker = Callable[[agent_settings.Settings, metrics.Registry], collectors.Collector]


def of(
    settings: agent_settings.Settings, enabled: Collection[str], figures: metrics.Registry
) -> tuple[collectors.Collector, ...]:
    """Return the sources that are asked for; nothing of the others is even imported."""
    wanted = [make for gate, make in _BY_GATE.items() if gate in enabled]
    if settings.measure.disks:
        wanted.append(_disks)
    if settings.measure.network == "processes":
        wanted.append(_traffic)
    return tuple(make(settings, figures) for make in wanted)


def _pressure(settings: agent_settings.Settings, figures: metrics.Registry) -> collectors.Collector:
    from agent.observe import pressure  # noqa: PLC0415 - see above

    return pressure.Pressures(figures, settings.measure.pressure_seconds)


def _performance(
    settings: agent_settings.Settings, figures: metrics.Registry
) -> collectors.Collector:
    from agent.observe import perf_event, performance  # noqa: PLC0415 - see above

    chosen = settings.measure
    habits = performance.Habits(
        chosen.performance_seconds,
        chosen.performance_window_seconds,
        chosen.performance_descriptors,
    )
    return performance.Performance(figures, habits, perf_event.Kernel())


def _coldness(settings: agent_settings.Settings, figures: metrics.Registry) -> collectors.Collector:
    from agent import coldness  # noqa: PLC0415 - see above

    return coldness.Coldness(figures, settings.measure.cold_pages_seconds)


def _caches(settings: agent_settings.Settings, figures: metrics.Registry) -> collectors.Collector:
    from agent.observe import resctrl  # noqa: PLC0415 - see above

    return resctrl.Caches(figures, settings.measure.cache_seconds)


def _volumes(settings: agent_settings.Settings, _figures: metrics.Registry) -> collectors.Collector:
    from agent.observe import volumes  # noqa: PLC0415 - see above

    return volumes.Volumes(settings.measure.disks_seconds)


def _disks(settings: agent_settings.Settings, figures: metrics.Registry) -> collectors.Collector:
    from agent.observe import disks  # noqa: PLC0415 - see above

    return disks.Disks(figures, settings.measure.disks_seconds)


def _traffic(settings: agent_settings.Settings, figures: metrics.Registry) -> collectors.Collector:
    from agent.observe import traffic  # noqa: PLC0415 - see above

    return traffic.Traffic(figures, settings.measure.network_seconds)


_BY_GATE: Final[Mapping[str, Maker]] = {
    "PSICollector": _pressure,
    "CPICollector": _performance,
    "ColdPageCollector": _coldness,
    "ResctrlCollector": _caches,
    "BlkIOReconcile": _volumes,
}
