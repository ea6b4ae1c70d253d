"""What NUMA zones offer to batch pods, and what of it is written."""

import pytest

from api import names
from api.koordinator.metadata import node_payloads
from api.koordinator.metadata.qos import Band
from api.kubernetes import core
from domain.lending import colocation, zones
from manager.cluster_settings import strategy
from manager.model import projections
from manager.overcommit import calculation, inventory, zones_plan
from manager.reconcile import actions

GIB = 1 << 30
NOW = 1_000_000.0
REFRESH = colocation.refresh_after(300, "n1")
CPU = {"name": "cpu", "capacity": "32", "allocatable": "32", "available": "20"}
MEMORY = {"name": "memory", "capacity": "128Gi", "allocatable": "128Gi", "available": "1Gi"}


def topology(*extra: dict[str, str], annotations: dict[str, str] | None = None):
    zone = {"type": "Node", "costs": [{"name": "node-0", "value": 10}]}
    listed = [
        {**zone, "name": f"node-{number}", "resources": [CPU, MEMORY, *extra]} for number in (0, 1)
    ]
    return inventory.read_topology(
        {"metadata": {"name": "n1", "annotations": annotations or {}}, "zones": listed}
    )


def seen(**changed: object) -> calculation.Seen:
    offers = {"cpu": "64", "memory": "256Gi"}
    node = core.Node(
        metadata=core.ObjectMeta(name="n1"),
        status=core.NodeStatus(capacity=offers, allocatable=offers),
    )
    given = {
        "node": projections.node(node),
        "report": projections.Report(NOW, colocation.Amount(3_000, 12 * GIB), {}),
        "demand": colocation.NO_DEMAND,
        "rules": strategy.read({"enable": True}),
        "enabled": True,
        "now": NOW,
        "since_write": None,
    }
    return calculation.Seen(**{**given, **changed})


def held(*bound: int) -> zones.Held:
    request = colocation.Amount(4_000, 8 * GIB)
    return zones.Held(colocation.demand(Band.PROD, request, None, exclusive=False), bound)


def offered(step: actions.Step) -> list[dict[str, dict[str, str]]]:
    assert isinstance(step, actions.Merge)
    return [
        {item["name"]: item for item in zone["resources"] if "batch" in item["name"]}
        for zone in step.body["zones"]
    ]


def test_what_zones_offer_is_added_in_order_and_nothing_else_is_touched() -> None:
    (step,) = zones_plan.planned(seen(), topology(), (held(1),), 7).steps
    assert step.body["metadata"] == {"resourceVersion": "7"}
    first, second = step.body["zones"]
    assert [item["name"] for item in first["resources"]] == [
        "cpu",
        names.BATCH_CPU,
        names.BATCH_MEMORY,
        "memory",
    ]
    assert first["costs"] == [{"name": "node-0", "value": 10}]
    assert [item for item in second["resources"] if item["name"] in {"cpu", "memory"}] == [
        CPU,
        MEMORY,
    ]
    # 32 cores less 40 % and half of what the system uses; the pod is bound to the second zone.
    amounts = [zone[names.BATCH_CPU] for zone in offered(step)]
    assert amounts[0] == {"name": names.BATCH_CPU, **dict.fromkeys(inventory.SIDES, "17700")}
    assert amounts[1]["allocatable"] == "13700"


def published(cpu: str) -> tuple[dict[str, str], dict[str, str]]:
    memory = 128 * GIB - int(128 * GIB * 0.35) - 6 * GIB
    return (
        {"name": names.BATCH_CPU, **dict.fromkeys(inventory.SIDES, cpu)},
        {"name": names.BATCH_MEMORY, **dict.fromkeys(inventory.SIDES, str(memory))},
    )


@pytest.mark.parametrize(
    ("cpu", "since", "writes", "again"),
    [
        pytest.param("17700", 10.0, False, None, id="same"),
        pytest.param("17600", 10.0, False, REFRESH - 10, id="hardly-changed"),
        pytest.param("17600", REFRESH, True, None, id="small-change-is-due"),
        pytest.param("10000", 10.0, True, None, id="much-changed"),
    ],
)
def test_when_it_is_written(cpu: str, since: float, writes: bool, again: float | None) -> None:
    there = topology(*published(cpu))
    planned = zones_plan.planned(seen(since_write=since), there, (), 7)
    assert (bool(planned.steps), planned.again_in) == (writes, again)


def test_only_the_side_that_changed_is_replaced() -> None:
    cpu, memory = published("17700")
    (step,) = zones_plan.planned(
        seen(since_write=1.0), topology({**cpu, "capacity": "9"}, memory), (), 7
    ).steps
    found = offered(step)[0][names.BATCH_CPU]
    assert {side: found[side] for side in inventory.SIDES} == dict.fromkeys(
        inventory.SIDES, "17700"
    )


def test_faster_cpu_counts_for_more() -> None:
    faster = strategy.Normalization(enable=True, default=1.5, models={})
    processors = node_payloads.CpuBasicInfo(cpu_model="fast")
    now = seen(normalization=faster, processors=processors)
    (step,) = zones_plan.planned(now, topology(), (), 7).steps
    assert offered(step)[0][names.BATCH_CPU]["allocatable"] == "26550"


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"enabled": False}, id="off"),
        pytest.param({"report": None}, id="no-report"),
        pytest.param({"now": NOW + 901}, id="old-report"),
    ],
)
def test_zones_of_nodes_that_lend_nothing_are_left_alone(changed) -> None:
    assert zones_plan.planned(seen(**changed), topology(), (), 7) == zones_plan.NOTHING


def test_topologies_without_amounts_are_left_alone() -> None:
    there = inventory.read_topology({"metadata": {"name": "n1"}, "zones": [{"name": "node-0"}]})
    assert zones_plan.planned(seen(), there, (), 7) == zones_plan.NOTHING
    assert zones_plan.planned(seen(), None, (), 7) == zones_plan.NOTHING
