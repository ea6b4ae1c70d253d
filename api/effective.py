"""What counts where a NodeSLO leaves something unsaid: the published defaults, laid underneath."""

from collections.abc import Mapping
from typing import Final, Literal, TypeVar

from api import base, strategies

S = TypeVar("S", bound=base.Model)
QOSClass = Literal["lsr", "ls", "be", "system"]

THRESHOLDS: Final = strategies.ResourceThresholds(
    enable=False,
    cpu_suppress_threshold_percent=65,
    cpu_suppress_policy="cpuset",
    memory_evict_threshold_percent=70,
    cpu_evict_time_window_seconds=300,
    cpu_evict_policy="evictByRealLimit",
)
BURST: Final = strategies.CPUBurstStrategy(
    policy="none",
    cpu_burst_percent=1000,
    cfs_quota_burst_percent=300,
    cfs_quota_burst_period_seconds=-1,
    share_pool_threshold_percent=50,
)


def _cpu(identity: int, *, expeller: bool) -> strategies.CPUQOS:
    return strategies.CPUQOS(
        enable=False, group_identity=identity, sched_idle=0, core_expeller=expeller
    )


def _memory(ratio: int, scale: int, shift: int) -> strategies.MemoryQOS:
    return strategies.MemoryQOS(
        enable=False,
        min_limit_percent=0,
        low_limit_percent=0,
        throttling_percent=0,
        wmark_ratio=ratio,
        wmark_scale_permill=scale,
        wmark_min_adj=shift,
        priority_enable=0,
        priority=0,
        oom_kill_group=0,
    )


def _resctrl(end: int) -> strategies.ResctrlQOS:
    return strategies.ResctrlQOS(
        enable=False, cat_range_start_percent=0, cat_range_end_percent=end, mba_percent=100
    )


_BLKIO: Final = strategies.BlkIOQOS(enable=False)
_NETWORK: Final = strategies.NetworkQOS(enable=False)


def _class(
    cpu: strategies.CPUQOS, memory: strategies.MemoryQOS, resctrl: strategies.ResctrlQOS
) -> strategies.ClassQOS:
    return strategies.ClassQOS(
        cpu_qos=cpu, memory_qos=memory, resctrl_qos=resctrl, blkio_qos=_BLKIO, network_qos=_NETWORK
    )


CLASSES: Final[Mapping[QOSClass, strategies.ClassQOS]] = {
    "lsr": _class(_cpu(2, expeller=True), _memory(95, 20, -25), _resctrl(100)),
    "ls": _class(_cpu(2, expeller=True), _memory(95, 20, -25), _resctrl(100)),
    "be": _class(_cpu(-1, expeller=False), _memory(95, 20, 50), _resctrl(30)),
    "system": _class(_cpu(0, expeller=False), _memory(0, 50, 0), _resctrl(100)),
}
# What holds for a part of a class that is switched off.
_OFF_CPU: Final = _cpu(0, expeller=False)
_OFF_MEMORY: Final = _memory(0, 50, 0)
_OFF_RESCTRL: Final = _resctrl(100)


def laid(under: S, over: S | None) -> S:
    """Return one strategy with what another one says laid over it."""
    if over is None:
        return under
    said = {name: getattr(over, name) for name in over.model_fields_set}
    return under.but(**{name: value for name, value in said.items() if value is not None})


def thresholds(given: strategies.ResourceThresholds | None) -> strategies.ResourceThresholds:
    """Return the thresholds that count."""
    return laid(THRESHOLDS, given)


def burst(given: strategies.CPUBurstStrategy | None) -> strategies.CPUBurstStrategy:
    """Return the CPU burst strategy that counts."""
    return laid(BURST, given)


def of_class(
    strategy: strategies.ResourceQOSStrategy | None, kind: QOSClass
) -> strategies.ClassQOS:
    """Return the settings that count for a class; parts that are switched off are neutral."""
    written: strategies.ClassQOS | None = getattr(strategy, f"{kind}_class", None)
    given = written or strategies.ClassQOS()
    default = CLASSES[kind]
    return strategies.ClassQOS(
        cpu_qos=_part(default.cpu_qos, given.cpu_qos, _OFF_CPU),
        memory_qos=_part(default.memory_qos, given.memory_qos, _OFF_MEMORY),
        resctrl_qos=_part(default.resctrl_qos, given.resctrl_qos, _OFF_RESCTRL),
        blkio_qos=_part(_BLKIO, given.blkio_qos, _BLKIO),
        network_qos=_part(_NETWORK, given.network_qos, _NETWORK),
    )


def _part(default: S | None, given: S | None, off: S) -> S:
    if given is None or default is None or not getattr(given, "enable", None):
        return off
    return laid(default, given)
