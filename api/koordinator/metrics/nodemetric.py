"""NodeMetric: what a node and its pods really use, in the published shape and in shorthand."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from api.koordinator import devices
from api.koordinator.metrics import metric_collection
from api.kubernetes import meta
from api.wire import base, quantity

Devices = tuple[devices.DeviceInfo, ...]


class ResourceMap(base.Model):
    """Amounts by resource."""

    resources: base.ResourceList = Field(default={})
    """Amounts, for instance of cpu and memory."""
    devices: Devices = ()
    """Amounts by device."""


class Aggregated(base.Model):
    """Statistics over one window."""

    duration: base.Duration = 0.0
    """The window."""
    usage: dict[str, ResourceMap] = Field(default={})
    """Amounts by statistic: avg, p50, p90, p95, p99."""


class NumaUsage(base.Model):
    """Usage of one NUMA node."""

    numa_node_id: base.Int32
    """The NUMA node."""
    node_usage: ResourceMap | None = None
    """Usage of everything on it."""
    system_usage: ResourceMap | None = None
    """Usage of what is neither a pod nor a host application."""


class NodeUsage(base.Model):
    """Usage of the node."""

    node_usage: ResourceMap = ResourceMap()
    """Usage of everything on it."""
    aggregated_node_usages: tuple[Aggregated, ...] = ()
    """Statistics of it by window."""
    system_usage: ResourceMap = ResourceMap()
    """Usage of what is neither a pod nor a host application."""
    aggregated_system_usages: tuple[Aggregated, ...] = ()
    """Statistics of it by window."""
    numa_usages: tuple[NumaUsage, ...] = ()
    """Usage by NUMA node."""
    usage: base.ResourceList = Field(default={})
    """Usage of the node, in short."""
    request: base.ResourceList = Field(default={})
    """Requests of all pods on the node."""
    limit: base.ResourceList = Field(default={})
    """Limits of all pods on the node."""


class PodMetric(base.Model):
    """Usage of one pod."""

    namespace: base.Text = ""
    """Namespace of the pod."""
    name: base.Text = ""
    """Name of the pod."""
    pod_usage: ResourceMap = ResourceMap()
    """What it uses."""
    priority: base.Text = ""
    """Its priority band."""
    qos: base.Text = ""
    """Its QoS class."""
    extensions: base.AnyObject = Field(default={})
    """Data of plug-ins."""

    @property
    def plugin_data(self) -> Mapping[str, Any]:
        """Return the data of plug-ins, wherever it was written."""
        inner = self.extensions.get("Object")
        return inner if isinstance(inner, Mapping) else self.extensions


class HostApplicationMetric(base.Model):
    """Usage of one host application."""

    name: base.Text = ""
    """Name of the application."""
    usage: ResourceMap = ResourceMap()
    """What it uses."""
    priority: base.Text = ""
    """Its priority band."""
    qos: base.Text = ""
    """Its QoS class."""


class Reclaimable(base.Model):
    """A predicted amount."""

    resource: ResourceMap = ResourceMap()
    """The amount."""


class ClassMetric(base.Model):
    """Usage of all pods of one class."""

    usage: base.ResourceList = Field(default={})
    """What they use."""
    request: base.ResourceList = Field(default={})
    """What they request."""
    limit: base.ResourceList = Field(default={})
    """Their limits."""


class PodRef(base.Model):
    """Which pod is meant."""

    namespace: base.Text = ""
    """Namespace of the pod."""
    name: base.Text = ""
    """Name of the pod."""


class ContainerMetric(ClassMetric):
    """Usage of one container."""

    name: base.Text = ""
    """Name of the container."""


class ContainersMetric(base.Model):
    """Usage of the containers of one pod."""

    pod_ref: PodRef = PodRef()
    """The pod."""
    containers: tuple[ContainerMetric, ...] = ()
    """Its containers."""


class EvictionCount(base.Model):
    """Evictions of one strategy of the agent."""

    strategy: base.Text = ""
    """Which one."""
    evicted: base.Int64 = 0
    """How often it evicted a pod."""
    would_evict: base.Int64 = 0
    """How often it would have, where it only observes."""


class Scorecard(base.Model):
    """What the agent did so far on one day, or would have done where it only observes."""

    date: base.Text = ""
    """The day of UTC, such as 2026-01-31."""
    seconds: base.Int64 = 0
    """How long the agent watched the node."""
    enforced_seconds: base.Int64 = 0
    """How long of it suppression was enforced; it was only observed in the rest."""
    known_seconds: base.Int64 = 0
    """How long it was known whether the node uses more cpu than the threshold."""
    over_seconds: base.Int64 = 0
    """How long the node used more cpu than the threshold of suppression."""
    at_limit_seconds: base.Int64 = 0
    """How long best-effort work was at its limit, or would have been."""
    suppressed_core_seconds: base.Int64 = 0
    """Core-seconds that best-effort work asked for and did not get."""
    would_suppress_core_seconds: base.Int64 = 0
    """Core-seconds that it used and would not have got, while suppression was only observed."""
    measured_pod_seconds: base.Int64 = 0
    """Seconds of online pods of which throttling was measured."""
    throttled_pod_seconds: base.Int64 = 0
    """The same times the share of periods in which they were throttled."""
    evicted_pods: base.Int64 = 0
    """Pods that were evicted."""
    evicted_online_pods: base.Int64 = 0
    """Those of them that are not best effort."""
    would_evict_pods: base.Int64 = 0
    """Pods that would have been evicted, where eviction is only observed."""
    would_evict_online_pods: base.Int64 = 0
    """Those of them that are not best effort."""
    evictions: Annotated[tuple[EvictionCount, ...], Field(max_length=16)] = ()
    """Evictions by the strategy that asked for them."""


class Status(base.Model):
    """What was measured."""

    update_time: base.Moment | None = None
    """When it was reported."""
    node_metric: NodeUsage | None = None
    """The node."""
    pods_metric: tuple[PodMetric, ...] = ()
    """Its pods."""
    host_application_metric: tuple[HostApplicationMetric, ...] = ()
    """Its host applications."""
    prod_reclaimable_metric: Reclaimable | None = None
    """What production pods are predicted to leave unused."""
    prod_peak_metric: Reclaimable | None = None
    """What production pods are predicted to need at most, margins included."""
    be_metric: ClassMetric | None = None
    """All BE pods."""
    ls_metric: ClassMetric | None = None
    """All other pods."""
    pod_metrics: tuple[ContainersMetric, ...] = ()
    """Containers by pod."""
    scorecard: Scorecard | None = None
    """What the agent did today."""
    conditions: Annotated[tuple[meta.LooseCondition, ...], Field(max_length=64)] = ()
    """Observed facts."""


class NodeMetric(meta.Object):
    """What one node really uses; carries the node's name."""

    spec: metric_collection.Spec = metric_collection.Spec()
    """How it is measured."""
    status: Status = Status()
    """What was measured."""


