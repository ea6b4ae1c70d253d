"""NodeSLO is read in both shapes; the documented figures come out."""

import pytest

from api import resources
from api.koordinator.settings import slo
from api.wire import base
from tests import builders


def node_slo(**spec):
    return builders.an_object(resources.NODE_SLOS, "node-1", spec=spec)


def test_shorthand_thresholds_are_folded(manifests):
    read = slo.review_node_slo(manifests["000-nodeslo-node-001"])
    thresholds = read.value.spec.resource_used_threshold_with_be
    assert thresholds is not None
    assert thresholds.wire() == {
        "enable": True,
        "cpuSuppressThresholdPercent": 65,
        "cpuEvictThresholdPercent": 85,
        "memoryEvictThresholdPercent": 75,
        "memoryRequestUtilizationPercent": 80,
    }
    assert read.warnings == ()


def test_what_was_written_stays(manifests):
    raw = manifests["000-nodeslo-node-001"]
    before = repr(raw)
    written = slo.read_node_slo(raw).spec.wire()["resourceThresholdStrategy"]
    assert written == raw["spec"]["resourceThresholdStrategy"]
    assert repr(raw) == before


@pytest.mark.parametrize(
    ("kind", "identity", "memory"),
    [
        ("lsr_class", 0, (100, 100, 120, 95, 50, -25)),
        ("ls_class", 2, (0, 0, 100, 90, 30, -25)),
        ("be_class", -1, (0, 0, 100, 80, 30, 50)),
    ],
)
def test_the_complete_example(manifests, kind, identity, memory):
    strategy = slo.read_node_slo(manifests["000-nodeslo-node-001"]).spec.resource_qos_strategy
    settings = getattr(strategy, kind)
    assert settings.cpu_qos.group_identity == identity
    qos = settings.memory_qos
    assert memory == (
        qos.min_limit_percent,
        qos.low_limit_percent,
        qos.throttling_percent,
        qos.wmark_ratio,
        qos.wmark_scale_permill,
        qos.wmark_min_adj,
    )


def test_both_spellings_of_block_io(manifests):
    strategy = slo.read_node_slo(manifests["000-nodeslo-node-001"]).spec.resource_qos_strategy
    assert strategy is not None
    assert strategy.lsr_class is not None
    assert strategy.lsr_class.blkio_qos is not None
    assert strategy.lsr_class.blkio_qos.enable is False
    differing = {"blkIOQOS": {"enable": True}, "blkioQOS": {"enable": False}}
    read = slo.review_node_slo(node_slo(resourceQOSStrategy={"beClass": differing}))
    strategy = read.value.spec.resource_qos_strategy
    assert strategy is not None
    assert strategy.be_class is not None
    assert strategy.be_class.blkio_qos is not None
    assert strategy.be_class.blkio_qos.enable is False
    (warning,) = read.warnings
    assert warning == (
        "spec.resourceQOSStrategy.beClass.blkIOQOS.enable: differs from "
        "spec.resourceQOSStrategy.beClass.blkioQOS.enable, which is used"
    )


def test_block_io_is_folded_key_by_key():
    block = {"name": "/dev/vda", "type": "device"}
    both = {"blkIOQOS": {"enable": True}, "blkioQOS": {"enable": None, "blocks": [block]}}
    read = slo.review_node_slo(node_slo(resourceQOSStrategy={"beClass": both}))
    strategy = read.value.spec.resource_qos_strategy
    assert strategy is not None
    assert strategy.be_class is not None
    assert strategy.be_class.blkio_qos is not None
    assert strategy.be_class.blkio_qos.wire() == {"enable": True, "blocks": [block]}
    assert read.warnings == ()


@pytest.mark.parametrize("spelling", ["blkioQOS", "blkIOQOS"])
def test_block_io_that_is_no_object_is_refused_in_either_spelling(spelling):
    both = {"blkIOQOS": {"enable": True}, "blkioQOS": {"enable": True}, spelling: "on"}
    with pytest.raises(base.ReadError, match=rf"beClass\.{spelling}"):
        slo.read_node_slo(node_slo(resourceQOSStrategy={"beClass": both}))


def test_the_published_shape_wins_and_the_difference_is_reported():
    read = slo.review_node_slo(
        node_slo(
            resourceThresholdStrategy={"enable": True, "thresholds": {"cpu-suppress-percent": 60}},
            resourceUsedThresholdWithBE={"cpuSuppressThresholdPercent": 70, "enable": None},
        )
    )
    thresholds = read.value.spec.resource_used_threshold_with_be
    assert thresholds is not None
    assert (thresholds.cpu_suppress_threshold_percent, thresholds.enable) == (70, True)
    (warning,) = read.warnings
    assert warning == (
        "spec.resourceThresholdStrategy.thresholds.cpu-suppress-percent: 60 differs from "
        "spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent: 70, which is used"
    )


def test_equal_figures_in_both_shapes_are_no_conflict():
    read = slo.review_node_slo(
        node_slo(
            resourceThresholdStrategy={"thresholds": {"cpu-suppress-percent": 60}},
            resourceUsedThresholdWithBE={"cpuSuppressThresholdPercent": 60},
        )
    )
    assert read.warnings == ()


