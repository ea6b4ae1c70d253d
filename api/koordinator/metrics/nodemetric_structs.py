"""NodeMetric as lean structs: only the fields that schedulers and the descheduler read.

Thousands of these arrive every minute with thousands of pods inside, hence structs that skip what
is not read. Both shapes of the object are here: the full one and the short one.
"""

from typing import Any

import msgspec

from api.kubernetes import core


class _Wire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    pass


class Resources(_Wire, frozen=True, gc=False):
    """Amounts by resource."""

    resources: core.ResourceList = {}


class Aggregate(_Wire, frozen=True, gc=False):
    """Statistics over one window."""

    duration: str = "0s"
    usage: dict[str, Resources] = {}


class Node(_Wire, frozen=True, gc=False):
    """Usage of the node."""

    node_usage: Resources = Resources()
    system_usage: Resources = Resources()
    aggregated_node_usages: tuple[Aggregate, ...] = ()
    usage: core.ResourceList = {}


class Pod(_Wire, frozen=True, gc=False):
    """Usage of one pod."""

    namespace: str = ""
    name: str = ""
    priority: str = ""
    pod_usage: Resources = Resources()
    extensions: Any = None
    """What agents report beyond the published type, of pods that have it; not checked."""


class PodReference(_Wire, frozen=True, gc=False):
    """Which pod is meant."""

    namespace: str = ""
    name: str = ""


class ShortContainer(_Wire, frozen=True, gc=False):
    """Usage of one container, in the short shape."""

    usage: core.ResourceList = {}


class ShortPod(_Wire, frozen=True, gc=False):
    """Usage of one pod, in the short shape."""

    pod_ref: PodReference = PodReference()
    containers: tuple[ShortContainer, ...] = ()


class Status(_Wire, frozen=True, gc=False):
    """What was measured."""

    update_time: str | None = None
    node_metric: Node | None = None
    pods_metric: tuple[Pod, ...] | None = None
    pod_metrics: tuple[ShortPod, ...] | None = None


class CollectPolicy(_Wire, frozen=True, gc=False):
    """How it is measured."""

    report_interval_seconds: int | None = None


class Spec(_Wire, frozen=True, gc=False):
    """How it is measured, in either shape."""

    metric_collect_policy: CollectPolicy | None = None
    collection_interval_seconds: int | None = None


class NodeMetric(_Wire, frozen=True, gc=False):
    """What the agent of a node reports."""

    metadata: core.ObjectMeta = core.ObjectMeta()
    spec: Spec = Spec()
    status: Status = Status()
