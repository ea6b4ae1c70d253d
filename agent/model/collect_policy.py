"""What a NodeMetric asks of the agent: how often to report, over which windows. Pure."""

import msgspec

from api.koordinator.metrics import metric_collection


class Policy(msgspec.Struct, frozen=True):
    """How a node is measured and reported."""

    interval_seconds: float = 60.0
    aggregate_seconds: float = 300.0
    windows: tuple[float, ...] = (300.0, 600.0, 1800.0)
    collect: str = "usageWithoutPageCache"
    """Which page cache counts as used memory."""

    @property
    def longest(self) -> float:
        """The longest window of node figures."""
        return max(self.aggregate_seconds, *self.windows)


def of(spec: metric_collection.Spec) -> Policy:
    """Return the policy of a NodeMetric, with what it leaves open filled in."""
    default = Policy()
    written = spec.metric_collect_policy or metric_collection.CollectPolicy()
    aggregate = written.node_aggregate_policy
    return Policy(
        interval_seconds=written.report_interval_seconds or default.interval_seconds,
        aggregate_seconds=written.aggregate_duration_seconds or default.aggregate_seconds,
        windows=(aggregate.durations if aggregate else ()) or default.windows,
        collect=written.node_memory_collect_policy or default.collect,
    )
