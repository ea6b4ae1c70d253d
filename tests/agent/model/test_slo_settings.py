"""What a NodeSLO becomes for decisions."""

import pathlib

import pytest
import yaml

from agent.model import slo_settings, state, strategy_settings
from api.koordinator.metadata import qos
from domain.cluster_settings import node_slo

MANIFESTS = pathlib.Path(__file__).parents[2] / "manifests"


def read(spec):
    return slo_settings.read(node_slo.of_spec(spec))


def test_nothing_said_means_nothing_enforced():
    found = read({})
    assert found == strategy_settings.Strategies(
        cpu_eviction=found.cpu_eviction,
        memory_eviction=strategy_settings.MemoryEviction(used=strategy_settings.Bounds(70, 68)),
        classes=found.classes,
        burst=strategy_settings.NodeBurst(most=found.overrides.burst),
        overrides=found.overrides,
    )
    assert found.overrides.bounded
    assert found.cpu_eviction.window_seconds == 300
    assert not found.evicting
    assert not any(cpu.enable for cpu in found.classes.cpu.values())
    assert found.classes.memory == {}
    assert found.classes.by_identity
    assert slo_settings.thresholds(node_slo.DEFAULT) == state.Thresholds(enable=False)


def test_the_documented_example_is_read_as_it_stands():
    raw = yaml.safe_load((MANIFESTS / "000-nodeslo-node-001.yaml").read_text())
    whole = node_slo.read(raw)
    found = slo_settings.read(whole)
    assert slo_settings.thresholds(whole) == state.Thresholds(True, 65)
    assert found.evicting
    assert found.cpu_eviction.used == strategy_settings.Bounds(85, 83)
    assert found.memory_eviction.used == strategy_settings.Bounds(75, 73)
    assert found.memory_eviction.all_requested == 80
    identities = {name: cpu.identity for name, cpu in found.classes.cpu.items() if cpu.enable}
    assert identities == {qos.QoS.LSR: 0, qos.QoS.LS: 2, qos.QoS.BE: -1}
    assert found.classes.memory[qos.QoS.LSR] == strategy_settings.Memory(
        100, 100, 120, 95, 50, -25, 0, 0, 0
    )
    assert found.classes.memory[qos.QoS.BE].wmark_ratio == 80
    assert found.classes.devices == {}


WRITTEN = {
    "resourceUsedThresholdWithBE": {
        "enable": True,
        "cpuSuppressPolicy": "cfsQuota",
        "cpuSuppressMinPercent": 10,
        "cpuEvictPolicy": "evictByAllocatable",
        "cpuEvictBEUsageThresholdPercent": 80,
        "evictEnabledPriorityThreshold": 5999,
    },
    "cpuBurstStrategy": {"policy": "auto", "sharePoolThresholdPercent": 40},
    "systemStrategy": {"minFreeKbytesFactor": 100, "schedFeatures": {"ID_IDLE_AVG": True}},
    "resourceQOSStrategy": {
        "policies": {"cpuPolicy": "coreSched"},
        "lsClass": {"cpuQOS": {"enable": True, "schedIdle": 1}},
        "beClass": {
            "resctrlQOS": {"enable": True, "catRangeEndPercent": 30, "mbaPercent": 50},
            "blkioQOS": {
                "enable": True,
                "blocks": [{"name": "/dev/vdb", "ioCfg": {"readIOPS": 5, "ioWeightPercent": 60}}],
            },
        },
        "cgroupRoot": {
            "blkioQOS": {
                "enable": True,
                "blocks": [
                    {
                        "name": "vg",
                        "type": "volumegroup",
                        "ioCfg": {"enableUserModel": True, "modelReadBPS": 7},
                    }
                ],
            }
        },
    },
}


def test_every_section_reaches_its_decision():
    found = read(WRITTEN)
    thresholds = slo_settings.thresholds(node_slo.of_spec(WRITTEN))
    assert thresholds == state.Thresholds(True, 65, 10, "cfsQuota")
    assert found.cpu_eviction.by_allocatable
    assert found.cpu_eviction.best_effort_usage == 80
    assert found.cpu_eviction.highest_priority == 5999
    assert found.burst.every.policy == "auto"
    assert found.burst.share_pool_percent == 40
    assert found.system == strategy_settings.System(
        min_free_factor=100, features={"ID_IDLE_AVG": True}
    )
    classes = found.classes
    assert classes.by_core
    assert classes.cpu[qos.QoS.LS].idle
    assert classes.cache[qos.QoS.BE] == strategy_settings.Cache(True, 0, 30, 50)
    assert classes.devices == {
        qos.QoS.BE: (strategy_settings.Device("/dev/vdb", read_iops=5, weight=60),)
    }
    (root,) = classes.root_devices
    assert (root.kind, root.user_model, root.model) == ("volumegroup", True, (7, 1, 1, 1, 1, 1))


@pytest.mark.parametrize("name", ["lsrClass", "lsClass", "beClass"])
def test_a_part_that_is_off_is_let_go(name):
    written = {"memoryQOS": {"enable": False, "minLimitPercent": 50}, "blkioQOS": {"enable": False}}
    found = read({"resourceQOSStrategy": {name: written}}).classes
    assert found.memory == {}
    assert found.devices == {}


def test_bandwidth_is_read_as_it_is_written():
    spec = {
        "resourceQOSStrategy": {
            "policies": {"netQOSPolicy": "terway-qos"},
            "lsClass": {"networkQOS": {"enable": True, "egressRequest": 10, "egressLimit": "50M"}},
        },
        "systemStrategy": {"totalNetworkBandwidth": "1G"},
    }
    found = read(spec)
    assert found.classes.network_policy == "terway-qos"
    assert found.system.bandwidth == 10**9
    assert found.classes.network[qos.QoS.LS] == strategy_settings.Network(
        True, egress_request=10, egress_limit="50M"
    )
    assert not found.classes.network[qos.QoS.BE].enable
    nothing = read({})
    assert (nothing.classes.network_policy, nothing.system.bandwidth) == ("tc", 0)