def read_node_metric(raw: Mapping[str, Any]) -> NodeMetric:
    """Read a NodeMetric in either shape."""
    return review_node_metric(raw).value


def review_node_metric(raw: Mapping[str, Any]) -> base.Read[NodeMetric]:
    """Read a NodeMetric in either shape and report where the shapes disagree."""
    status = base.section(raw, "status")
    spec, warnings = metric_collection.folded(base.section(raw, "spec"))
    name = base.section(raw, "metadata").get("name", "")
    node = spec.get("nodeName")
    if node and name and node != name:
        warnings.append(f"spec.nodeName: {node} is ignored, the object is named {name}")
    usage = base.section(status, "nodeMetric")
    if usage.get("usage") and not usage.get("nodeUsage"):
        status["nodeMetric"] = {**usage, "nodeUsage": {"resources": usage["usage"]}}
    if status.get("podMetrics") and not status.get("podsMetric"):
        status["podsMetric"] = _pods(status["podMetrics"])
    folded = {**raw, "spec": spec, "status": status}
    return base.Read(base.read(NodeMetric, folded), tuple(warnings))


def _pods(written: Any) -> list[dict[str, Any]]:
    pods = []
    for item in written if isinstance(written, list | tuple) else ():
        if isinstance(item, Mapping):
            total = _sum(
                base.section(container, "usage")
                for container in item.get("containers") or ()
                if isinstance(container, Mapping)
            )
            pods.append({**base.section(item, "podRef"), "podUsage": {"resources": total}})
    return pods


def _sum(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    total: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            try:
                total[name] = total.get(name, 0) + quantity.amount(name, value)
            except ValueError:
                return dict(part)  # left to the model, which names the field
    return quantity.texts(total)
