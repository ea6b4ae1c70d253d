"""Resources lent, held, used and given back at this moment, by namespace. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from api import names
from api.kubernetes import core
from domain.daily_sums import sums
from domain.pods import resources
from manager.model import projections

PODS_A_STEP: Final = 2000
_LENT: Final = (names.BATCH_CPU, names.MID_CPU)
_DISRUPTED: Final = "DisruptionTarget"


class TeamPod(msgspec.Struct, frozen=True, gc=False):
    """A pod as far as its namespace's share is concerned; thousandths of a core."""

    node: str
    """Empty while it waits."""
    held: int
    """Requested of the lent resources."""
    requested: int
    """Requested otherwise."""
    disrupted: bool
    """Whether it is being evicted."""


def team_pod(pod: core.Pod) -> TeamPod | None:
    """Project a pod; one that is over holds nothing."""
    if pod.finished:
        return None
    asked = resources.pod_requests(pod)
    condition = pod.status.condition(_DISRUPTED)
    return TeamPod(
        pod.spec.node_name,
        sum(asked.get(name, 0) for name in _LENT),
        asked.get(names.CPU, 0),
        condition is not None and condition.status == "True",
    )


class Counting:
    """Adds up the pods of one moment, some at a time."""

    def __init__(
        self,
        nodes: Iterable[projections.Node],
        report_of: Callable[[str], projections.Report | None],
    ) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._reports = {name: report_of(name) for name in self._nodes}
        self._held: dict[tuple[str, str], int] = {}
        """By namespace and node."""
        self._used: dict[str, int] = {}
        self._left: dict[str, int] = {}
        self._waiting: dict[str, int] = {}

    def add(self, key: str, pod: TeamPod) -> None:
        """Count one pod by its namespace/name."""
        namespace = key.partition("/")[0]
        if not pod.node:
            self._waiting[namespace] = self._waiting.get(namespace, 0) + 1
            return
        report = self._reports.get(pod.node)
        measured = None if report is None else report.pods.get(key)
        if pod.held:
            at = namespace, pod.node
            self._held[at] = self._held.get(at, 0) + pod.held
            if measured is not None:
                self._used[namespace] = self._used.get(namespace, 0) + measured[0].cpu
        elif measured is not None:
            left = max(pod.requested - measured[0].cpu, 0)
            self._left[namespace] = self._left.get(namespace, 0) + left

    def rates(self, evicted: Mapping[str, int]) -> sums.Rates:
        """Return cores instead of core-seconds, and the evictions since the last moment."""
        held: dict[str, int] = {}
        returned: dict[str, float] = {}
        share = dict(self._shares())
        for (namespace, node), milli in self._held.items():
            held[namespace] = held.get(namespace, 0) + milli
            part = milli * share.get(node, 0.0)
            returned[namespace] = returned.get(namespace, 0.0) + part
        teams = {}
        for name in {*held, *self._left, *self._waiting, *evicted}:
            teams[name] = sums.Team(
                self._left.get(name, 0) / 1000,
                held.get(name, 0) / 1000,
                self._used.get(name, 0) / 1000,
                returned.get(name, 0.0) / 1000,
                float(self._waiting.get(name, 0)),
                float(evicted.get(name, 0)),
            )
        return sums.Rates(self._cluster(), teams)

    def _shares(self) -> Iterator[tuple[str, float]]:
        """Yield which share of what is held on a node it no longer lends."""
        held: dict[str, int] = {}
        for (_, node), milli in self._held.items():
            held[node] = held.get(node, 0) + milli
        for node, milli in held.items():
            known = self._nodes.get(node)
            lent = 0 if known is None else _lent(known)
            if milli > lent:
                yield node, (milli - lent) / milli

    def _cluster(self) -> sums.Cluster:
        used = sum(self._used.values())
        whole = 0
        for report in self._reports.values():
            if report is not None and report.usage is not None:
                whole += report.usage.cpu
        nodes = self._nodes.values()
        return sums.Cluster(
            1.0,
            sum(node.allocatable.cpu for node in nodes) / 1000,
            sum(node.published[1].get(names.BATCH_CPU, 0) for node in nodes) / 1000,
            max(whole - used, 0) / 1000,
            used / 1000,
        )


def _lent(node: projections.Node) -> int:
    return sum(node.published[1].get(name, 0) for name in _LENT)
