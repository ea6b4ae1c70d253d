"""Projections: what is kept, and what is no news."""

import msgspec
import pytest

from api import core, names
from api.qos import Band
from domain import colocation
from manager import views

GIB = 1 << 30


def node(annotations=None, conditions=(), **status):
    status = {
        "capacity": {"cpu": "8", "memory": "16Gi"},
        "allocatable": {"cpu": "7", "memory": "15Gi"},
        "conditions": list(conditions),
        **status,
    }
    raw = {"metadata": {"name": "n", "annotations": annotations or {}}, "status": status}
    return views.node(msgspec.convert(raw, core.Node))


def test_heartbeats_are_no_news() -> None:
    beat = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    later = {**beat, "lastHeartbeatTime": "2026-01-01T00:05:00Z"}
    assert node(conditions=[beat]) == node(conditions=[later])
    assert node(conditions=[beat]).schedulable
    assert not node(conditions=[{**beat, "status": "False"}]).schedulable
    assert node(annotations={"other": "x"}) == node()


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param("", (1_000, GIB), id="kubelet-only"),
        pytest.param('{"resources": {"cpu": "3"}}', (3_000, GIB), id="annotation-is-more"),
        pytest.param(
            '{"resources": {"cpu": "3"}, "reservedCPUs": "0-1,4,1"}', (3_000, GIB), id="cpus-count"
        ),
        pytest.param('{"reservedCPUs": "0-4"}', (5_000, GIB), id="cpus-alone"),
        pytest.param("{", (1_000, GIB), id="no-json"),
        pytest.param("[]", (1_000, GIB), id="no-object"),
        pytest.param('{"resources": {"cpu": "many"}}', (1_000, GIB), id="no-quantity"),
        pytest.param('{"reservedCPUs": "a"}', (1_000, GIB), id="no-cpus"),
        pytest.param('{"reservedCPUs": "0-99999999999"}', (1_000, GIB), id="absurd-cpus"),
        pytest.param('{"reservedCPUs": 5}', (1_000, GIB), id="wrong-type"),
    ],
)
def test_reserved(annotation, expected) -> None:
    annotations = {names.ANNOTATION_NODE_RESERVATION: annotation} if annotation else {}
    assert node(annotations).reserved == expected


def test_a_node_that_has_not_said_what_it_has() -> None:
    assert node(capacity={}, allocatable={}).capacity is None


def pod(phase="Running", node_name="n", labels=None, **spec):
    requests = {"cpu": "2", "memory": "1Gi"}
    raw = {
        "metadata": {"name": "p", "labels": labels or {}},
        "spec": {
            "nodeName": node_name,
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            **spec,
        },
        "status": {"phase": phase},
    }
    return views.pod(msgspec.convert(raw, core.Pod))


def test_pods_that_hold_nothing_are_left_out() -> None:
    assert pod(phase="Succeeded") is None
    assert pod(phase="Failed") is None
    assert pod(node_name="") is None


def test_pod() -> None:
    assert pod(priority=9500) == views.Pod("n", Band.PROD, colocation.Amount(2_000, GIB), False)
    exclusive = pod(phase="Pending", labels={names.LABEL_QOS: "LSE"})
    assert exclusive is not None
    assert exclusive.exclusive


def test_report_in_either_shape() -> None:
    written = {
        "status": {
            "updateTime": "2026-01-01T00:00:00Z",
            "nodeMetric": {"systemUsage": {"resources": {"cpu": "1", "memory": "1Gi"}}},
            "hostApplicationMetric": [
                {"name": "a", "priority": "koord-prod", "usage": {"resources": {"cpu": "500m"}}},
                {"name": "b", "priority": "koord-batch", "usage": {"resources": {"cpu": "4"}}},
            ],
            "podsMetric": [
                {
                    "namespace": "d",
                    "name": "p",
                    "priority": "koord-prod",
                    "podUsage": {"resources": {"cpu": "2"}},
                },
                {"namespace": "d", "name": "q", "priority": "odd"},
            ],
        }
    }
    report = views.report(written)
    assert (report.system, report.outside) == ((1_000, GIB), (1_500, GIB))
    assert report.pods == {"d/p": ((2_000, 0), Band.PROD), "d/q": ((0, 0), Band.NONE)}
    short = {
        "podRef": {"namespace": "d", "name": "p"},
        "containers": [{"name": "c", "usage": {"cpu": "2"}}],
    }
    assert views.report({"status": {"podMetrics": [short]}}).pods["d/p"][0] == (2_000, 0)
    assert views.report({}).updated_at is None
