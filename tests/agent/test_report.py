"""What a NodeMetric says."""

import pytest

from agent import history, report, state
from api import nodemetric

GIB = 1 << 30


def spec(**policy):
    return nodemetric.Spec.model_validate({"metricCollectPolicy": policy})


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (nodemetric.Spec(), report.Policy()),
        (spec(), report.Policy()),
        (
            spec(aggregateDurationSeconds=60, reportIntervalSeconds=15),
            report.Policy(15, 60),
        ),
        (spec(reportIntervalSeconds=0, aggregateDurationSeconds=0), report.Policy()),
        (
            spec(nodeAggregatePolicy={"durations": ["1m", "2h"]}),
            report.Policy(windows=(60.0, 7200.0)),
        ),
        (spec(nodeAggregatePolicy={"durations": []}), report.Policy()),
        (spec(nodeMemoryCollectPolicy="usageWithPageCache"), report.Policy(page_cache=True)),
        (spec(nodeMemoryCollectPolicy="usageWithHotPageCache"), report.Policy()),
    ],
    ids=["none", "empty", "sample", "zero", "windows", "no windows", "page cache", "hot pages"],
)
def test_policies(written, expected):
    assert report.policy(written) == expected


@pytest.fixture
def samples():
    samples = history.Histories()
    for second in range(401):
        for key, cpu, memory in ((("node",), second / 100, GIB), (("system",), 0.5, GIB // 2)):
            samples.add((*key, "cpu"), second, cpu, 3600)
            samples.add((*key, "memory"), second, memory, 3600)
            samples.add((*key, "memory+cache"), second, 2 * memory, 3600)
    return samples


def status(samples, policy=None, pods=(), at=400.0):
    picture = state.NodeState(at=1.7e9, pods=pods)
    return report.status(report.Reporting(samples, picture, policy or report.Policy(), at))


def test_windows_and_percentiles(samples):
    found = status(samples)["nodeMetric"]
    assert found["nodeUsage"]["resources"] == {"cpu": "2500m", "memory": "1Gi"}
    first, second, third = found["aggregatedNodeUsages"]
    assert [entry["duration"] for entry in (first, second, third)] == ["5m0s", "10m0s", "30m0s"]
    cpu = {name: usage["resources"]["cpu"] for name, usage in first["usage"].items()}
    # 301 samples from 1.00 to 4.00: the n-th percentile is the sample at int(301 n) - 1.
    assert cpu == {"avg": "2500m", "p50": "2490m", "p90": "3690m", "p95": "3840m", "p99": "3960m"}
    assert second["usage"]["avg"]["resources"]
    assert third["usage"] == {name: {} for name in report.FIGURES}


def test_page_cache_changes_the_node_and_not_the_system(samples):
    found = status(samples, report.Policy(page_cache=True))["nodeMetric"]
    assert found["nodeUsage"]["resources"]["memory"] == "2Gi"
    assert found["systemUsage"]["resources"]["memory"] == "512Mi"


def test_nothing_is_reported_before_there_are_figures():
    assert status(history.Histories()) is None


def test_pods_without_figures_are_left_out(samples, new_pod):
    pods = tuple(state.PodState(new_pod(uid), "Burstable") for uid in ("b", "a"))
    for uid in ("a", "b"):
        samples.add(("pod", uid, "memory"), 400, GIB, 300)
    samples.add(("pod", "b", "cpu"), 400, 1.0, 300)
    found = status(samples, pods=pods)
    assert [pod["name"] for pod in found["podsMetric"]] == ["name-b"]
    assert found["podMetrics"] == [
        {"podRef": {"namespace": "default", "name": "name-b"}, "containers": []}
    ]
    assert found["nodeMetric"]["request"]["cpu"] == "2"


def test_best_effort_and_the_rest_make_up_the_node(samples, new_pod):
    pods = (
        state.PodState(new_pod("ls"), "Burstable"),
        state.PodState(new_pod("be", "BestEffort"), "BestEffort"),
    )
    for uid, cores in (("ls", 1.5), ("be", 0.75)):
        samples.add(("pod", uid, "cpu"), 400, cores, 300)
        samples.add(("pod", uid, "memory"), 400, GIB // 4, 300)
    found = status(samples, pods=pods)
    assert found["beMetric"]["usage"] == {"cpu": "750m", "memory": "256Mi"}
    assert found["lsMetric"]["usage"] == {"cpu": "1750m", "memory": "768Mi"}
    assert found["beMetric"]["request"]["cpu"] == "2"
    assert found["lsMetric"]["request"] == {"cpu": "1", "memory": "1Gi"}


def test_a_status_reads_back(samples):
    read = nodemetric.read_node_metric({"metadata": {"name": "n"}, "status": status(samples)})
    assert read.status.node_metric.node_usage.resources["memory"] == "1Gi"
    assert read.status.node_metric.aggregated_node_usages[0].duration == 300
