"""What a NodeSLO leaves unsaid has the published default."""

import pytest

from api import effective, slo, strategies


def test_thresholds_without_figures():
    read = effective.thresholds(slo.read_node_slo({}).spec.resource_used_threshold_with_be)
    assert read.enable is False
    assert read.cpu_suppress_threshold_percent == 65
    assert read.memory_evict_threshold_percent == 70
    assert read.cpu_evict_time_window_seconds == 300
    assert read.cpu_evict_threshold_percent is None


def test_what_is_said_counts(manifests):
    spec = slo.read_node_slo(manifests["000-nodeslo-node-001"]).spec
    read = effective.thresholds(spec.resource_used_threshold_with_be)
    assert (read.enable, read.memory_evict_threshold_percent) == (True, 75)
    assert read.cpu_evict_time_window_seconds == 300
    burst = effective.burst(strategies.CPUBurstStrategy(policy="auto"))
    assert (burst.policy, burst.cfs_quota_burst_percent) == ("auto", 300)


def test_parts_that_are_switched_off_are_neutral():
    read = effective.of_class(None, "be")
    assert read.cpu_qos == strategies.CPUQOS(
        enable=False, group_identity=0, sched_idle=0, core_expeller=False
    )
    assert read.memory_qos is not None
    assert (read.memory_qos.wmark_ratio, read.memory_qos.wmark_scale_permill) == (0, 50)
    assert read.resctrl_qos is not None
    assert read.resctrl_qos.cat_range_end_percent == 100


@pytest.mark.parametrize(
    ("kind", "identity", "memory", "cache"),
    [
        ("lsr", 2, (95, 20, -25), 100),
        ("ls", 2, (95, 20, -25), 100),
        ("be", -1, (95, 20, 50), 30),
        ("system", 0, (0, 50, 0), 100),
    ],
)
def test_parts_that_are_switched_on_have_the_defaults_of_their_class(kind, identity, memory, cache):
    parts = strategies.ClassQOS(
        cpu_qos=strategies.CPUQOS(enable=True),
        memory_qos=strategies.MemoryQOS(enable=True, throttling_percent=80),
        resctrl_qos=strategies.ResctrlQOS(enable=True),
    )
    strategy = strategies.ResourceQOSStrategy(**{f"{kind}_class": parts})
    read = effective.of_class(strategy, kind)
    assert read.cpu_qos is not None
    assert read.cpu_qos.group_identity == identity
    qos = read.memory_qos
    assert qos is not None
    assert (qos.wmark_ratio, qos.wmark_scale_permill, qos.wmark_min_adj) == memory
    assert qos.throttling_percent == 80
    assert read.resctrl_qos is not None
    assert read.resctrl_qos.cat_range_end_percent == cache
