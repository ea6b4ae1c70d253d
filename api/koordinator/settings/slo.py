"""NodeSLO: what a node enforces, in the published shape and in shorthand."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from api.koordinator.metadata import pod_overrides
from api.koordinator.settings import strategies
from api.kubernetes import meta
from api.wire import base


class Spec(base.Model):
    """What the agent enforces on a node."""

    resource_used_threshold_with_be: strategies.ResourceThresholds | None = None
    """When batch work is suppressed or evicted."""
    resource_threshold_strategy: strategies.ResourceThresholdStrategy | None = None
    """Shorthand for resourceUsedThresholdWithBE, which wins where both are given and differ."""
    resource_qos_strategy: strategies.ResourceQOSStrategy | None = None
    """Settings of every QoS class."""
    cpu_burst_strategy: strategies.CPUBurstStrategy | None = None
    """How throttled containers may exceed their CPU limit."""
    system_strategy: strategies.SystemStrategy | None = None
    """Kernel settings of the whole node."""
    pod_override_limits: pod_overrides.PodOverrideLimits | None = None
    """What labels and annotations of pods may ask for at most."""
    host_applications: tuple[strategies.HostApplication, ...] = ()
    """Processes outside Kubernetes that take part in colocation."""
    extensions: base.AnyObject = Field(default={})
    """Data of plug-ins."""


class AppliedMetric(base.Model):
    """When the agent last applied the spec."""

    update_time: base.Moment | None = None
    """The moment."""


class Status(base.Model):
    """What became of the spec."""

    node_metric: AppliedMetric | None = None
    """When the agent last applied the spec."""
    conditions: Annotated[tuple[meta.LooseCondition, ...], Field(max_length=64)] = ()
    """Observed facts."""


class NodeSLO(meta.Object):
    """What one node enforces; carries the node's name."""

    spec: Spec = Spec()
    """What is to be enforced."""
    status: Status = Status()
    """What became of it."""

    @property
    def extensions(self) -> Mapping[str, Any]:
        """Return the data of plug-ins, wherever it was written."""
        inner = self.spec.extensions.get("Object")
        return inner if isinstance(inner, Mapping) else self.spec.extensions


_THRESHOLDS: Final = {
    "cpu-suppress-percent": "cpuSuppressThresholdPercent",
    "cpu-evict-threshold-percent": "cpuEvictThresholdPercent",
    "memory-evict-threshold-percent": "memoryEvictThresholdPercent",
    "memory-request-utilization-percent": "memoryRequestUtilizationPercent",
}
BLOCK_IO: Final = "blkioQOS"
BLOCK_IO_SHORTHAND: Final = "blkIOQOS"
_CLASSES: Final = ("lsrClass", "lsClass", "beClass", "systemClass", "cgroupRoot")


def read_node_slo(raw: Mapping[str, Any]) -> NodeSLO:
    """Read a NodeSLO in either shape."""
    return review_node_slo(raw).value


def review_node_slo(raw: Mapping[str, Any]) -> base.Read[NodeSLO]:
    """Read a NodeSLO in either shape and report where the shapes disagree."""
    warnings: list[str] = []
    spec = base.section(raw, "spec")
    shorthand = base.section(spec, "resourceThresholdStrategy")
    if shorthand:
        spec["resourceUsedThresholdWithBE"] = _thresholds(spec, shorthand, warnings)
    if isinstance(spec.get("resourceQOSStrategy"), Mapping):
        spec["resourceQOSStrategy"] = _classes(spec["resourceQOSStrategy"], warnings)
    return base.Read(base.read(NodeSLO, {**raw, "spec": spec}), tuple(warnings))


def _thresholds(
    spec: Mapping[str, Any], shorthand: Mapping[str, Any], warnings: list[str]
) -> dict[str, Any]:
    figures = base.section(shorthand, "thresholds")
    pairs = [("enable", "enable", shorthand.get("enable"))]
    pairs += [(f"thresholds.{old}", new, figures.get(old)) for old, new in _THRESHOLDS.items()]
    folded = _said(base.section(spec, "resourceUsedThresholdWithBE"))
    for old, new, value in pairs:
        if value is not None and folded.setdefault(new, value) != value:
            warnings.append(
                f"spec.resourceThresholdStrategy.{old}: {value} differs from "
                f"spec.resourceUsedThresholdWithBE.{new}: {folded[new]}, which is used"
            )
    return folded


def _classes(written: Mapping[str, Any], warnings: list[str]) -> dict[str, Any]:
    folded = dict(written)
    for name in _CLASSES:
        settings = written.get(name)
        if not isinstance(settings, Mapping):
            continue
        folded[name], differing = fold_block_io(settings)
        path = f"spec.resourceQOSStrategy.{name}"
        warnings += [
            f"{path}.{BLOCK_IO_SHORTHAND}.{key}: differs from "
            f"{path}.{BLOCK_IO}.{key}, which is used"
            for key in differing
        ]
    return folded


def fold_block_io(settings: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Add to a class's blkioQOS what only blkIOQOS says; return the keys in which they differ.

    Key by key, because the manager owns fields one by one: it gives up those of blkioQOS that a
    person has set in shorthand, and keeps the others.
    """
    folded = dict(settings)
    shorthand, published = settings.get(BLOCK_IO_SHORTHAND), settings.get(BLOCK_IO)
    if not isinstance(shorthand, Mapping) or not isinstance(published, Mapping | None):
        return folded, ()  # Their model refuses values of another type.
    short, said = _said(shorthand), _said(published or {})
    if short or published is not None:
        folded[BLOCK_IO] = {**short, **said}
    return folded, tuple(key for key in short if said.get(key, short[key]) != short[key])


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is null, which says nothing."""
    return {name: value for name, value in values.items() if value is not None}
