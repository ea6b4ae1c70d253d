"""What pods hold of each node, summed once and kept until something on that node changes."""

from collections.abc import Iterator, Mapping
from typing import Final

from domain.lending import colocation, zones
from kube.informers import store
from manager.model import projections

_NO_PODS: Final[Mapping[str, projections.Pod]] = {}
_NO_REPORT: Final[projections.Report] = projections.Report(None, colocation.NOTHING, {})


class Demands:
    """The sums of every node, fed by the stores of pods and reports."""

    def __init__(
        self, pods: store.Store[projections.Pod], metrics: store.Store[projections.Metric]
    ) -> None:
        self._metrics = metrics
        self._pods: dict[str, dict[str, projections.Pod]] = {}
        self._sums: dict[str, colocation.Demand] = {}
        pods.listen(self._pod_changed)
        metrics.listen(self._metric_changed)

    def of(self, node: str) -> colocation.Demand:
        """Return the sum over the pods of one node."""
        known = self._sums.get(node)
        if known is None:
            metric = self._metrics.get(node)
            report = _NO_REPORT if metric is None else metric.report
            known = self._sums[node] = total(self._pods.get(node, _NO_PODS), report)
        return known

    def pods(self, node: str) -> Mapping[str, projections.Pod]:
        """Return the pods of one node."""
        return self._pods.get(node, _NO_PODS)

    def held(self, node: str) -> tuple[zones.Held, ...]:
        """Return what holds a part of one node, one by one."""
        metric = self._metrics.get(node)
        report = _NO_REPORT if metric is None else metric.report
        return tuple(held(self._pods.get(node, _NO_PODS), report))

    def _pod_changed(self, change: store.Change[projections.Pod]) -> None:
        if change.old is not None and change.old.node:
            self._sums.pop(change.old.node, None)
            pods = self._pods[change.old.node]
            del pods[change.key]
            if not pods:
                del self._pods[change.old.node]
        if change.new is not None and change.new.node:
            self._sums.pop(change.new.node, None)
            self._pods.setdefault(change.new.node, {})[change.key] = change.new

    def _metric_changed(self, change: store.Change[projections.Metric]) -> None:
        self._sums.pop(change.key, None)


def held(pods: Mapping[str, projections.Pod], report: projections.Report) -> Iterator[zones.Held]:
    """Yield what holds a part of a node, with the zones it is bound to."""
    measured = report.pods
    for key, pod in pods.items():
        found = measured.get(key)
        usage = None if found is None else found[0]
        part = colocation.demand(pod.band, pod.request, usage, exclusive=pod.exclusive)
        yield zones.Held(part, pod.zones, measured=found is not None)
    for key, (usage, band) in measured.items():
        if key not in pods:
            yield zones.Held(colocation.unlisted(band, usage))


def total(pods: Mapping[str, projections.Pod], report: projections.Report) -> colocation.Demand:
    """Sum what the pods of one node hold, measured where they are measured."""
    return colocation.summed(part.demand for part in held(pods, report))
