"""Devices as lines and as a document: who holds what, and what is wrong."""

import json

import pytest

from api import names
from cli.devices import cluster, table
from cli.output import terminal
from tests import builders

SHARE = {"cpu": "1", names.GPU: "50"}


def a_device(name="n1", *items, **metadata):
    return {"metadata": {"name": name, **metadata}, "spec": {"devices": list(items)}}


def gpu(minor=0, *, health=True, ident=None, bus_id=""):
    found = {
        "type": "gpu",
        "minor": minor,
        "id": ident or f"GPU-{minor}",
        "health": health,
        "resources": {
            names.GPU_CORE: "100",
            names.GPU_MEMORY_RATIO: "100",
            names.GPU_MEMORY: "40Gi",
        },
        "labels": {names.LABEL_GPU_MODEL: "A100"},
    }
    if bus_id:
        found["topology"] = {"socketID": 0, "nodeID": 0, "pcieID": "0", "busID": bus_id}
    return found


def a_pod(name, minor=0, percent=50, node="n1"):
    amounts = {
        names.GPU_CORE: str(percent),
        names.GPU_MEMORY_RATIO: str(percent),
        names.GPU_MEMORY: f"{percent * 40 // 100}Gi",
    }
    record = {"gpu": [{"minor": minor, "resources": amounts, "id": f"GPU-{minor}"}]}
    notes = {names.ANNOTATION_DEVICE_ALLOCATED: json.dumps(record)}
    asks = {"cpu": "1", names.GPU: str(percent)}
    return builders.a_pod(name, node=node, requests=asks, limits=asks, annotations=notes)


def a_slice(ident, name="gpu-0", node="n1"):
    device = {"name": name, "attributes": {"uuid": {"string": ident}}}
    spec = {"driver": "gpu.example.com", "pool": {"name": node}, "nodeName": node}
    return {"metadata": {"name": f"{node}-x"}, "spec": {**spec, "devices": [device]}}


def a_claim(name="c", device="gpu-0", pool="n1"):
    result = {"request": "r", "driver": "gpu.example.com", "pool": pool, "device": device}
    status = {"allocation": {"devices": {"results": [result]}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {}, "status": status}


def lines(**objects):
    return list(table.lines(cluster.build(cluster.Objects(**objects))))


def test_a_line_per_device_says_who_holds_it():
    head, first, second, third = lines(
        devices=[
            a_device("n1", gpu(0), gpu(1, health=False)),
            a_device("n2", {"deviceType": "rdma", "uuid": "r", "health": True}),
        ],
        pods=[a_pod("b", percent=30), a_pod("a")],
    )
    assert head.startswith("NODE  TYPE  MINOR  MODEL  HEALTH     TOTAL")
    assert head.endswith("HELD BY")
    assert first.split("  ")[0] == "n1"
    assert (
        " ".join(first.split())
        == "n1 gpu 0 A100 healthy 100% 40Gi 80% 32Gi 20% 8Gi default/a 50%, default/b 30%"
    )
    assert " ".join(second.split()) == "n1 gpu 1 A100 unhealthy 100% 40Gi - 0% 0 -"
    assert " ".join(third.split()) == "n2 rdma 0 - healthy 100% - 100% -"


PROBLEMS = {
    "over-allocation": (
        [gpu()],
        [a_pod("a", percent=60), a_pod("b", percent=60)],
        "problem: pods default/a, default/b hold of gpu 0 of node n1 120 of",
        "OverAllocated",
    ),
    "unhealthy with pods": (
        [gpu(health=False)],
        [a_pod("a")],
        "problem: pods default/a hold gpu 0 of node n1, which is unhealthy",
        "UnhealthyInUse",
    ),
    "gone": (
        [gpu(1)],
        [a_pod("a")],
        "problem: pods default/a hold gpu 0 of node n1 (GPU-0), which its Device object does not",
        "DeviceGone",
    ),
    "replaced": (
        [gpu(ident="GPU-other")],
        [a_pod("a")],
        "problem: pods default/a were given another device than gpu 0 of node n1 is now",
        "DeviceReplaced",
    ),
}


@pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)
def test_problems_are_named_with_a_remedy(case):
    items, pods, text, reason = case
    objects = cluster.Objects([a_device("n1", *items)], pods)
    shown = list(table.lines(cluster.build(objects)))
    at = next(i for i, line in enumerate(shown) if line.startswith("problem: "))
    assert shown[at].startswith(text)
    assert shown[at + 1].startswith("  remedy: ")
    (problem,) = table.document(cluster.build(objects), ())["problems"]
    assert (problem["node"], problem["reason"]) == ("n1", reason)
    assert problem["remedy"]


def test_what_a_claim_holds_is_not_free():
    shown = lines(devices=[a_device("n1", gpu())], slices=[a_slice("gpu-0")], claims=[a_claim()])
    assert (
        " ".join(shown[1].split())
        == "n1 gpu 0 A100 healthy 100% 40Gi - 0% 0 ResourceClaim default/c"
    )
    assert len(shown) == 2


def test_what_pods_and_a_claim_hold_is_a_problem():
    shown = lines(
        devices=[a_device("n1", gpu())],
        pods=[a_pod("a")],
        slices=[a_slice("gpu-0")],
        claims=[a_claim()],
    )
    assert "pods default/a and ResourceClaim default/c hold gpu 0 of node n1" in shown[2]


def test_devices_that_a_driver_offers_too_are_known():
    objects = cluster.Objects([a_device("n1", gpu(), gpu(1))], (), [a_slice("GPU-1", "second")])
    (node,) = cluster.build(objects).nodes
    ((known, there),) = node.offered_twice
    assert (known.minor, there) == (1, "gpu.example.com/n1/second")


def test_objects_of_another_shape_are_named_and_hide_no_others(capsys):
    found = cluster.build(
        cluster.Objects(
            devices=[a_device("n1", gpu()), a_device("odd", "x"), {"metadata": 5}],
            pods=[a_pod("a"), a_pod("b", node="odd"), {"metadata": []}, {}],
            slices=[{"metadata": {"name": "s"}, "spec": []}],
            claims=[{"metadata": {"name": "c"}, "status": []}],
        )
    )
    assert [node.name for node in found.nodes] == ["n1"]
    assert found.unreadable == (
        "Device odd",
        "Device without a name",
        "ResourceSlice s",
        "ResourceClaim c",
    )
    terminal.lines(table.lines(found))
    assert "Device odd cannot be read and is left out" in capsys.readouterr().out


def test_the_document_has_every_holder_and_quantities():
    pods = [a_pod(f"p{number}", percent=10) for number in range(6)]
    found = cluster.build(cluster.Objects([a_device("n1", gpu(bus_id="0000:3b:00.0"))], pods))
    (item,) = json.loads(json.dumps(table.document(found, ["a note"])))["items"]
    assert item["free"] == {
        names.GPU_CORE: "40",
        names.GPU_MEMORY: "16Gi",
        names.GPU_MEMORY_RATIO: "40",
    }
    assert (item["busID"], len(item["holders"])) == ("0000:3b:00.0", 6)
    assert "and 2 more" in list(table.lines(found))[1]
