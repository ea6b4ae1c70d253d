"""What a NodeSLO makes this node enforce, as the values that decisions take. Pure."""

from collections.abc import Mapping

from agent.model import state, strategy_settings
from api.koordinator.metadata import pod_overrides, qos
from api.koordinator.settings import strategies as wire
from api.wire import quantity
from domain.cluster_settings import node_slo

WAITING_PERCENT = 10
"""How long tasks have to wait for cpu, where the kernel says so, before usage evicts anybody."""
_BY_ALLOCATABLE = "evictByAllocatable"
_CLASSES: Mapping[qos.QoS, node_slo.Class] = {
    qos.QoS.LSR: "lsrClass",
    qos.QoS.LS: "lsClass",
    qos.QoS.BE: "beClass",
    qos.QoS.SYSTEM: "systemClass",
}


def thresholds(enforced: node_slo.Enforced) -> state.Thresholds:
    """Return how far best-effort work may go."""
    written = enforced.thresholds
    default = state.Thresholds(enable=False)
    percent = written.cpu_suppress_threshold_percent
    return state.Thresholds(
        enable=bool(written.enable),
        cpu_suppress_percent=default.cpu_suppress_percent if percent is None else percent,
        cpu_suppress_min_percent=written.cpu_suppress_min_percent,
        cpu_suppress_policy=written.cpu_suppress_policy or default.cpu_suppress_policy,
    )


def read(enforced: node_slo.Enforced) -> strategy_settings.Strategies:
    """Return everything else that a node enforces."""
    most = _overrides(enforced.overrides)
    return strategy_settings.Strategies(
        cpu_eviction=_cpu_eviction(enforced),
        memory_eviction=_memory_eviction(enforced),
        evicting=bool(enforced.thresholds.enable),
        burst=_burst(enforced.burst, most.burst),
        classes=_classes(enforced),
        system=_system(enforced.system),
        overrides=most,
    )


def _cpu_eviction(enforced: node_slo.Enforced) -> strategy_settings.CpuEviction:
    written = enforced.thresholds
    usage = written.cpu_evict_be_usage_threshold_percent
    return strategy_settings.CpuEviction(
        used=strategy_settings.Bounds(
            written.cpu_evict_threshold_percent, enforced.cpu_evict_lower_percent
        ),
        requested=strategy_settings.Bounds(
            written.cpu_allocatable_evict_threshold_percent,
            written.cpu_allocatable_evict_lower_percent,
        ),
        satisfaction=strategy_settings.Bounds(
            written.cpu_evict_be_satisfaction_upper_percent,
            written.cpu_evict_be_satisfaction_lower_percent,
        ),
        best_effort_usage=90 if usage is None else usage,
        best_effort=True,
        window_seconds=enforced.cpu_evict_window_seconds,
        by_allocatable=written.cpu_evict_policy == _BY_ALLOCATABLE,
        highest_priority=written.evict_enabled_priority_threshold,
        highest_priority_requested=written.allocatable_evict_priority_threshold,
        pressure=WAITING_PERCENT,
    )


def _memory_eviction(enforced: node_slo.Enforced) -> strategy_settings.MemoryEviction:
    written = enforced.thresholds
    return strategy_settings.MemoryEviction(
        used=strategy_settings.Bounds(
            written.memory_evict_threshold_percent, enforced.memory_evict_lower_percent
        ),
        requested=strategy_settings.Bounds(
            written.memory_allocatable_evict_threshold_percent,
            written.memory_allocatable_evict_lower_percent,
        ),
        all_requested=written.memory_request_utilization_percent,
        highest_priority=written.evict_enabled_priority_threshold,
        highest_priority_requested=written.allocatable_evict_priority_threshold,
    )


def _burst(
    written: wire.CPUBurstStrategy, most: strategy_settings.Burst
) -> strategy_settings.NodeBurst:
    pool = written.share_pool_threshold_percent
    return strategy_settings.NodeBurst(
        strategy_settings.Burst(
            written.policy or "none",
            written.cpu_burst_percent,
            written.cfs_quota_burst_percent,
            written.cfs_quota_burst_period_seconds,
        ),
        strategy_settings.NodeBurst().share_pool_percent if pool is None else pool,
        most=most,
    )


def _classes(enforced: node_slo.Enforced) -> strategy_settings.Classes:
    """Return the settings of the classes; a part that is off is absent, so that it is let go."""
    named = {name: enforced.classes[key] for name, key in _CLASSES.items()}
    root = enforced.root.blkio_qos
    return strategy_settings.Classes(
        cpu={name: _cpu(one.cpu_qos) for name, one in named.items() if one.cpu_qos},
        memory={
            name: _memory(one.memory_qos)
            for name, one in named.items()
            if one.memory_qos and one.memory_qos.enable
        },
        cache={name: _cache(one.resctrl_qos) for name, one in named.items() if one.resctrl_qos},
        devices={
            name: _devices(one.blkio_qos)
            for name, one in named.items()
            if one.blkio_qos and one.blkio_qos.enable
        },
        root_devices=_devices(root) if root and root.enable else (),
        network={name: _network(one.network_qos) for name, one in named.items() if one.network_qos},
        network_policy=enforced.policies.net_qos_policy or "",
        cpu_policy=enforced.policies.cpu_policy or "",
    )


