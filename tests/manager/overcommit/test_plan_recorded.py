"""What nodes lend, against recorded cases: values, zones, every figure, and when it is written."""

import json
import re
from typing import Any

import msgspec
import pytest

from api import names
from api.kubernetes import core
from api.wire import durations, quantity
from domain.lending import colocation
from manager.cluster_settings import strategy
from manager.model import projections
from manager.overcommit import calculation, demand, inventory, node_status, zones_plan
from manager.overcommit import plan as node_resource
from tests.reference import cases, differences

pytestmark = pytest.mark.vectors

FIGURES = {
    "nodeCapacity": "capacity",
    "nodeSafetyMargin": "margin",
    "systemUsageOrNodeReserved": "system",
    "systemUsage": "system",
    "nodeReserved": "reserved",
    "podHPUsed": "used",
    "podHPMaxUsedRequest": "peak",
    "podHPReq": "requested",
    "podHPRequest": "requested",
}
"""What the figures in the recorded sentence are called here."""


def pods_of(given: dict[str, Any]) -> dict[str, projections.Pod]:
    raw = msgspec.convert(given["pods"] or [], list[core.Pod])
    read = {pod.metadata.key: projections.pod(pod) for pod in raw}
    return {key: pod for key, pod in read.items() if pod is not None}


def seen(given: dict[str, Any]) -> calculation.Seen:
    metric = given["nodeMetric"]
    report = (
        projections.Report(None, colocation.NOTHING, {})
        if metric is None
        else projections.report(metric)
    )
    return calculation.Seen(
        node=projections.node(msgspec.convert(given["node"], core.Node)),
        report=None if metric is None else report,
        demand=demand.total(pods_of(given), report),
        rules=strategy.read(given["strategy"]),
        enabled=True,
        now=durations.timestamp(given["now"]),
        since_write=None,
    )


def values(case: cases.Case, resources: tuple[str, ...]) -> dict[str, int] | None:
    found = node_resource.breakdown(seen(case.given))
    lent_now = {name: found.of(name) for name in resources}
    if None in lent_now.values():
        assert not found.lends
        return None
    return {name: item.calculated for name, item in lent_now.items()}


def recorded(case: cases.Case, resources: tuple[str, ...]) -> dict[str, int] | None:
    """The recorded values; without a report nothing is calculated, which takes them away here."""
    if "error" in case.expected or any(case.expected[name].get("reset") for name in resources):
        return None
    return {name: case.expected[name]["value"] for name in resources}


def zones_of(case: cases.Case) -> dict[str, Any] | None:
    raw = case.given.get("nodeResourceTopology")
    if raw is None or case.given["nodeMetric"] is None:
        return None
    there, now = inventory.read_topology(raw), seen(case.given)
    held = tuple(demand.held(pods_of(case.given), now.report))
    shares = zones_plan.calculated(now, there, held)
    if shares is None:
        return None
    return {
        name: {zone.name: share[part] for zone, share in zip(there.zones, shares, strict=True)}
        for part, name in enumerate(names.BATCH_RESOURCES)
    }


def recorded_zones(case: cases.Case) -> dict[str, Any] | None:
    found = {name: case.expected.get(name, {}).get("zones") for name in names.BATCH_RESOURCES}
    return None if None in found.values() else found


def test_batch() -> None:
    cases.check(
        "batch_resource",
        lambda case: (values(case, names.BATCH_RESOURCES), zones_of(case)),
        lambda case: (recorded(case, names.BATCH_RESOURCES), recorded_zones(case)),
        differences.of("batch_resource"),
    )


def test_mid() -> None:
    cases.check(
        "mid_resource",
        lambda case: values(case, names.MID_RESOURCES),
        lambda case: recorded(case, names.MID_RESOURCES),
        differences.of("mid_resource"),
    )


def test_every_term_is_the_recorded_one() -> None:
    compared = 0
    for case in cases.read("batch_resource"):
        found = None if "error" in case.expected else node_resource.breakdown(seen(case.given))
        if found is None or not found.lends:
            continue
        for name, unit in zip(names.BATCH_RESOURCES, (1, 10**9), strict=True):
            said = case.expected[name]["message"].rpartition("thresholdRatio")[2]
            item = found.of(name)
            terms = {term.name: _up(term.value, unit) for term in item.terms}
            for word, figure in re.findall(r"(\w+):(-?\d+)", said):
                # A term that memory is not asked for by its policy is not in our sentence either.
                if (key := FIGURES.get(word)) in terms:
                    compared += 1
                    figures = (case.name, name, word, terms[key], case.expected[name]["message"])
                    # Everything but the capacity is told there as what is taken away.
                    sign = 1 if key == "capacity" else -1
                    assert terms[key] == sign * int(figure), figures
    assert compared


def _up(value: int, unit: int) -> int:
    """Divide and round away from zero."""
    return -(-value // unit) if value >= 0 else value // unit


def prepared(case: cases.Case) -> tuple[Any, ...]:
    given = case.given
    node = projections.node(msgspec.convert(given["node"], core.Node))
    calculated = {
        name: item["value"]
        for name, item in given["calculated"].items()
        if item.get("value") is not None
    }
    ratio = given.get("cpuNormalizationRatio")
    if ratio is None:
        ratio = node.annotations.get(names.ANNOTATION_CPU_NORMALIZATION, "")
    batch = node_status.batch(calculated, node.annotations, ratio)
    wanted = node_status.Wanted({name: batch.values.get(name) for name in names.BATCH_RESOURCES})
    news = node_status.news(node, wanted, given["resourceDiffThreshold"])
    return dict(batch.values), bool(news), bool(batch.problem), _amounts(json.loads(batch.origin))


def _recorded_preparation(case: cases.Case) -> tuple[Any, ...]:
    out = case.expected
    standing = _amounts({"resources": out["allocatable"]})
    assert standing == _amounts({"resources": out["capacity"]})
    origin = json.loads(out["annotations"][names.ANNOTATION_ORIGIN_ALLOCATABLE])
    return standing, out["needSync"], "error" in out, _amounts(origin)


def _amounts(origin: dict[str, Any]) -> dict[str, int]:
    return {
        name: quantity.whole(value)
        for name, value in (origin.get("resources") or {}).items()
        if name in names.BATCH_RESOURCES
    }


def test_preparation() -> None:
    cases.check(
        "node_resource_prepare",
        prepared,
        _recorded_preparation,
        differences.of("node_resource_prepare"),
    )
