"""Load reports in both of their shapes."""

import msgspec
import pytest

from extender import reports

GI = 1 << 30


def _read(raw):
    return reports.Reader(("cpu", "memory")).named(msgspec.convert(raw, reports.NodeMetric))


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
