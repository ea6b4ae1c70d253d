"""Block I/O of best-effort work."""

import json

import msgspec
import pytest

from agent.hooks import blkio
from agent.model import edits, state, strategy_settings
from api.koordinator.metadata import qos

KEY = "koordinator.sh/blkioQOS"
DISKS = {"device:/dev/vdb": "254:16", "podvolume:uid-a/data": "254:32"}
VDB = strategy_settings.Device("/dev/vdb", read_iops=1000, write_bps=10_485_760, weight=60)
ROOT = strategy_settings.Device(
    "/dev/vdb", read_latency=500, user_model=True, model=(1, 2, 3, 4, 5, 6)
)


@pytest.fixture
def now(placed):
    groups = {"Guaranteed": "k", "Burstable": "k/b", "BestEffort": "k/e"}
    return state.NodeState(at=0, pods=(placed(),), qos_groups=groups, disks=DISKS)


def values(decision):
    return {(edit.role, edit.group): edit.value for edit in decision.wanted}


def test_the_class_is_limited_and_weighed(now):
    classes = strategy_settings.Classes(devices={qos.QoS.BE: (VDB,)})
    assert values(blkio.decide(now, classes)) == {
        (edits.Role.IO_READ_IOPS, "k/e"): "254:16 1000",
        (edits.Role.IO_WRITE_BPS, "k/e"): "254:16 10485760",
        (edits.Role.IO_WEIGHT, "k/e"): "254:16 60",
    }


def test_the_kernel_is_told_what_a_disk_can_do(now):
    found = values(blkio.decide(now, strategy_settings.Classes(root_devices=(ROOT,))))
    assert found == {
        (edits.Role.IO_COST_QOS, ""): (
            "254:16 enable=1 ctrl=user rpct=95 rlat=500 wpct=95 wlat=3000"
        ),
        (edits.Role.IO_COST_MODEL, ""): (
            "254:16 ctrl=user rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=6"
        ),
    }
    automatic = msgspec.structs.replace(ROOT, user_model=False)
    found = values(blkio.decide(now, strategy_settings.Classes(root_devices=(automatic,))))
    assert found[edits.Role.IO_COST_MODEL, ""] == "254:16 ctrl=auto"


def test_a_pod_limits_its_own_volume(now, placed):
    blocks = [{"name": "data", "type": "podvolume", "ioCfg": {"readBPS": 5, "ioWeightPercent": 10}}]
    asks = placed(annotations={KEY: json.dumps({"blocks": blocks})})
    found = values(
        blkio.decide(msgspec.structs.replace(now, pods=(asks,)), strategy_settings.Classes())
    )
    assert found == {
        (edits.Role.IO_READ_BPS, "a"): "254:32 5",
        (edits.Role.IO_WEIGHT, "a"): "254:32 10",
    }


@pytest.mark.parametrize("written", ["{", "{}", '{"blocks":[]}', ""])
def test_an_annotation_that_says_nothing(now, placed, written):
    asks = msgspec.structs.replace(now, pods=(placed(annotations={KEY: written}),))
    assert blkio.decide(asks, strategy_settings.Classes()).wanted == ()


@pytest.mark.parametrize("changes", [{"quality": ""}, {"quality": "LS"}], ids=["no class", "none"])
def test_pods_without_a_class_or_a_wish_are_left_alone(now, placed, changes):
    annotations = {KEY: '{"blocks":[{"name":"/dev/vdb","ioCfg":{"readBPS":1}}]}'}
    given = {"annotations": annotations} if not changes["quality"] else {}
    bare = msgspec.structs.replace(now, pods=(placed(**changes, **given),), qos_groups={})
    assert blkio.decide(bare, strategy_settings.Classes(devices={qos.QoS.BE: (VDB,)})).wanted == ()


def test_a_disk_of_the_root_may_be_unknown(now):
    classes = strategy_settings.Classes(root_devices=(strategy_settings.Device("/dev/none"), ROOT))
    found = blkio.decide(now, classes)
    assert len(found.wanted) == 2
    assert "/dev/none" in found.reason


def test_a_device_without_figures_changes_nothing(now):
    classes = strategy_settings.Classes(
        devices={qos.QoS.BE: (strategy_settings.Device("/dev/vdb"),)}
    )
    assert blkio.decide(now, classes).wanted == ()


def test_an_unknown_disk_is_named(now):
    classes = strategy_settings.Classes(
        devices={qos.QoS.BE: (strategy_settings.Device("/dev/none", read_iops=1),)}
    )
    found = blkio.decide(now, classes)
    assert found.wanted == ()
    assert "device:/dev/none" in found.reason
