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
