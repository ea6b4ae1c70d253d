"""NodeMetric is read in both shapes; the documented figures come out."""

import pytest

from api import resources
from api.koordinator.metrics import nodemetric
from api.wire import base, quantity
from tests import builders


def amounts(resources):
    return quantity.amounts(resources)


def cores(count):
    return {"cpu": count * 1000, "memory": count << 30}


def test_the_example(manifests):
    read = nodemetric.review_node_metric(manifests["000-nodemetric-node-001"])
    assert read.warnings == ()
    spec, status = read.value.spec, read.value.status
    assert spec.metric_collect_policy is not None
    assert spec.metric_collect_policy.report_interval_seconds == 60
    assert status.update_time == 1704110400
    node = status.node_metric
    assert node is not None
    assert amounts(node.usage) == amounts(node.node_usage.resources) == cores(64)
    assert (amounts(node.request), amounts(node.limit)) == (cores(100), cores(128))
    assert status.be_metric is not None
    assert status.ls_metric is not None
    assert amounts(status.be_metric.usage) == cores(20)
    assert amounts(status.be_metric.request) == cores(30)
    assert amounts(status.ls_metric.usage) == cores(44)
    assert amounts(status.ls_metric.request) == cores(70)


def test_usage_by_container(manifests):
    status = nodemetric.read_node_metric(manifests["000-nodemetric-node-001"]).status
    (pod,) = status.pod_metrics
    assert (pod.pod_ref.namespace, pod.pod_ref.name) == ("default", "web-server-1")
    (container,) = pod.containers
    assert container.name == "app"
    assert (amounts(container.usage), amounts(container.limit)) == (cores(2), cores(4))
    (total,) = status.pods_metric
    assert (total.name, amounts(total.pod_usage.resources)) == ("web-server-1", cores(2))


def test_containers_of_a_pod_are_summed():
    shorthand = [
        {
            "podRef": {"namespace": "d", "name": "p"},
            "containers": [
                {"name": "a", "usage": {"cpu": "250m", "memory": "1Gi"}},
                {"name": "b", "usage": {"cpu": "1"}},
            ],
        }
    ]
    raw = builders.an_object(resources.NODE_METRICS, "n", status={"podMetrics": shorthand})
    (pod,) = nodemetric.read_node_metric(raw).status.pods_metric
    assert pod.pod_usage.resources == {"cpu": "1250m", "memory": "1Gi"}


def test_the_published_shape_wins():
    raw = builders.an_object(
        resources.NODE_METRICS,
        "n",
        spec={
            "nodeName": "m",
            "collectionIntervalSeconds": 30,
            "metricCollectPolicy": {"reportIntervalSeconds": 15},
        },
        status={
            "nodeMetric": {"usage": {"cpu": "1"}, "nodeUsage": {"resources": {"cpu": "2"}}},
            "podsMetric": [builders.a_pod_metric("p", cpu="1", memory="1Gi")],
            "podMetrics": [{"podRef": {"name": "q"}}],
        },
    )
    read = nodemetric.review_node_metric(raw)
    policy, node = read.value.spec.metric_collect_policy, read.value.status.node_metric
    assert policy is not None
    assert policy.report_interval_seconds == 15
    assert node is not None
    assert node.node_usage.resources == {"cpu": "2"}
    assert [pod.name for pod in read.value.status.pods_metric] == ["p"]
    interval, node_name = read.warnings
    assert interval == (
        "spec.collectionIntervalSeconds: 30 differs from "
        "spec.metricCollectPolicy.reportIntervalSeconds: 15, which is used"
    )
    assert node_name == "spec.nodeName: m is ignored, the object is named n"


def test_a_report_reads_back_as_it_was_built():
    raw = builders.a_node_metric(
        "n",
        cpu="3",
        memory="9Gi",
        pods=[builders.a_pod_metric("p", cpu="1", memory="1Gi", band="koord-prod", qos="LS")],
        system={"cpu": "500m"},
        aggregated={"5m": {"p95": {"cpu": "4"}}},
        reclaimable={"cpu": "2"},
        update_time=60,
    )
    read = nodemetric.read_node_metric(raw)
    assert read.name == "n"
    node = read.status.node_metric
    assert node is not None
    assert node.node_usage.resources == {"cpu": "3", "memory": "9Gi"}
    (window,) = node.aggregated_node_usages
    assert (window.duration, window.usage["p95"].resources) == (300, {"cpu": "4"})
    assert read.status.update_time == 60
    assert read.status.prod_reclaimable_metric is not None
    assert read.status.prod_reclaimable_metric.resource.resources == {"cpu": "2"}


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"nodeMemoryCollectPolicy": "all"}, "nodeMemoryCollectPolicy"),
        ({"aggregateDurationSeconds": -1}, "aggregateDurationSeconds"),
        ({"nodeAggregatePolicy": {"durations": ["-5m"]}}, r"durations\[0\]: must not be negative"),
    ],
)
def test_bad_policies_are_refused(policy, field):
    raw = builders.an_object(resources.NODE_METRICS, "n", spec={"metricCollectPolicy": policy})
    with pytest.raises(base.ReadError, match=f"NodeMetric n: spec.metricCollectPolicy.*{field}"):
        nodemetric.read_node_metric(raw)


def test_a_bad_amount_is_named():
    shorthand = [{"podRef": {"name": "p"}, "containers": [{"usage": {"cpu": "much"}}]}]
    raw = builders.an_object(resources.NODE_METRICS, "n", status={"podMetrics": shorthand})
    with pytest.raises(base.ReadError, match='"much" is no quantity'):
        nodemetric.read_node_metric(raw)
