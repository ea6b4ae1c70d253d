"""How a NodeMetric wants to be filled; apart from what it is filled with, which an agent writes."""

from collections.abc import Mapping
from typing import Any, Literal

from api.wire import base

MemoryPolicy = Literal["usageWithHotPageCache", "usageWithoutPageCache", "usageWithPageCache"]


class AggregatePolicy(base.Model):
    """Windows over which percentiles are reported."""

    durations: tuple[base.Lifetime, ...] = ()
    """The windows; 5m, 10m and 30m when unset."""


class CollectPolicy(base.Model):
    """How the agent measures and reports."""

    aggregate_duration_seconds: base.NonNegative | None = None
    """Window of averages; 300 when unset."""
    report_interval_seconds: base.NonNegative | None = None
    """Time between reports; 60 when unset."""
    node_aggregate_policy: AggregatePolicy | None = None
    """Windows of percentiles."""
    node_memory_collect_policy: MemoryPolicy | None = None
    """Whether page cache counts as usage; usageWithoutPageCache when unset."""


class Spec(base.Model):
    """How the agent measures and reports."""

    metric_collect_policy: CollectPolicy | None = None
    """How the agent measures and reports."""
    node_name: base.Text = ""
    """Shorthand: the node; the object's name is what counts."""
    collection_interval_seconds: base.NonNegative | None = None
    """Shorthand for metricCollectPolicy.reportIntervalSeconds, which wins where both differ."""


def folded(spec: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a spec without shorthand, and where the two shapes disagree."""
    warnings: list[str] = []
    interval = spec.get("collectionIntervalSeconds")
    if interval is None:
        return dict(spec), warnings
    policy = base.section(spec, "metricCollectPolicy")
    if policy.setdefault("reportIntervalSeconds", interval) != interval:
        warnings.append(
            f"spec.collectionIntervalSeconds: {interval} differs from "
            "spec.metricCollectPolicy.reportIntervalSeconds: "
            f"{policy['reportIntervalSeconds']}, which is used"
        )
    return {**spec, "metricCollectPolicy": policy}, warnings


def read(raw: Mapping[str, Any]) -> Spec:
    """Read how a NodeMetric, in either shape, wants to be filled."""
    name = base.section(raw, "metadata").get("name", "")
    spec, _ = folded(base.section(raw, "spec"))
    return base.validated(Spec, spec, f"spec of NodeMetric {name}".rstrip())
