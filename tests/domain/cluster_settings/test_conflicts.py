"""Settings of a NodeSLO that are legal one by one and contradict each other."""

import pathlib

import pytest

from api import resources
from api.koordinator.settings import slo
from domain.cluster_settings import conflicts
from tests import builders
from tests.planes.install import manifests

MANIFESTS = pathlib.Path(__file__).parents[2] / "manifests"
OFF = ", whose cpuQOS is off"


def found(**spec):
    raw = builders.an_object(resources.NODE_SLOS, "node-1", spec=spec)
    return tuple(conflicts.of(slo.read_node_slo(raw).spec))


def classes(**strategy):
    return found(resourceQOSStrategy=strategy)


def cpu(identity=None, *, enable=True):
    qos = {"enable": enable} if identity is None else {"enable": enable, "groupIdentity": identity}
    return {"cpuQOS": qos}


def network(**written):
    return {"networkQOS": written}


@pytest.mark.parametrize(
    ("strategy", "warning"),
    [
        (
            {"lsClass": {"memoryQOS": {"minLimitPercent": 50, "lowLimitPercent": 20}}},
            "lsClass.memoryQOS.lowLimitPercent: below minLimitPercent",
        ),
        (
            {"systemClass": {"memoryQOS": {"minLimitPercent": 50}}},
            "systemClass.memoryQOS.lowLimitPercent: below minLimitPercent",
        ),
        (
            {
                "lsClass": {"cpuQOS": {"groupIdentity": 1}},
                "beClass": {"cpuQOS": {"groupIdentity": 2}},
            },
            "beClass.cpuQOS.groupIdentity: 2 outranks 1 of the stronger class lsClass",
        ),
        (
            {"beClass": cpu(1)},
            f"beClass.cpuQOS.groupIdentity: 1 outranks 0 of the stronger class lsrClass{OFF}",
        ),
        (
            {"lsrClass": cpu(2), "lsClass": cpu(2, enable=False), "beClass": cpu(1)},
            f"beClass.cpuQOS.groupIdentity: 1 outranks 0 of the stronger class lsClass{OFF}",
        ),
        (
            {"lsrClass": cpu(), "lsClass": cpu(-1), "beClass": cpu(enable=False)},
            "beClass.cpuQOS.groupIdentity: 0 outranks -1 of the stronger class lsClass",
        ),
        (
            {"beClass": network(ingressRequest=60, ingressLimit=50)},
            "beClass.networkQOS.ingressRequest: 60 is above ingressLimit, which is 50",
        ),
        (
            {"lsClass": network(egressRequest="60%", egressLimit=50)},
            "lsClass.networkQOS.egressRequest: 60% is above egressLimit, which is 50",
        ),
        (
            {"beClass": network(egressRequest="1G", egressLimit="900M")},
            "beClass.networkQOS.egressRequest: 1G is above egressLimit, which is 900M",
        ),
        (
            {"beClass": {"resctrlQOS": {"catRangeStartPercent": 50, "catRangeEndPercent": 30}}},
            "beClass.resctrlQOS.catRangeStartPercent: 50 is not below catRangeEndPercent",
        ),
    ],
)
def test_classes_that_contradict_themselves_or_each_other(strategy, warning):
    (said,) = classes(**strategy)
    assert said.startswith(f"spec.resourceQOSStrategy.{warning}")


def test_an_eviction_that_would_end_above_where_it_starts():
    (said,) = found(
        resourceUsedThresholdWithBE={
            "memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 70}
    )  # fmt: skip
    assert said == (
        "spec.resourceUsedThresholdWithBE.memoryEvictLowerPercent: 70 is not below "
        "memoryEvictThresholdPercent, which is 70"
    )


@pytest.mark.parametrize(
    "strategy",
    [
        {"lsrClass": cpu(2), "lsClass": cpu(2), "beClass": cpu(-1)},
        {"lsrClass": cpu(), "lsClass": cpu(), "beClass": cpu()},
        {"beClass": cpu(-1)},
        {"beClass": cpu(0)},
        {"beClass": cpu(1, enable=False)},
        {"policies": {"cpuPolicy": "coreSched"}, "beClass": cpu(1)},
        {"beClass": network(ingressRequest=60)},
        {"beClass": network(ingressRequest=60, ingressLimit="50M")},
        {"beClass": network(ingressRequest=50, ingressLimit=50)},
        {"lsClass": {"memoryQOS": {"minLimitPercent": 0}}},
    ],
)
def test_what_fits_together_is_no_conflict(strategy):
    assert classes(**strategy) == ()


def published(name):
    (manifest,) = manifests.read((MANIFESTS / f"{name}.yaml").read_text())
    return tuple(conflicts.of(slo.read_node_slo(manifest).spec))


def test_the_complete_example():
    (warning,) = published("000-nodeslo-node-001")
    assert "lsClass.cpuQOS.groupIdentity: 2 outranks 0 of the stronger class lsrClass" in warning


def test_the_sample_ranks_batch_above_classes_that_are_off():
    (warning,) = published("002-nodeslo-production-node-slo")
    assert "beClass.cpuQOS.groupIdentity: 1 outranks 0" in warning
