"""Looking at all nodes at once finds what looking at each of them would find."""

import dataclasses
import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.koordinator.metadata import qos
from domain.devices.requests import accelerators
from domain.lending import colocation
from manager.cluster_settings import effective
from manager.model import projections
from manager.overcommit import calculation, sweep, zones_plan
from manager.overcommit import controller as controllers
from manager.overcommit import plan as node_resource
from process.runtime import clock as clocks
from tests.manager.overcommit.swept import (
    GIB,
    NODE,
    NOW,
    Cluster,
    _taken,
    _topology,
    amplifications,
    colocations,
    metric,
    node,
    normalizations,
    policies,
    read,
    steps,
)


def filled(listed: list[tuple[str, str, Any]]) -> Cluster:
    made = Cluster()
    for name in ("n0", "n1"):
        made.put(made.nodes, name, node(name))
        made.put(made.metrics, name, metric(projections.Report(NOW, colocation.NOTHING, {})))
        made.put(made.topologies, name, _topology([NODE] * 2, "fast"))
    for member, key, value in listed:
        if isinstance(value, projections.Report):
            value = metric(value)
        elif isinstance(value, projections.Node):
            value = node(key, **{k: getattr(value, k) for k in value.__struct_fields__[2:]})
        made.put(getattr(made, member), key, value)
    return made


@given(
    listed=steps,
    colocation_config=colocations,
    cpu_normalization_config=normalizations,
    resource_amplification_config=amplifications,
    since=st.dictionaries(
        st.sampled_from(["n0", "n1", "n2"]), st.sampled_from([1.0, 299.0, 300.0])
    ),
)
def test_columns_and_nodes_agree(listed, since, **sections) -> None:
    agree(filled(listed), read(**sections), since)


def agree(made: Cluster, given_: effective.ClusterSettings, since: dict[str, float]) -> None:
    picture = made.sweep.picture(given_, NOW)
    looks = made.sweep.look(given_, NOW, since.get)
    later, written, told = dict(looks.later), set(), set()
    known = [found.name for found in picture.nodes]
    assert set(known) == {one.name for one in made.nodes if one.capacity is not None}
    for at, name in enumerate(known):
        seen = _seen(made, given_, name, since.get(name))
        found = node_resource.breakdown(seen)
        assert picture.lends[at] == found.lends, name
        if found.lends:
            by_name = [found.of(r) for r in (*names.BATCH_RESOURCES, *names.MID_RESOURCES)]
            assert picture.calculated[:, at].tolist() == [item.calculated for item in by_name]
            assert picture.offered[:, at].tolist() == [item.offered for item in by_name]
        plans = [node_resource.planned(seen), _zones(made, picture, seen, at)]
        if any(_writes(step) for plan in plans for step in plan.steps):
            written.add(name)
        elif any(plan.steps for plan in plans):
            told.add(name)
        elif name in later:
            times = [plan.again_in for plan in plans if plan.again_in is not None]
            assert later[name] == pytest.approx(min(times))
    assert set(looks.now) == written | told


def _seen(
    made: Cluster, given_: effective.ClusterSettings, name: str, ago: float | None
) -> calculation.Seen:
    clock = clocks.ManualClock(NOW)
    seen = controllers.Observer(made.stores, lambda: given_, clock).seen(
        given_, made.nodes.get(name)
    )
    return dataclasses.replace(seen, since_write=ago)


def _zones(made: Cluster, picture: sweep.Picture, seen: calculation.Seen, at: int) -> Any:
    there = made.topologies.get(seen.node.name)
    held = made.stores.demands.held(seen.node.name)
    shares = None if there is None else zones_plan.calculated(seen, there, held)
    mine = picture.zones[:, picture.parts.node == at].T.tolist()
    if shares is not None:
        assert mine == [list(share) for share in shares]
    return zones_plan.planned(seen, there, held, 1)


def _writes(step: Any) -> bool:
    return hasattr(step, "body")


@pytest.mark.parametrize("policy", list(colocation.Policy))
def test_columns_and_nodes_agree_in_a_crowd(policy: colocation.Policy) -> None:
    rng = random.Random(policy.value)
    made = Cluster()

    def some(cpu: int, gib: int) -> colocation.Amount:
        return colocation.Amount(rng.randrange(cpu), rng.randrange(gib * GIB))

    for number in range(12):
        name = f"n{number}"
        made.put(made.nodes, name, node(name))
        zones = [NODE, NODE] if number % 3 else [NODE]
        made.put(made.topologies, name, _topology(zones, "fast"))
        keys = [f"d/{name}-{one}" for one in range(20)]
        measured = {key: (some(1_000, 2), rng.choice(list(qos.Band))) for key in keys[5:]}
        report = projections.Report(NOW, some(3_000, 8), measured, usage=some(40_000, 128))
        made.put(made.metrics, name, metric(report))
        for key in keys[:15]:
            pod = projections.Pod(
                node=name,
                band=rng.choice(list(qos.Band)),
                request=some(2_000, 4),
                exclusive=rng.random() < 0.3,
                zones=rng.choice([(), (), (0,), (0, 1)]),
            )
            made.put(made.pods, key, pod)
    policies_ = {"cpuCalculatePolicy": policy.value, "memoryCalculatePolicy": policy.value}
    on = {"enable": True, "overcommitPercent": 30, **policies_}
    agree(made, read(colocation_config=on), {"n3": 1.0})
    # Pods come, go and move, reports follow, and somebody else hands out batch resources.
    for number in range(0, 12, 2):
        name, key = f"n{number}", f"d/n{number}-7"
        made.put(made.pods, f"d/{name}-9", None)
        made.put(made.pods, key, msgspec.structs.replace(made.pods.get(key), node="n1"))
        used = {f"d/{name}-{one}": (some(1_000, 2), qos.Band.PROD) for one in range(3, 12)}
        known = {names.ANNOTATION_THIRD_PARTY: _taken(number * 100, number)}
        made.put(made.nodes, name, node(name, annotations=known))
        if number % 4:
            made.put(made.metrics, name, metric(projections.Report(NOW, some(3_000, 8), used)))
    agree(made, read(colocation_config=on), {"n3": 1.0})
    assert (made.sweep.picture(read(colocation_config=on), NOW).offered[:2] > 0).all()


