"""What Terway is told."""

import json

import msgspec
import pytest

from agent.hooks.network import bandwidth, terway_qos
from agent.model import edits, state, strategy_settings
from api.koordinator.metadata import qos

R = edits.Role
KEY = "koordinator.sh/networkQOS"
KERNEL = state.Kernel(roles=frozenset({R.TERWAY_LIMITS, R.TERWAY_PODS}))
CLASSES = strategy_settings.Classes(
    network={
        qos.QoS.LS: strategy_settings.Network(True, "100M", "200M", 10, 50),
        qos.QoS.BE: strategy_settings.Network(False, 1, 2, 3, 4),
    },
    network_policy="terway-qos",
)
SLO = strategy_settings.Strategies(
    classes=CLASSES, system=strategy_settings.System(bandwidth=800_000_000)
)


def test_the_limits_of_node_and_classes_are_bytes():
    assert terway_qos.limits(CLASSES, 800_000_000) == (
        "hw_tx_bps_max 100000000\n"
        "hw_rx_bps_max 100000000\n"
        "offline_l1_tx_bps_min 10000000\n"
        "offline_l1_tx_bps_max 50000000\n"
        "offline_l1_rx_bps_min 12500000\n"
        "offline_l1_rx_bps_max 25000000\n"
        "offline_l2_tx_bps_min 0\n"
        "offline_l2_tx_bps_max 0\n"
        "offline_l2_rx_bps_min 0\n"
        "offline_l2_rx_bps_max 0\n"
    )


def test_more_than_there_is_is_an_error_and_nothing_changes(placed):
    with pytest.raises(bandwidth.BandwidthError, match="100M of the class LS"):
        terway_qos.limits(CLASSES, 50_000_000)
    slo = msgspec.structs.replace(SLO, system=strategy_settings.System(bandwidth=50_000_000))
    found = terway_qos.decide(state.NodeState(at=0, pods=(placed(),), kernel=KERNEL), slo)
    assert not found.decided
    assert "what Terway was told stands" in found.reason
    assert "100M of the class LS is more than the node has" in found.unmet


@pytest.mark.parametrize(
    ("quality", "kubernetes_qos", "expected"),
    [
        ("SYSTEM", "Burstable", 0),
        ("LSE", "Guaranteed", 1),
        ("LSR", "Guaranteed", 1),
        ("LS", "Burstable", 1),
        ("BE", "BestEffort", 2),
        ("", "Guaranteed", 1),
        ("", "Burstable", 1),
        ("", "BestEffort", 2),
    ],
)
def test_the_priority_of_a_pod(placed, quality, kubernetes_qos, expected):
    pod = placed(quality=quality, kubernetes_qos=kubernetes_qos)
    listed, _ = terway_qos.pods(state.NodeState(at=0, pods=(pod,)))
    assert listed["uid-a"]["prio"] == expected


def test_pods_are_listed_with_what_they_may_use(placed):
    both = placed(annotations={KEY: '{"ingressLimit":"10M","egressLimit":"20M"}'})
    half = placed("b", annotations={KEY: '{"egressLimit":"20M"}'})
    bad = placed("c", annotations={KEY: "{"})
    found = terway_qos.decide(
        state.NodeState(at=0, pods=(both, half, bad, placed("d")), kernel=KERNEL), SLO
    )
    texts = {edit.role: edit.value for edit in found.wanted}
    listed = json.loads(texts[R.TERWAY_PODS])
    assert listed["uid-a"] == {
        "podName": "a",
        "podNamespace": "default",
        "podUID": "uid-a",
        "prio": 1,
        "cgroupDir": "/sys/fs/cgroup/net_cls/a",
        "qosConfig": {"ingressBandwidth": 1_250_000, "egressBandwidth": 2_500_000},
    }
    assert listed["uid-d"]["qosConfig"] == {"ingressBandwidth": 0, "egressBandwidth": 0}
    assert set(listed) == {"uid-a", "uid-d"}
    assert "default/b: networkQOS names one limit only" in found.reason
    assert found.figures["problems"] == 2
    assert set(texts) == {R.TERWAY_LIMITS, R.TERWAY_PODS}


@pytest.mark.parametrize(
    ("slo", "kernel", "said"),
    [
        (strategy_settings.Strategies(), KERNEL, "netQOSPolicy is not terway-qos"),
        (SLO, state.Kernel(), "host.terwayQos"),
    ],
    ids=["another policy", "no folder"],
)
def test_terway_is_told_nothing(placed, slo, kernel, said):
    found = terway_qos.decide(state.NodeState(at=0, pods=(placed(),), kernel=kernel), slo)
    assert found.wanted == ()
    assert said in found.reason
