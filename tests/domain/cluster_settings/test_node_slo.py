"""What a NodeSLO leaves unsaid has the published default."""

import pytest

from api.koordinator.metadata import qos
from api.koordinator.settings import strategies
from api.wire import base
from domain.cluster_settings import node_slo
from tests.reference import cases


@pytest.mark.vectors
def test_completed_specs_of_the_reference():
    cases.check(
        "node_slo_agent_merge",
        lambda case: node_slo.completed(case.given["spec"]),
        lambda case: case.expected["spec"],
        {},
    )


def test_nothing_said_means_nothing_is_done():
    nothing = node_slo.DEFAULT
    assert nothing.thresholds.enable is False
    assert nothing.thresholds.cpu_suppress_threshold_percent == 65
    assert nothing.thresholds.memory_evict_threshold_percent == 70
    assert nothing.memory_evict_lower_percent == 68
    assert nothing.cpu_evict_lower_percent is None
    assert nothing.cpu_evict_window_seconds == 300
    assert nothing.burst.policy == "none"
    assert nothing.system.total_network_bandwidth == "0"
    for quality in qos.QoS:
        settings = nothing.of(quality)
        assert settings.cpu_qos == strategies.CPUQOS(
            enable=False, group_identity=0, sched_idle=0, core_expeller=False
        )
        assert settings.memory_qos is not None
        assert settings.memory_qos.wmark_scale_permill == 50


SHORTHAND = {
    "resourceThresholdStrategy": {
        "enable": True,
        "thresholds": {
            "cpu-suppress-percent": 65,
            "cpu-evict-threshold-percent": 85,
            "memory-evict-threshold-percent": 75,
        },
    },
    "resourceQOSStrategy": {
        "lsrClass": {"blkIOQOS": {"enable": True, "blocks": [{"name": "/dev/vda"}]}}
    },
}


def test_the_shorthand_counts():
    read = node_slo.of_spec(SHORTHAND)
    assert (read.thresholds.enable, read.thresholds.memory_evict_threshold_percent) == (True, 75)
    assert read.thresholds.cpu_evict_threshold_percent == 85
    assert (read.memory_evict_lower_percent, read.cpu_evict_lower_percent) == (73, 83)
    blocks = read.of(qos.QoS.LSR).blkio_qos
    assert blocks is not None
    assert [block.name for block in blocks.blocks] == ["/dev/vda"]


def test_lower_marks_that_are_given_count():
    spec = {
        "resourceUsedThresholdWithBE": {
            "memoryEvictThresholdPercent": 1,
            "cpuEvictThresholdPercent": 80,
            "cpuEvictLowerPercent": 60,
            "cpuEvictTimeWindowSeconds": 20,
        }
    }
    read = node_slo.of_spec(spec)
    assert read.memory_evict_lower_percent == 0
    assert read.cpu_evict_lower_percent == 60
    assert read.cpu_evict_window_seconds == 20
    given = node_slo.of_spec({"resourceUsedThresholdWithBE": {"memoryEvictLowerPercent": 50}})
    assert given.memory_evict_lower_percent == 50


@pytest.mark.parametrize(
    ("name", "quality", "identity", "memory", "cache"),
    [
        ("lsrClass", qos.QoS.LSR, 2, (95, 20, -25), 100),
        ("lsrClass", qos.QoS.LSE, 2, (95, 20, -25), 100),
        ("lsClass", qos.QoS.LS, 2, (95, 20, -25), 100),
        ("lsClass", qos.QoS.NONE, 2, (95, 20, -25), 100),
        ("beClass", qos.QoS.BE, -1, (95, 20, 50), 30),
        ("systemClass", qos.QoS.SYSTEM, 0, (0, 50, 0), 100),
    ],
)
def test_parts_that_are_switched_on_have_the_defaults_of_their_class(
    name, quality, identity, memory, cache
):
    parts = {
        "cpuQOS": {"enable": True},
        "memoryQOS": {"enable": True, "throttlingPercent": 80},
        "resctrlQOS": {"enable": True},
        "networkQOS": {"enable": True, "egressRequest": "10%"},
    }
    read = node_slo.of_spec({"resourceQOSStrategy": {name: parts}}).of(quality)
    assert read.cpu_qos is not None
    assert read.cpu_qos.group_identity == identity
    got = read.memory_qos
    assert got is not None
    assert (got.wmark_ratio, got.wmark_scale_permill, got.wmark_min_adj) == memory
    assert got.throttling_percent == 80
    assert read.resctrl_qos is not None
    assert read.resctrl_qos.cat_range_end_percent == cache
    assert read.network_qos is not None
    assert strategies.percent(read.network_qos.egress_request) == 10


def test_host_applications_and_extensions_are_taken_as_they_are():
    application = {"name": "nginx", "cgroupPath": {"base": "CgroupRoot"}}
    spec = {"hostApplications": [application], "extensions": {"Object": {"a": 1}}}
    read = node_slo.read({"metadata": {"name": "n1"}, "spec": spec})
    assert [app.name for app in read.host_applications] == ["nginx"]
    assert read.extensions == {"a": 1}


def test_a_spec_that_cannot_be_read_names_the_field():
    with pytest.raises(base.ReadError, match="cpuSuppressThresholdPercent"):
        node_slo.of_spec({"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 101}})