absurd = st.sampled_from([0, 1, -1, 10**9, 2**53, 2**62, 2**63 - 1, 2**80, -(2**70)])
absurd_amounts = st.builds(colocation.Amount, absurd, absurd)


@given(
    capacity=absurd_amounts,
    allocatable=absurd_amounts,
    request=absurd_amounts,
    usage=absurd_amounts,
    percent=absurd,
    minutes=absurd,
    policy=policies,
)
def test_absurd_amounts_disturb_nobody_else(
    capacity, allocatable, request, usage, percent, minutes, policy
) -> None:
    made = filled([])
    written = {
        "cpuCalculatePolicy": policy,
        "memoryCalculatePolicy": policy,
        "cpuReclaimThresholdPercent": percent,
        "overcommitPercent": percent,
        "degradeTimeMinutes": minutes,
        "updateTimeThresholdSeconds": minutes,
    }
    known = {
        names.ANNOTATION_COLOCATION_STRATEGY: json.dumps(written),
        names.ANNOTATION_THIRD_PARTY: _taken(request.cpu, usage.memory),
        names.ANNOTATION_CPU_NORMALIZATION: "1e308",
    }
    odd = node("n0", capacity=capacity, allocatable=allocatable, annotations=known)
    made.put(made.nodes, "n0", odd)
    for number in range(3):
        pod = projections.Pod("n0", qos.Band.PROD, request, exclusive=False, zones=(0,))
        made.put(made.pods, f"d/p{number}", pod)
    measured = {"d/p0": (usage, qos.Band.PROD), "d/gone": (usage, qos.Band.PROD)}
    made.put(made.metrics, "n0", metric(projections.Report(NOW, usage, measured, usage=usage)))
    made.put(made.topologies, "n0", _topology([NODE, NODE], "fast"))
    on = read(colocation_config={"enable": True})
    picture = made.sweep.picture(on, NOW)
    other = [found.name for found in picture.nodes].index("n1")
    found = node_resource.breakdown(_seen(made, on, "n1", None))
    assert picture.offered[0, other] == found.of(names.BATCH_CPU).offered
    node_resource.planned(_seen(made, on, "n0", None))
    made.sweep.look(on, NOW, lambda _: None)


@pytest.mark.parametrize("enable", [True, False])
def test_nodes_with_devices_are_looked_at_one_by_one(enable: bool) -> None:
    offering, marked = {names.FPGA: 100}, {names.ANNOTATION_DEVICES_OFFERED: "true"}
    given_ = read(colocation_config={"enable": enable})
    made = Cluster()
    made.put(made.nodes, "n0", node("n0"))
    made.put(made.nodes, "n1", node("n1"))
    made.put(made.nodes, "n2", node("n2", published=(offering, offering), annotations=marked))
    made.put(made.devices, "n1", accelerators.Inventory(gpus={names.GPU_CORE: 100}))
    assert {"n1", "n2"} <= {*made.sweep.look(given_, NOW, lambda _: None).now}


def test_nodes_with_bandwidth_are_looked_at_one_by_one() -> None:
    made, on = Cluster(), read(colocation_config={"enable": True})
    made.put(made.nodes, "n1", node("n1"))
    assert made.sweep.look(on, NOW, lambda _: None).now == ()
    marked = {names.ANNOTATION_CPU_NORMALIZATION: "1.00", names.ANNOTATION_NETWORK_BANDWIDTH: "1G"}
    made.put(made.nodes, "n1", node("n1", annotations=marked))
    assert made.sweep.look(on, NOW, lambda _: None).now == ("n1",)
    offering = {names.NETWORK_BANDWIDTH: 10**9}
    made.put(made.nodes, "n1", node("n1", published=(offering, offering)))
    assert made.sweep.look(on, NOW, lambda _: None).now == ("n1",)


def test_an_empty_cluster_has_no_news() -> None:
    on = read(colocation_config={"enable": True})
    assert Cluster().sweep.look(on, NOW, lambda _: None) == sweep.Looks((), ())


def test_rows_are_used_again() -> None:
    made = filled([])
    pod = projections.Pod("n0", qos.Band.PROD, colocation.Amount(1, 1), exclusive=False)
    for number in range(1000):
        made.put(made.pods, f"d/p{number}", pod)
        made.put(made.pods, f"d/p{number}", None)
    on = read(colocation_config={"enable": True})
    assert made.sweep.picture(on, NOW).lends.all()
    assert made.sweep.pods.rows_used < 10
