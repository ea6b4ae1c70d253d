"""Which part of a pod's record counts, and how a device is divided among containers."""

import json

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest

from api import names
from api.kubernetes import core
from domain.devices import pod_holdings
from tests import builders
from tests.extender.clusters.device_cluster import DeviceCluster

HALF = {"minor": 0, "resources": {names.GPU_CORE: "50", names.GPU_MEMORY_RATIO: "50"}}


def holding(requests, record, *, node="n1", containers=None, **more):
    notes = {names.ANNOTATION_DEVICE_ALLOCATED: record} if record is not None else {}
    if record is not None and not isinstance(record, str):
        notes[names.ANNOTATION_DEVICE_ALLOCATED] = json.dumps(record)
    raw = builders.a_pod("p", node=node, requests=requests, limits=requests, annotations=notes)
    if containers is not None:
        raw["spec"]["containers"] = [
            {"name": name, "image": "i", "resources": {"limits": asked, "requests": asked}}
            for name, asked in containers.items()
        ]
    raw["status"].update(more)
    return pod_holdings.holding(msgspec.convert(raw, core.Pod))


def test_a_record_that_the_requests_allow_counts():
    found = holding({names.GPU: "50"}, {"gpu": [HALF]})
    assert found.fault == ""
    assert [one.minor for one in found.held["gpu"]] == [0]
    assert found.containers == {"gpu": (("app", 50),)}


NOT_BELIEVED = {
    "more than it asks for": ({names.GPU: "20"}, {"gpu": [HALF]}),
    "of a type that it does not ask for": ({names.RDMA: "50"}, {"gpu": [HALF]}),
    "no devices asked for": ({"cpu": "1"}, {"gpu": [HALF]}),
    "one device twice": ({names.GPU: "200"}, {"gpu": [HALF, HALF]}),
    "a negative index": ({names.GPU: "50"}, {"gpu": [{**HALF, "minor": -1}]}),
    "no JSON": ({names.GPU: "50"}, "{"),
    "another shape": ({names.GPU: "50"}, "[1]"),
    "deep": ({names.GPU: "50"}, "[" * 5000),
    "long": ({names.GPU: "50"}, json.dumps({"gpu": [HALF], "x": "y" * (1 << 20)})),
    "many devices": ({names.GPU: "50"}, {"gpu": [HALF] * 2000}),
}


@pytest.mark.parametrize("case", NOT_BELIEVED.values(), ids=NOT_BELIEVED)
def test_a_record_that_cannot_be_true_holds_nothing(case):
    found = holding(*case)
    assert found.held == {}
    assert found.fault


@pytest.mark.parametrize(
    "more", [{"node": ""}, {"phase": "Succeeded"}, {"phase": "Failed"}], ids=str
)
def test_pods_without_a_node_and_those_that_have_ended_hold_nothing(more):
    assert holding({names.GPU: "50"}, {"gpu": [HALF]}, **more) is None


def test_a_pod_without_a_record_or_with_an_empty_one_holds_nothing():
    assert holding({names.GPU: "50"}, None) is None
    assert holding({names.GPU: "50"}, {}) is None


def test_containers_are_named_that_ask_for_the_type():
    containers = {"a": {names.GPU: "30"}, "b": {"cpu": "1"}, "c": {names.GPU: "20"}}
    found = holding({}, {"gpu": [HALF]}, containers=containers)
    assert found.containers == {"gpu": (("a", 30), ("c", 20))}
    assert pod_holdings.divided(50, found.containers["gpu"]) == (("a", 30), ("c", 20))


def test_so_many_containers_are_not_named_one_by_one():
    containers = {f"c{number}": {names.GPU: "1"} for number in range(50)}
    found = holding({}, {"gpu": [HALF]}, containers=containers)
    assert found.containers == {"gpu": ()}
    assert pod_holdings.divided(50, ()) == (("", 50),)


@hypothesis.given(
    st.integers(0, 1600),
    st.lists(st.tuples(st.text("abc", min_size=1), st.integers(1, 10**12)), max_size=8),
)
def test_the_parts_of_containers_add_up(whole, shares):
    parts = pod_holdings.divided(whole, shares)
    assert sum(part for _, part in parts) == whole
    assert all(part >= 0 for _, part in parts)


PERCENT = {
    "cores": ({names.GPU_CORE: 30, names.GPU_MEMORY_RATIO: 50}, {}, 50),
    "memory": ({names.GPU_CORE: 60, names.GPU_MEMORY_RATIO: 50}, {}, 60),
    "an adapter": ({names.RDMA: 7}, {names.RDMA: 100}, 7),
    "slices of a vendor": ({names.NPU_CORE: 5}, {names.NPU_CORE: 20}, 25),
    "bytes alone, rounded up": ({names.GPU_MEMORY: 1}, {names.GPU_MEMORY: 3}, 34),
    "a total that is not known": ({names.NPU_CORE: 5}, {}, 0),
}


@pytest.mark.parametrize("case", PERCENT.values(), ids=PERCENT)
def test_percent_of_a_device(case):
    held, total, expected = case
    assert pod_holdings.percent(held, total) == expected


def test_what_the_extender_writes_is_believed_as_it_was_given():
    cluster = DeviceCluster()
    cluster.node()
    cluster.devices(
        {
            "metadata": {"name": "n1"},
            "spec": {
                "devices": [{"type": "gpu", "id": "G", "health": True, "totalMemory": "40Gi"}]
            },
        }
    )
    assert cluster.bind(cluster.pod("half", {names.GPU: "50"})) == ""
    found = holding({names.GPU: "50"}, cluster.annotation("half"))
    (granted,) = found.held["gpu"]
    assert pod_holdings.percent(granted.amounts, {}) == 50