def test_the_sample(manifests):
    spec = slo.read_node_slo(manifests["002-nodeslo-production-node-slo"]).spec
    assert spec.wire() == manifests["002-nodeslo-production-node-slo"]["spec"]


def test_recommended_memory_settings_are_legal(manifests):
    for settings in (
        {"minLimitPercent": 100, "lowLimitPercent": 100, "throttlingPercent": 120},
        {"minLimitPercent": 20, "lowLimitPercent": 20, "wmarkRatio": 90, "wmarkMinAdj": -25},
        {"throttlingPercent": 80, "wmarkRatio": 75, "wmarkMinAdj": 50},
    ):
        strategy = {"lsClass": {"memoryQOS": settings}}
        assert slo.read_node_slo(node_slo(resourceQOSStrategy=strategy)).spec.wire() == {
            "resourceQOSStrategy": strategy
        }
    raw = manifests["000-nodeslo-memory-tuning"]
    assert slo.read_node_slo(raw).spec.wire() == raw["spec"]


def under(kind, part, **settings):
    return {"resourceQOSStrategy": {kind: {part: settings}}}


BAD = [
    ({"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 101}}, "cpuSuppressThreshold"),
    ({"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": -1}}, "cpuSuppressThreshold"),
    ({"resourceThresholdStrategy": {"thresholds": {"cpu-suppress-percent": 101}}}, "cpu-suppress"),
    ({"cpuBurstStrategy": {"policy": "sometimes"}}, "policy"),
    ({"cpuBurstStrategy": {"cpuBurstPercent": 10001}}, "cpuBurstPercent"),
    ({"systemStrategy": {"totalNetworkBandwidth": "-1"}}, "totalNetworkBandwidth"),
    (under("lsClass", "memoryQOS", wmarkRatio=101), "wmarkRatio"),
    (under("lsClass", "memoryQOS", wmarkScalePermill=0), "wmarkScalePermill"),
    (under("lsClass", "memoryQOS", wmarkMinAdj=-26), "wmarkMinAdj"),
    (under("lsClass", "memoryQOS", wmarkMinAdj=51), "wmarkMinAdj"),
    (under("lsClass", "memoryQOS", minLimitPercent=-1), "minLimitPercent"),
    (under("lsClass", "cpuQOS", groupIdentity=3), "groupIdentity"),
    (under("lsClass", "networkQOS", ingressLimit=101), "ingressLimit"),
    (under("lsClass", "networkQOS", ingressLimit="-5M"), "ingressLimit"),
    (under("lsClass", "networkQOS", ingressLimit="fast"), "ingressLimit"),
    (under("lsClass", "networkQOS", ingressLimit="101%"), "ingressLimit"),
]


@pytest.mark.parametrize(("spec", "field"), BAD)
def test_figures_outside_their_range_are_refused(spec, field):
    with pytest.raises(base.ReadError, match=f"NodeSLO node-1: spec.*{field}"):
        slo.read_node_slo(node_slo(**spec))


def test_thresholds_on_requests_may_exceed_a_hundred():
    read = slo.read_node_slo(
        node_slo(resourceUsedThresholdWithBE={"memoryAllocatableEvictThresholdPercent": 110})
    )
    thresholds = read.spec.resource_used_threshold_with_be
    assert thresholds is not None
    assert thresholds.memory_allocatable_evict_threshold_percent == 110


def test_every_section_is_kept():
    spec = {
        "resourceUsedThresholdWithBE": {"enable": True},
        "resourceQOSStrategy": {
            name: {
                "cpuQOS": {"enable": True},
                "memoryQOS": {"enable": True},
                "blkioQOS": {"blocks": [{"name": "/dev/vda", "ioCfg": {"readIOPS": 5}}]},
                "networkQOS": {"ingressLimit": "50M", "egressRequest": 10, "egressLimit": "10%"},
                "resctrlQOS": {"catRangeEndPercent": 30},
            }
            for name in ("lsrClass", "lsClass", "beClass", "systemClass")
        },
        "cpuBurstStrategy": {"policy": "auto", "sharePoolThresholdPercent": 50},
        "systemStrategy": {"schedFeatures": {"ID_EXPELLER_SHARE_CORE": False}},
        "hostApplications": [{"name": "nginx", "cgroupPath": {"base": "CgroupRoot"}}],
        "extensions": {"Object": {"plugin": {"a": 1}}},
    }
    read = slo.read_node_slo(node_slo(**spec))
    assert read.spec.wire() == spec
    assert read.extensions == {"plugin": {"a": 1}}
    flat = slo.read_node_slo(node_slo(extensions={"plugin": {"a": 1}}))
    assert flat.extensions == {"plugin": {"a": 1}}


def test_the_status_tells_when_the_spec_was_applied(manifests):
    read = slo.read_node_slo(manifests["000-nodeslo-node-001"])
    assert read.status.node_metric is not None
    assert read.status.node_metric.update_time == 1704110400
