"""What is measured on nodes, in columns, and what moves that are under way make of it. Pure."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from api import names
from api.koordinator.metadata import qos
from descheduler.model import nodeinfo, picture, podinfo

Columns = npt.NDArray[np.int64]
"""One row per node, one column per resource."""
Places = npt.NDArray[np.intp]
"""Rows or columns of it."""
SETTLING_SECONDS: Final = 60.0
"""How long a NodeMetric may lack a pod that has started."""
_MOST: Final = 1 << 53
"""Larger amounts are wrong, and no longer exact as numbers of the thresholds."""
_NO_PODS: Final[Sequence[podinfo.Pod]] = ()
_NATIVE: Final[Mapping[str, str]] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """Load of the nodes that have a current NodeMetric; its columns follow the moves of a round."""

    resources: tuple[str, ...]
    nodes: tuple[nodeinfo.Node, ...]
    rows: Mapping[str, int]
    """By name of the node."""
    capacity: Columns
    usage: Columns
    """System and pods, without those that leave already."""
    prod: Columns
    """The pods of priority class prod among them."""
    arriving: Columns
    """What pods will use that are to come or have just started, and are not measured yet."""
    leaving: frozenset[str]
    """UIDs of pods that leave already."""

    def moved(self, amounts: Columns, source: int, target: int, *, prod: bool) -> None:
        """Let a pod use what it uses on another node; a target of -1 is not known."""
        self.usage[source] -= amounts
        if prod:
            self.prod[source] -= amounts
        if target >= 0:
            self.usage[target] += amounts
        if target >= 0 and prod:
            self.prod[target] += amounts

    def columns(self, resources: Iterable[str]) -> Places:
        """Return the columns of some resources."""
        return np.array([self.resources.index(name) for name in resources], dtype=np.intp)

    def amounts(self, used: podinfo.Amounts) -> Columns:
        """Return what a pod uses as a row; it is one of `pods`."""
        row = [_bounded(used.get(name, 0)) for name in self.resources]
        if names.PODS in self.resources:
            row[self.resources.index(names.PODS)] = 1
        return np.array(row, dtype=np.int64)


class _Departures(NamedTuple):
    """Pods that migration jobs move, or have moved."""

    uids: frozenset[str]
    """Of those that leave already."""
    keys: frozenset[str]
    """Of all that have a job; reports show their usage until the next one."""


class _Row(NamedTuple):
    usage: list[int]
    prod: list[int]
    arriving: list[int]


def read(
    seen: picture.Picture,
    nodes: Iterable[nodeinfo.Node],
    resources: tuple[str, ...],
    expiration_seconds: float,
) -> Load:
    """Sum up what is measured; nodes without a NodeMetric that is current are left out."""
    departures = _departures(seen)
    current = tuple(
        node
        for node in nodes
        if (report := seen.usage.get(node.name)) is not None
        and seen.now - report.updated_at < expiration_seconds
    )
    found = _rows(seen, current, resources, departures)
    shape = (len(current), len(resources))
    load = Load(
        resources=resources,
        nodes=current,
        rows={node.name: row for row, node in enumerate(current)},
        capacity=_columns([_amounts(node.capacity, resources) for node in current], shape),
        usage=_columns([row.usage for row in found], shape),
        prod=_columns([row.prod for row in found], shape),
        arriving=_columns([row.arriving for row in found], shape),
        leaving=departures.uids,
    )
    _count_arrivals(load, seen)
    return load


def _rows(
    seen: picture.Picture,
    nodes: Iterable[nodeinfo.Node],
    resources: tuple[str, ...],
    departures: _Departures,
) -> list[_Row]:
    """Return what is measured by node; plug-ins and the objective ask for the same."""
    known: dict[str, _Row] = seen.memo.setdefault((__name__, resources), {})
    found = []
    for node in nodes:
        row = known.get(node.name)
        if row is None:
            pods = seen.on_node.get(node.name, _NO_PODS)
            row = known[node.name] = _row(seen.usage[node.name], pods, resources, departures)
        found.append(row)
    return found


def _departures(seen: picture.Picture) -> _Departures:
    jobs = seen.jobs.values()
    return _Departures(
        frozenset(job.spec.pod_ref.uid for job in jobs if job.is_open),
        frozenset(job.pod_key for job in jobs),
    )


def _row(
    report: nodeinfo.Usage,
    pods: Iterable[podinfo.Pod],
    resources: tuple[str, ...],
    departures: _Departures,
) -> _Row:
    # Names are looked up once: this runs for every pod of the cluster.
    by_pod, uids, prod_band = report.by_pod, departures.uids, qos.Band.PROD
    gone, prod, arriving = [], [], []
    total = prods = leaving = 0
    for pod in pods:
        if pod.phase in podinfo.ENDED:
            continue
        total += 1
        used = by_pod.get(pod.key)
        if pod.leaves_at >= 0 or pod.uid in uids:
            leaving += 1
            gone.append(used or podinfo.NOTHING)
            continue
        if pod.band is prod_band:
            prods += 1
            prod.append(used or podinfo.NOTHING)
        if used is None and pod.created > report.updated_at - SETTLING_SECONDS:
            arriving.append(_expected(pod, resources))
    if departures.keys:
        gone.extend(_moved_away(by_pod, pods, departures.keys))
    usage = _sum([report.system, *by_pod.values()], resources, total)
    if gone:
        usage = _less(usage, _sum(gone, resources, leaving))
    return _Row(usage, _sum(prod, resources, prods), _sum(arriving, resources, 0))


def _moved_away(
    by_pod: Mapping[str, podinfo.Amounts], pods: Iterable[podinfo.Pod], moved: Collection[str]
) -> Iterable[podinfo.Amounts]:
    """Return the usage of pods that a job has moved away since it was measured."""
    listed = [key for key in by_pod if key in moved]
    here = {pod.key for pod in pods if not pod.has_ended} if listed else ()
    return [by_pod[key] for key in listed if key not in here]


def _expected(pod: podinfo.Pod, resources: tuple[str, ...]) -> podinfo.Amounts:
    """Return what a pod may use that is not measured yet: what it requests."""
    lent = qos.TRANSLATION.get(pod.band, _NATIVE)
    return {name: pod.requests.get(lent.get(name, name), 0) for name in resources}


def _count_arrivals(load: Load, seen: picture.Picture) -> None:
    """Count pods that a job is moving on the node where it has reserved their place."""
    for job in seen.jobs.values():
        target = load.rows.get(job.status.node_name) if job.is_open else None
        pod = seen.pods.get(job.spec.pod_ref.uid)
        if target is None or pod is None or pod.node == job.status.node_name:
            continue
        report = seen.usage.get(pod.node)
        used = report.by_pod.get(pod.key) if report is not None else None
        load.arriving[target] += load.amounts(used or _expected(pod, load.resources))


def _sum(parts: Sequence[podinfo.Amounts], resources: tuple[str, ...], pods: int) -> list[int]:
    if not parts:
        return [pods if name == names.PODS else 0 for name in resources]
    return [
        pods if name == names.PODS else _bounded(sum([part.get(name, 0) for part in parts]))
        for name in resources
    ]


def _less(left: Sequence[int], right: Sequence[int]) -> list[int]:
    return [one - other for one, other in zip(left, right, strict=True)]


def _amounts(given: podinfo.Amounts, resources: tuple[str, ...]) -> list[int]:
    return [_bounded(given.get(name, 0)) for name in resources]


def _bounded(amount: int) -> int:
    return 0 if amount < 0 else min(amount, _MOST)


def _columns(rows: Sequence[Sequence[int]], shape: tuple[int, int]) -> Columns:
    return np.array(rows, dtype=np.int64).reshape(shape)
