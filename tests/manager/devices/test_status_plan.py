"""What the status of a Device says, and that it stays small."""

import json

import msgspec
import pytest

from api import names
from api.koordinator.metadata import qos
from domain.devices import device_report, inventory, pod_holdings
from domain.lending import colocation
from manager.devices import device_objects, node_holdings, status_plan
from manager.model import projections

TOTAL = {names.GPU_CORE: 100, names.GPU_MEMORY_RATIO: 100}


NOW = 1_700_000_000.0


def known(minor, ident=""):
    return device_report.Known("gpu", minor, ident, "", healthy=True, total=TOTAL)


def holds(name, percent, minors=(0,), containers=(("main", 1),)):
    amounts = {names.GPU_CORE: percent, names.GPU_MEMORY_RATIO: percent}
    granted = tuple(inventory.Granted(minor, amounts) for minor in minors)
    return pod_holdings.Holding("default", name, {"gpu": granted}, {"gpu": containers})


def test_shares_by_device_and_container():
    rows = device_report.rows(
        [known(0, "GPU-0"), known(1)], [holds("a", 50), holds("b", 100, (1,))]
    )
    assert status_plan.wanted(rows) == [
        {
            "device": {"deviceType": "gpu", "minor": 0, "uuid": "GPU-0"},
            "allocations": [
                {
                    "pod": {"namespace": "default", "name": "a"},
                    "container": "main",
                    "allocated": "50%",
                }
            ],
        },
        {
            "device": {"deviceType": "gpu", "minor": 1},
            "allocations": [
                {
                    "pod": {"namespace": "default", "name": "b"},
                    "container": "main",
                    "allocated": "100%",
                }
            ],
        },
    ]


def test_idle_devices_are_not_named_and_a_gone_one_is():
    rows = device_report.rows([known(0)], [holds("a", 50, (7,))])
    (only,) = status_plan.wanted(rows)
    assert only["device"]["minor"] == 7


def test_a_status_stays_far_below_what_the_api_server_stores():
    containers = tuple((f"{number:063}", 1) for number in range(32))
    pods = [holds(f"{number:0253}", 1, tuple(range(16)), containers) for number in range(500)]
    rows = device_report.rows([known(minor) for minor in range(16)], pods)
    found = status_plan.wanted(rows)
    assert len(json.dumps(found)) < 1 << 20
    assert sum(len(one["allocations"]) for one in found) <= status_plan.MOST_SHARES
    assert {one["omitted"] for one in found} == {500 * 32 - status_plan.MOST_SHARES // 16}


def test_nothing_is_written_that_stands_there_already():
    rows = device_report.rows([known(0)], [holds("a", 50)])
    wanted = status_plan.wanted(rows)
    new = device_objects.DeviceObject("n1", "u", (known(0),))
    written = status_plan.planned(new, wanted, NOW).steps[0].body["status"]
    facts = written["conditions"]
    there = msgspec.structs.replace(
        new, written=json.loads(json.dumps(wanted)), conditions=json.loads(json.dumps(facts))
    )
    assert status_plan.planned(there, wanted, NOW + 60).steps == ()
    changed = status_plan.planned(there, [], NOW).steps[0].body["status"]
    assert changed == {"deviceAllocations": None}
    empty = msgspec.structs.replace(there, written=None)
    assert status_plan.planned(empty, [], NOW).steps == ()


def test_what_is_sick_or_unreadable_is_a_condition_and_an_event():
    sick = msgspec.structs.replace(known(1), healthy=False)
    found = device_objects.DeviceObject("n1", "u", (known(0), sick))
    step, *told = status_plan.planned(found, [], NOW).steps
    facts = {one["type"]: one for one in step.body["status"]["conditions"]}
    assert [one["status"] for one in facts.values()] == ["True", "False"]
    assert "gpu 1" in facts["Healthy"]["message"]
    assert [one.reason for one in told] == ["DevicesListed", "DevicesUnhealthy"]
    broken = device_objects.DeviceObject("n1", "u", None, fault="spec.devices: no list")
    step, tell = status_plan.planned(broken, None, NOW).steps
    assert step.body["status"].keys() == {"conditions"}
    assert (tell.reason, tell.warning) == ("DeviceUnreadable", True)


UNREADABLE = {
    "a text as devices": {"devices": "all"},
    "an index of 64 bits": {"devices": [{"type": "gpu", "health": True, "minor": 1 << 40}]},
}


@pytest.mark.parametrize("spec", UNREADABLE.values(), ids=UNREADABLE)
def test_an_object_that_cannot_be_read_is_left_alone(spec):
    raw = {"metadata": {"name": "n1", "uid": "u"}, "spec": spec, "status": {}}
    found = device_objects.projected(raw)
    assert (found.name, found.uid, found.listed) == ("n1", "u", None)
    assert "devices" in found.fault


def test_holdings_follow_pods_from_node_to_node():
    def pod(node, percent):
        return projections.Pod(
            node,
            qos.Band.NONE,
            colocation.NOTHING,
            exclusive=False,
            devices=holds("a", percent) if percent else None,
        )

    index = node_holdings.NodeHoldings()
    assert index.change("default/a", None, pod("n1", 50)) == ("n1",)
    assert index.change("default/a", pod("n1", 50), pod("n1", 50)) == ()
    assert index.change("default/b", None, pod("n1", 0)) == ()
    assert index.change("default/a", pod("n1", 50), pod("n2", 50)) == ("n1", "n2")
    assert (index.of("n1"), len(index.of("n2"))) == ((), 1)
    assert index.change("default/a", pod("n2", 50), None) == ("n2",)
    assert index.nodes == frozenset()
