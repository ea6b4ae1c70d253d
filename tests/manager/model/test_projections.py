"""Projections: what is kept, and what is no news."""

import msgspec
import pytest

from api import names
from api.koordinator.metadata.qos import Band
from api.kubernetes import core
from domain.lending import colocation
from manager.model import origins, projections

GIB = 1 << 30


def node(annotations=None, conditions=(), **status):
    status = {
        "capacity": {"cpu": "8", "memory": "16Gi"},
        "allocatable": {"cpu": "7", "memory": "15Gi"},
        "conditions": list(conditions),
        **status,
    }
    raw = {"metadata": {"name": "n", "annotations": annotations or {}}, "status": status}
    return projections.node(msgspec.convert(raw, core.Node))


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


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param('{"cpu":"7","memory":"15Gi"}', (1_000, GIB), id="what-the-kubelet-offers"),
        pytest.param('{"cpu":"6"}', (2_000, 0), id="of-cpu-alone"),
        pytest.param("{}", (0, 0), id="nothing"),
        pytest.param("{", (0, 0), id="unreadable"),
    ],
)
def test_offering_more_than_there_is_gives_nothing_back(raw, expected) -> None:
    annotations = {names.ANNOTATION_RAW_ALLOCATABLE: raw}
    amplified = {"cpu": "14", "memory": "30Gi"}
    assert node(annotations, allocatable=amplified).reserved == expected


def test_what_an_older_release_published_is_offered_and_not_taken_for_ours() -> None:
    """Otherwise nothing would publish it under the name that pods ask by."""
    amounts = {"cpu": "8", "memory": "1Gi", "koordinator.sh/batch-cpu": "2k"}
    raw = {"metadata": {"name": "n"}, "status": {"capacity": amounts, "allocatable": amounts}}
    found = projections.node(msgspec.convert(raw, core.Node))
    assert found.offered[names.BATCH_CPU] == 2000
    assert found.published == ({}, {})


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
    return projections.pod(msgspec.convert(raw, core.Pod))


def test_pods_that_hold_nothing_are_left_out() -> None:
    assert pod(phase="Succeeded") is None
    assert pod(phase="Failed") is None
    assert pod(node_name="") is None


def test_pod() -> None:
    amount = colocation.Amount(2_000, GIB)
    origin = origins.Origin({}, None, ("c",))
    assert pod(priority=9500) == projections.Pod("n", Band.PROD, amount, False, origin=origin)
    exclusive = pod(phase="Pending", labels={names.LABEL_QOS: "LSE"})
    assert exclusive is not None
    assert exclusive.exclusive


def test_pods_of_one_template_share_where_they_come_from() -> None:
    first, second = pod(labels={"a": "b"}), pod(labels={"a": "b"})
    assert first.origin is second.origin
    assert pod(labels={"a": "c"}).origin is not first.origin


def test_use_by_container_is_kept_where_it_is_asked_for() -> None:
    containers = [{"name": "c", "usage": {"cpu": "1500m", "memory": "1Gi"}}]
    pods = [
        {"podRef": {"namespace": namespace, "name": "p"}, "containers": containers}
        for namespace in ("wanted", "other")
    ]
    raw = {"metadata": {"name": "n"}, "status": {"podMetrics": pods}}
    expected = {"wanted/p": {"c": colocation.Amount(1500, GIB)}}
    assert projections.metric(raw, {"wanted"}).report.containers == expected
    assert projections.metric(raw).report.containers == {}


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
    report = projections.report(written)
    assert (report.system, report.outside) == ((1_000, GIB), (1_500, GIB))
    assert report.pods == {"d/p": ((2_000, 0), Band.PROD), "d/q": ((0, 0), Band.NONE)}
    short = {
        "podRef": {"namespace": "d", "name": "p"},
        "containers": [{"name": "c", "usage": {"cpu": "2"}}],
    }
    assert projections.report({"status": {"podMetrics": [short]}}).pods["d/p"][0] == (2_000, 0)
    assert projections.report({}).updated_at is None


def test_a_node_that_could_not_take_it_back_is_told_to_lend_nothing() -> None:
    key, own = names.ANNOTATION_STRATEGIES, names.ANNOTATION_COLOCATION_STRATEGY
    table = '{"cpu-suppress":{"verdict":"%s","how":"groups have no cpu-quota"}}'
    found = node({key: table % "unavailable", own: '{"cpuReclaimThresholdPercent":70}'})
    assert found.annotations[own] == '{"enable":false}'
    assert found.annotations[key].endswith("hold best-effort work back: groups have no cpu-quota")
    assert node({key: table % "substitute"}).annotations == {}
