"""Load reports in both of their shapes."""

import pathlib

import msgspec
import pytest
import yaml

from api.koordinator.metrics import nodemetric
from api.wire import quantity
from extender.informers.nodes import node_metrics

GI = 1 << 30
MANIFESTS = pathlib.Path(__file__).parents[2] / "manifests"


def _read(raw):
    return node_metrics.Reader(("cpu", "memory")).named(
        msgspec.convert(raw, node_metrics.NodeMetric)
    )


def test_the_short_shape_reads_like_the_full_one():
    raw = {
        "metadata": {"name": "node-001"},
        "spec": {"nodeName": "node-001", "collectionIntervalSeconds": 30},
        "status": {
            "updateTime": "2024-01-01T12:00:00Z",
            "nodeMetric": {
                "usage": {"cpu": "64000m", "memory": "64Gi"},
                "request": {"cpu": "100000m", "memory": "100Gi"},
            },
            "beMetric": {"usage": {"cpu": "20000m", "memory": "20Gi"}},
            "podMetrics": [
                {
                    "podRef": {"namespace": "default", "name": "web"},
                    "containers": [
                        {"name": "app", "usage": {"cpu": "2000m", "memory": "2Gi"}},
                        {"name": "side", "usage": {"cpu": "1"}},
                        {"name": "new"},
                    ],
                },
                {"podRef": {"namespace": "default", "name": "new"}, "containers": []},
            ],
        },
    }
    named = _read(raw)
    assert named.node == "node-001"
    assert named.report.usage == (64000, 64 * GI)
    assert named.report.interval == 30.0
    assert named.report.updated_at == 1704110400.0
    assert named.report.pods == {
        "default/web": (False, (3000, 2 * GI)),
        "default/new": (False, None),
    }


@pytest.mark.parametrize(
    ("spec", "interval"),
    [
        pytest.param({}, 60.0, id="default"),
        pytest.param({"metricCollectPolicy": {"reportIntervalSeconds": 15}}, 15.0, id="policy"),
    ],
)
def test_interval(spec, interval):
    raw = {"metadata": {"name": "n"}, "spec": spec, "status": {}}
    report = _read(raw).report
    assert report.interval == interval
    assert (report.usage, report.updated_at, report.pods) == (None, None, {})


def _amounts(listed):
    return tuple(quantity.amount(name, listed.get(name, 0)) for name in ("cpu", "memory"))


def _both(**status):
    full = {"namespace": "a", "name": "p", "podUsage": {"resources": {"cpu": "1"}}}
    short = {"podRef": {"namespace": "b", "name": "q"}, "containers": [{"usage": {"cpu": "2"}}]}
    usage = {"nodeUsage": {"resources": {"cpu": "3"}}, "usage": {"cpu": "4"}}
    both = {"nodeMetric": usage, "podsMetric": [full], "podMetrics": [short], **status}
    return {"metadata": {"name": "n"}, "status": both}


SAMPLES = {
    path.stem: yaml.safe_load(path.read_text())
    for path in sorted(MANIFESTS.glob("*-nodemetric-*.yaml"))
} | {
    "both shapes": _both(),
    "an empty full shape": _both(nodeMetric={"nodeUsage": {}, "usage": {"cpu": "4"}}),
    "short pods only": _both(podsMetric=[]),
    "full pods only": _both(podMetrics=[]),
}


@pytest.mark.parametrize("raw", SAMPLES.values(), ids=SAMPLES.keys())
def test_it_reads_what_the_reader_of_the_kind_reads(raw):
    report = _read(raw).report
    metric = nodemetric.read_node_metric(raw)
    policy = metric.spec.metric_collect_policy
    assert report.interval == (policy.report_interval_seconds if policy else 60)
    usage = metric.status.node_metric
    assert report.usage == (usage and _amounts(usage.node_usage.resources))
    assert {key: usage for key, (_, usage) in report.pods.items()} == {
        f"{pod.namespace}/{pod.name}": _amounts(pod.pod_usage.resources)
        for pod in metric.status.pods_metric
    }
