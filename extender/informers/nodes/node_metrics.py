"""Load reports of nodes: the NodeMetric object in either shape, folded into what load needs."""

import sys
from collections.abc import Sequence

import msgspec

from api import names
from api.koordinator.metrics import nodemetric_structs as wire
from api.kubernetes import core
from api.wire import durations, quantity
from domain.usage import load
from extender.state import bounds

NodeMetric = wire.NodeMetric
"""What the agent of a node reports, as it is decoded."""


class NamedReport(msgspec.Struct, frozen=True, gc=False):
    """A report and the node it is about."""

    node: str
    report: load.Report


_DEFAULT_INTERVAL = 60.0


class Reader:
    """Reads reports into vectors over one universe of resources."""

    def __init__(self, universe: Sequence[str]) -> None:
        self.read_for(universe)

    def read_for(self, universe: Sequence[str]) -> None:
        """Read later reports for these resources."""
        self._universe = tuple(universe)
        self._zero = (0,) * len(self._universe)

    def named(self, metric: NodeMetric) -> NamedReport:
        """Return a report together with its node."""
        return NamedReport(sys.intern(metric.metadata.name), self.report(metric))

    def report(self, metric: NodeMetric) -> load.Report:
        """Return what a NodeMetric says."""
        status = metric.status
        node = status.node_metric
        pods = {
            sys.intern(f"{pod.namespace}/{pod.name}"): (
                pod.priority == names.PRIORITY_CLASS_PROD,
                self._usage(pod.pod_usage.resources),
            )
            for pod in status.pods_metric or ()
        }
        for short in () if pods else status.pod_metrics or ():
            key = sys.intern(f"{short.pod_ref.namespace}/{short.pod_ref.name}")
            pods[key] = (False, self._sum(short.containers))
        return load.Report(
            updated_at=durations.timestamp(status.update_time) if status.update_time else None,
            interval=_interval(metric.spec),
            usage=None if node is None else self._vector(node.node_usage.resources or node.usage),
            system=self._zero if node is None else self._vector(node.system_usage.resources),
            windows=() if node is None else self._windows(node.aggregated_node_usages),
            pods=pods,
            universe=self._universe,
        )

    def _windows(self, aggregates: Sequence[wire.Aggregate]) -> tuple[load.Window, ...]:
        return tuple(
            load.Window(
                durations.seconds(aggregate.duration),
                {
                    kind: self._vector(usage.resources)
                    for kind, usage in aggregate.usage.items()
                    if usage.resources
                },
            )
            for aggregate in aggregates
        )

    def _vector(self, written: core.ResourceList) -> load.Vector:
        return tuple(
            [bounds.bounded(quantity.amount(n, written.get(n, 0))) for n in self._universe]
        )

    def _usage(self, written: core.ResourceList) -> load.Vector | None:
        return self._vector(written) if written else None

    def _sum(self, containers: Sequence[wire.ShortContainer]) -> load.Vector | None:
        total: load.Vector | None = None
        for container in containers:
            usage = self._usage(container.usage)
            if usage is not None:
                total = usage if total is None else load.plus(total, usage)
        return total


def _interval(spec: wire.Spec) -> float:
    policy = spec.metric_collect_policy
    written = policy.report_interval_seconds if policy else None
    return float(written or spec.collection_interval_seconds or _DEFAULT_INTERVAL)