def _overrides(written: pod_overrides.PodOverrideLimits) -> strategy_settings.Overrides:
    """Return what pods may ask for at most."""
    start, end, speed = (
        written.cat_range_start_percent,
        written.cat_range_end_percent,
        written.mba_percent,
    )
    cache = None
    if start is not None or end is not None or speed is not None:
        # Ends that are not named widen nothing.
        cache = strategy_settings.Cache(
            start_percent=100 if start is None else start,
            end_percent=0 if end is None else end,
            bandwidth_percent=0 if speed is None else speed,
        )
    return strategy_settings.Overrides(
        bounded=True,
        burst=strategy_settings.Burst(
            cpu_percent=written.cpu_burst_percent,
            quota_percent=written.cfs_quota_burst_percent,
            quota_period_seconds=written.cfs_quota_burst_period_seconds,
        ),
        memory=strategy_settings.Memory(
            min_percent=written.min_limit_percent,
            low_percent=written.low_limit_percent,
            priority=written.memory_priority,
            wmark_min_adj=written.wmark_min_adj,
        ),
        identity=written.group_identity,
        oom_score=written.oom_score_adj,
        cache=cache,
        refuse_eviction=written.refuse_eviction is not False,
        system_namespaces=frozenset(written.system_namespaces or ()),
    )


def _cpu(written: wire.CPUQOS) -> strategy_settings.Cpu:
    return strategy_settings.Cpu(
        enable=bool(written.enable),
        identity=written.group_identity or 0,
        idle=bool(written.sched_idle),
        expeller=bool(written.core_expeller),
    )


def _memory(written: wire.MemoryQOS) -> strategy_settings.Memory:
    return strategy_settings.Memory(
        min_percent=written.min_limit_percent,
        low_percent=written.low_limit_percent,
        throttling_percent=written.throttling_percent,
        wmark_ratio=written.wmark_ratio,
        wmark_scale=written.wmark_scale_permill,
        wmark_min_adj=written.wmark_min_adj,
        priority_enable=written.priority_enable,
        priority=written.priority,
        oom_group=written.oom_kill_group,
        page_cache_enable=written.page_cache_enable,
        page_cache_percent=written.page_cache_limit_percent,
        page_cache_size=written.page_cache_limit_size,
        page_cache_sync=written.page_cache_reclaim_sync,
    )


def _cache(written: wire.ResctrlQOS) -> strategy_settings.Cache:
    default = strategy_settings.Cache()
    start, end = written.cat_range_start_percent, written.cat_range_end_percent
    return strategy_settings.Cache(
        enable=bool(written.enable),
        start_percent=default.start_percent if start is None else start,
        end_percent=default.end_percent if end is None else end,
        bandwidth_percent=written.mba_percent,
    )


def _network(written: wire.NetworkQOS) -> strategy_settings.Network:
    return strategy_settings.Network(
        enable=bool(written.enable),
        ingress_request=written.ingress_request,
        ingress_limit=written.ingress_limit,
        egress_request=written.egress_request,
        egress_limit=written.egress_limit,
    )


def _devices(written: wire.BlkIOQOS) -> tuple[strategy_settings.Device, ...]:
    return tuple(_device(block) for block in written.blocks)


def _device(block: wire.Block) -> strategy_settings.Device:
    io = block.io_cfg
    model = (
        *(io.model_read_bps, io.model_read_seq_iops, io.model_read_rand_iops),
        *(io.model_write_bps, io.model_write_seq_iops, io.model_write_rand_iops),
    )
    rbps, rseq, rrand, wbps, wseq, wrand = (value or 1 for value in model)
    return strategy_settings.Device(
        name=block.name,
        kind=block.type or "device",
        read_iops=io.read_iops,
        write_iops=io.write_iops,
        read_bps=io.read_bps,
        write_bps=io.write_bps,
        weight=io.io_weight_percent,
        read_latency=io.read_latency,
        write_latency=io.write_latency,
        read_latency_percent=io.read_latency_percent,
        write_latency_percent=io.write_latency_percent,
        user_model=bool(io.enable_user_model),
        model=(rbps, rseq, rrand, wbps, wseq, wrand),
    )


def _system(written: wire.SystemStrategy) -> strategy_settings.System:
    return strategy_settings.System(
        min_free_factor=written.min_free_kbytes_factor,
        watermark_scale=written.watermark_scale_factor,
        memcg_reap=written.memcg_reap_back_ground,
        page_cache_limits=written.page_cache_limit_enabled,
        group_identity=written.sched_group_identity_enabled,
        idle_saver=written.sched_idle_saver_wmark,
        features=dict(written.sched_features or {}),
        bandwidth=quantity.whole(written.total_network_bandwidth),
    )
