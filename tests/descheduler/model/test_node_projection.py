import json

import msgspec
import pytest

from api import names
from api.koordinator.metrics import nodemetric_structs
from api.kubernetes import core
from descheduler.model import node_projection
from tests import builders as objects

MADE_AT = 1_782_864_000.0


def node(**given):
    return node_projection.node(msgspec.convert(objects.a_node("n", **given), core.Node))


def test_a_node():
    taint = {"key": "dedicated", "value": "x", "effect": "PreferNoSchedule"}
    found = node(cpu="16", memory="64Gi", labels={"zone": "a"}, taints=[taint], unschedulable=True)
    assert (found.name, found.labels["zone"]) == ("n", "a")
    assert found.taints == (core.Taint("dedicated", "x", "PreferNoSchedule"),)
    assert not found.is_schedulable
    assert found.allocatable == {"cpu": 16000, "memory": 64 << 30, "pods": 110}
    assert found.capacity == found.allocatable


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], True),
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "False"}], False),
        ([{"type": "Ready", "status": "Unknown"}], False),
    ],
    ids=["not said", "ready", "not ready", "unknown"],
)
def test_whether_a_node_is_ready(conditions, expected):
    raw = objects.a_node("n")
    raw["status"]["conditions"] = conditions
    assert node_projection.node(msgspec.convert(raw, core.Node)).is_ready is expected


@pytest.mark.parametrize(
    ("written", "cpu"),
    [
        (json.dumps({"cpu": "8"}), 8000),
        ("{", 16000),
        (json.dumps({"cpu": "much"}), 16000),
        (json.dumps({"cpu": [1]}), 16000),
        (json.dumps({"cpu": "8"}) + " " * 5000, 16000),
    ],
    ids=["cpu", "not JSON", "no quantity", "no text", "too long"],
)
def test_load_is_measured_against_what_was_there_before_amplification(written, cpu):
    found = node(annotations={"node.koordinator.sh/raw-allocatable": written})
    assert found.capacity == {"cpu": cpu, "memory": 64 << 30, "pods": 110}
    assert found.allocatable["cpu"] == 16000


def usage(raw):
    return node_projection.usage(msgspec.convert(raw, nodemetric_structs.NodeMetric))


def test_what_was_used():
    pods = [
        objects.a_pod_metric("web-0", cpu="1500m", memory="2Gi"),
        {"namespace": "default", "name": "new", "podUsage": {}},
    ]
    found = usage(
        objects.a_node_metric(
            "n", system={"cpu": "250m"}, pods=pods, update_time=MADE_AT, aggregated={}
        )
    )
    assert (found.node, found.updated_at) == ("n", MADE_AT)
    assert found.system == {"cpu": 250}
    assert found.by_pod == {"default/web-0": {"cpu": 1500, "memory": 2 << 30}}


def test_the_short_shape():
    containers = [{"usage": {"cpu": "1", "memory": "1Gi"}}, {"usage": {"cpu": "500m"}}]
    ref = {"namespace": "default", "name": "web-0"}
    found = usage(
        {
            "metadata": {"name": "n"},
            "status": {"nodeMetric": {}, "podMetrics": [{"podRef": ref, "containers": containers}]},
        }
    )
    assert found.by_pod == {"default/web-0": {"cpu": 1500, "memory": 1 << 30}}
    assert found.updated_at == 0.0


def test_a_report_without_a_node_is_none():
    assert usage({"metadata": {"name": "n"}, "status": {"podsMetric": []}}) is None


def reported(extensions):
    pod = {"namespace": "d", "name": "p", "extensions": extensions}
    status = {"nodeMetric": {}, "podsMetric": [pod]}
    raw = {"metadata": {"name": "n"}, "status": status}
    return node_projection.usage(msgspec.convert(raw, nodemetric_structs.NodeMetric))


def slowed(extensions):
    return reported(extensions).slowed


def test_pods_that_fare_worse_than_usual():
    found = [{"signal": "cpu-some", "value": 31.5}, {"signal": "cpi", "value": 2}]
    told = slowed({"Object": {names.INTERFERENCE: found}})
    assert told == {"d/p": {"cpu-some": 31.5, "cpi": 2.0}}


@pytest.mark.parametrize(
    "extensions",
    [
        pytest.param(None, id="none"),
        pytest.param([], id="a-list"),
        pytest.param({"Object": None}, id="nothing"),
        pytest.param({"Object": {names.INTERFERENCE: 7}}, id="a-number"),
        pytest.param({"Object": {names.INTERFERENCE: [{"signal": "cpi"}]}}, id="no-value"),
        pytest.param(
            {"Object": {names.INTERFERENCE: [{"signal": "cpi", "value": "x"}]}}, id="a-word"
        ),
    ],
)
def test_extensions_of_another_shape_count_as_absent(extensions):
    assert slowed(extensions) == {}


@pytest.mark.parametrize(
    ("written", "share"),
    [
        pytest.param(12.5, 12.5, id="a share"),
        pytest.param(0, 0.0, id="none"),
        pytest.param("7", 7.0, id="a number in a word"),
        pytest.param("much", None, id="a word"),
        pytest.param(101, None, id="more than all"),
        pytest.param(-1, None, id="less than nothing"),
        pytest.param(float("nan"), None, id="no number"),
        pytest.param({}, None, id="a map"),
    ],
)
def test_how_often_a_pod_was_throttled(written, share):
    found = reported({"Object": {names.THROTTLED: written}}).throttled
    assert found == ({} if share is None else {"d/p": share})
    assert reported({"Object": {names.INTERFERENCE: []}}).throttled == {}
