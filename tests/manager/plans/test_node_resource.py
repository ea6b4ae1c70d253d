"""What a node lends: figures of the reference, of the documents, and what is written when."""

import json

import msgspec
import pytest

from api import core, durations, names, quantity
from domain import colocation
from manager import demand, strategy, views
from manager.plans import node_resource
from tests.reference import differences


def _lent(given):
    rules = strategy.read({**strategy.DEFAULT, **given["strategy"]})
    node = views.node(msgspec.convert(given["node"], core.Node))
    report = views.report(given["nodeMetric"])
    read = {
        pod.metadata.key: views.pod(pod) for pod in msgspec.convert(given["pods"], list[core.Pod])
    }
    pods = {key: pod for key, pod in read.items() if pod is not None}
    if colocation.is_stale(
        report.updated_at, durations.timestamp(given["now"]), rules.degrade_seconds
    ):
        return None
    return node_resource.lend(node, report, demand.total(pods, report), rules).amount


def _recorded(expected):
    cpu, memory = expected[names.BATCH_CPU], expected[names.BATCH_MEMORY]
    assert cpu.get("reset") == memory.get("reset")
    return None if cpu.get("reset") else (cpu["value"], memory["value"])


def test_figures_of_the_reference(reference) -> None:
    differing = {}
    compared = 0
    for case, given, expected in reference("batch_resource"):
        if given["nodeMetric"] is None:
            # Without a NodeMetric nothing is calculated; the plan for that is tested below.
            assert "error" in expected
            continue
        compared += 1
        if (lent := _lent(given)) != _recorded(expected):
            differing[case] = (lent, expected)
    assert differing.keys() == differences.of("batch_resource").keys()
    assert compared == 744


def test_offers_of_the_reference(reference) -> None:
    differing = {}
    for case, given, expected in reference("node_resource_prepare"):
        annotations = dict(given["node"]["metadata"]["annotations"])
        if "cpuNormalizationRatio" in given:
            annotations[names.ANNOTATION_CPU_NORMALIZATION] = given["cpuNormalizationRatio"]
        values = {name: item.get("value") for name, item in given["calculated"].items()}
        wanted = frozenset(name for name, value in values.items() if value is not None)
        lent = colocation.Amount(
            values.get(names.BATCH_CPU) or 0, values.get(names.BATCH_MEMORY) or 0
        )
        offer = node_resource.offer(lent, annotations, wanted)
        node = views.node(msgspec.convert(given["node"], core.Node))
        got = (
            dict(offer.values),
            dict(offer.values),
            node_resource.differs(node.published[1], offer.values, given["resourceDiffThreshold"]),
            bool(offer.problem),
            _amounts(json.loads(offer.origin)["resources"]),
        )
        origin = expected["annotations"].get(names.ANNOTATION_ORIGIN_ALLOCATABLE, "{}")
        want = (
            _amounts(expected["capacity"]),
            _amounts(expected["allocatable"]),
            expected["needSync"],
            "error" in expected,
            _amounts(json.loads(origin).get("resources") or {}),
        )
        if got != want:
            differing[case] = (got, want)
    assert differing.keys() == differences.of("node_resource_prepare").keys()


def _amounts(resources):
    return {
        name: quantity.whole(value)
        for name, value in resources.items()
        if name in names.BATCH_RESOURCES
    }


GIB = 1 << 30
NOW = 1_000_000.0


@pytest.fixture
def node() -> views.Node:
    return views.node(
        msgspec.convert(
            {
                "metadata": {"name": "n1", "uid": "u1"},
                "status": {
                    "capacity": {"cpu": "64", "memory": "256Gi"},
                    "allocatable": {"cpu": "62", "memory": "248Gi"},
                },
            },
            core.Node,
        )
    )


REPORT = views.Report(NOW, colocation.Amount(3_000, 12 * GIB), {})
DEMAND = colocation.Demand(
    requested=colocation.Amount(40_000, 120 * GIB),
    used=colocation.Amount(20_000, 90 * GIB),
    peak=colocation.Amount(44_000, 130 * GIB),
    firm=colocation.Amount(42_000, 122 * GIB),
)


def rules(**changed: object) -> strategy.Strategy:
    return strategy.read({**strategy.DEFAULT, "enable": True, **changed})


def test_worked_example(node: views.Node) -> None:
    lent = node_resource.lend(node, REPORT, DEMAND, rules())
    assert lent.amount == (15_400, int(64.4 * GIB) + 1)


@pytest.mark.parametrize(
    ("requested", "expected"),
    [pytest.param(100_000, 8_400, id="8.4-cores"), pytest.param(80_000, 14_400, id="14.4-cores")],
)
def test_overcommit_by_ratio(node: views.Node, requested: int, expected: int) -> None:
    big = msgspec.structs.replace(
        node,
        capacity=colocation.Amount(130_000, 256 * GIB),
        allocatable=colocation.Amount(128_000, 248 * GIB),
    )
    firm = colocation.Demand(firm=colocation.Amount(requested, 0))
    policy = rules(cpuCalculatePolicy="overcommitRatio", overcommitPercent=30)
    assert node_resource.lend(big, REPORT, firm, policy).cpu.value == expected
