"""What a NodeMetric says."""

import msgspec
import pytest

from agent.devices import usage_figures
from agent.model import collect_policy, state
from agent.report import node_metric
from agent.store import peaks, time_series
from api.koordinator.metrics import metric_collection, nodemetric
from api.kubernetes import core

GIB = 1 << 30


def spec(**policy):
    return metric_collection.Spec.model_validate({"metricCollectPolicy": policy})


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (metric_collection.Spec(), collect_policy.Policy()),
        (spec(), collect_policy.Policy()),
        (
            spec(aggregateDurationSeconds=60, reportIntervalSeconds=15),
            collect_policy.Policy(15, 60),
        ),
        (spec(reportIntervalSeconds=0, aggregateDurationSeconds=0), collect_policy.Policy()),
        (
            spec(nodeAggregatePolicy={"durations": ["1m", "2h"]}),
            collect_policy.Policy(windows=(60.0, 7200.0)),
        ),
        (spec(nodeAggregatePolicy={"durations": []}), collect_policy.Policy()),
        (
            spec(nodeMemoryCollectPolicy="usageWithPageCache"),
            collect_policy.Policy(collect="usageWithPageCache"),
        ),
        (
            spec(nodeMemoryCollectPolicy="usageWithHotPageCache"),
            collect_policy.Policy(collect="usageWithHotPageCache"),
        ),
    ],
    ids=["none", "empty", "sample", "zero", "windows", "no windows", "page cache", "hot pages"],
)
def test_policies(written, expected):
    assert collect_policy.of(written) == expected


@pytest.fixture
def samples():
    samples = time_series.Histories()
    for second in range(401):
        for key, cpu, memory in ((("node",), second / 100, GIB), (("system",), 0.5, GIB // 2)):
            samples.add((*key, "cpu"), second, cpu, 3600)
            samples.add((*key, "memory"), second, memory, 3600)
            samples.add((*key, "memory+cache"), second, 2 * memory, 3600)
    return samples


def status(samples, policy=None, pods=(), at=400.0, forecast=None, host=(), gpus=()):
    picture = state.NodeState(at=1.7e9, pods=pods, host_applications=host)
    return node_metric.status(
        node_metric.Reporting(
            samples, picture, policy or collect_policy.Policy(), at, forecast, gpus
        )
    )


def test_windows_and_percentiles(samples):
    found = status(samples)["nodeMetric"]
    assert found["nodeUsage"]["resources"] == {"cpu": "2500m", "memory": "1Gi"}
    first, second, third = found["aggregatedNodeUsages"]
    assert [entry["duration"] for entry in (first, second, third)] == ["5m0s", "10m0s", "30m0s"]
    cpu = {name: usage["resources"]["cpu"] for name, usage in first["usage"].items()}
    # 301 samples from 1.00 to 4.00: the n-th percentile is the sample at int(301 n) - 1.
    assert cpu == {"avg": "2500m", "p50": "2490m", "p90": "3690m", "p95": "3840m", "p99": "3960m"}
    assert second["usage"]["avg"]["resources"]
    assert third["usage"] == {name: {} for name in node_metric.FIGURES}


def test_page_cache_changes_the_node_and_not_the_system(samples):
    found = status(samples, collect_policy.Policy(collect="usageWithPageCache"))["nodeMetric"]
    assert found["nodeUsage"]["resources"]["memory"] == "2Gi"
    assert found["systemUsage"]["resources"]["memory"] == "512Mi"


@pytest.mark.parametrize(
    ("collect", "told", "expected"),
    [
        ("usageWithoutPageCache", True, ["1Gi", "256Mi", "128Mi"]),
        ("usageWithPageCache", True, ["2Gi", "512Mi", "192Mi"]),
        ("usageWithHotPageCache", True, ["1536Mi", "384Mi", "160Mi"]),
        ("usageWithHotPageCache", False, ["1Gi", "256Mi", "128Mi"]),
        ("", True, ["1Gi", "256Mi", "128Mi"]),
    ],
    ids=["plain", "cache", "hot cache", "hot cache unknown to the kernel", "unset"],
)
def test_which_memory_counts(samples, new_pod, collect, told, expected):
    figures = {
        ("node",): (1024, 2048, 1536),
        ("pod", "a"): (256, 512, 384),
        ("host", "nginx"): (128, 192, 160),
    }
    for key, sizes in figures.items():
        if key != ("node",):
            samples.add((*key, "cpu"), 400, 1.0, 300)
        for name, size in zip(node_metric.MEMORY.values(), sizes, strict=True):
            if told or name != "memory+hot":
                for second in (399, 400) if key == ("node",) else (400,):
                    samples.add((*key, name), second, size << 20, 300)
    pods = (state.PodState(new_pod("a"), "Burstable"),)
    host = (state.HostApplication("nginx", best_effort=False, priority="koord-prod", qos="LS"),)
    found = status(samples, collect_policy.Policy(collect=collect), pods, host=host)
    sizes = [found["nodeMetric"]["nodeUsage"], found["podsMetric"][0]["podUsage"]]
    sizes.append(found["hostApplicationMetric"][0]["usage"])
    assert [size["resources"]["memory"] for size in sizes] == expected


def test_host_applications_are_told_by_name(samples):
    for name in ("b", "a", "unmeasured"):
        samples.add(("host", name, "cpu"), 400, 0.02, 300)
        if name != "unmeasured":
            samples.add(("host", name, "memory"), 400, 32 << 20, 300)
    host = tuple(state.HostApplication(name, False, qos="LS") for name in ("b", "unmeasured", "a"))
    assert status(samples, host=host)["hostApplicationMetric"] == [
        {
            "name": name,
            "priority": "",
            "qos": "LS",
            "usage": {"resources": {"cpu": "20m", "memory": "32Mi"}},
        }
        for name in ("a", "b")
    ]


def test_what_is_predicted_is_told(samples):
    forecast = peaks.Forecast(peaks.Amount(2000, 4 * GIB), peaks.Amount(1500, GIB))
    found = status(samples, forecast=forecast)
    expected = {"resource": {"resources": {"cpu": "2", "memory": "4Gi"}}}
    assert found["prodReclaimableMetric"] == expected
    assert found["prodPeakMetric"]["resource"]["resources"] == {"cpu": "1500m", "memory": "1Gi"}
    nothing = status(samples, forecast=peaks.Forecast(peaks.NOTHING, peaks.NOTHING))
    resources = nothing["prodReclaimableMetric"]["resource"]["resources"]
    assert resources == {"cpu": "0", "memory": "0"}


@pytest.mark.parametrize("forecast", [None, peaks.Forecast(None, None, "not trained yet")])
def test_what_is_not_predicted_takes_back_what_was(samples, forecast):
    found = status(samples, forecast=forecast)
    assert found["prodReclaimableMetric"] == {"resource": {"resources": None}}
    assert found["prodPeakMetric"] is None
    read = nodemetric.read_node_metric({"metadata": {"name": "n"}, "status": found})
    assert read.status.prod_reclaimable_metric.resource.resources == {}


def test_nothing_is_reported_before_there_are_figures():
    assert status(time_series.Histories()) is None


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


def test_sidecars_are_containers_of_their_pod(samples, new_pod):
    pod = new_pod("a")
    inits = (
        core.Container(name="once"),
        core.Container(
            name="mesh",
            restart_policy="Always",
            resources=core.ResourceRequirements(limits={"cpu": "2"}),
        ),
    )
    pod = msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, init_containers=inits)
    )
    keys = (("pod", "a"), *(("container", "a", name) for name in ("app", "once", "mesh")))
    for key in keys:
        samples.add((*key, "cpu"), 400, 0.5, 300)
        samples.add((*key, "memory"), 400, GIB, 300)
    found = status(samples, pods=(state.PodState(pod, "Burstable"),))
    (listed,) = found["podMetrics"]
    assert [one["name"] for one in listed["containers"]] == ["app", "mesh"]
    assert listed["containers"][1]["limit"] == {"cpu": "2"}
    assert listed["containers"][1]["usage"]["cpu"] == "500m"


def test_a_status_reads_back(samples):
    read = nodemetric.read_node_metric({"metadata": {"name": "n"}, "status": status(samples)})
    assert read.status.node_metric.node_usage.resources["memory"] == "1Gi"
    assert read.status.node_metric.aggregated_node_usages[0].duration == 300


def test_gpus_are_reported_of_the_node_its_pods_and_containers(samples, new_pod):
    gpus = (
        usage_figures.Counted("GPU-1", 1, 80 * GIB),
        usage_figures.Counted("GPU-2", 2, 80 * GIB),
    )
    pods = (state.PodState(new_pod("a"), "Burstable"),)
    for key in (("pod", "a"), ("container", "a", "app")):
        samples.add((*key, "cpu"), 400, 1.0, 300)
        samples.add((*key, "memory"), 400, GIB, 300)
    for second in range(401):
        for key in (("node",), ("pod", "a"), ("container", "a", "app")):
            samples.add((*key, "gpu", "GPU-1", "core"), second, second / 4, 3600)
            samples.add((*key, "gpu", "GPU-1", "memory"), second, 20.0 * GIB, 3600)
    read = nodemetric.read_node_metric(
        {"metadata": {"name": "n"}, "status": status(samples, pods=pods, gpus=gpus)}
    ).status
    (node,) = read.node_metric.node_usage.devices
    assert (node.id, node.minor, node.type, node.health) == ("GPU-1", 1, "gpu", True)
    assert node.resources == {
        "koordinator.sh/gpu-core": "62",
        "koordinator.sh/gpu-memory": "20Gi",
        "koordinator.sh/gpu-memory-ratio": "25",
    }
    (pod,) = read.pods_metric
    assert pod.pod_usage.devices == (node,)
    usage = read.node_metric.aggregated_node_usages[0].usage
    core = {
        name: one.devices[0].resources["koordinator.sh/gpu-core"] for name, one in usage.items()
    }
    assert core == {"avg": "62", "p50": "62", "p90": "92", "p95": "96", "p99": "99"}
    assert read.node_metric.aggregated_node_usages[2].usage["avg"].devices == ()
    assert read.node_metric.aggregated_system_usages[0].usage["avg"].devices == ()
    (container,) = read.pod_metrics[0].containers
    assert container.usage["koordinator.sh/gpu-memory"] == "20Gi"


def test_gpus_that_are_gone_are_taken_out_of_the_report(samples):
    assert status(samples)["nodeMetric"]["nodeUsage"]["devices"] is None
