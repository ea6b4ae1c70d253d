"""What the pods of a node add to its NodeMetric report, kept in step with few changes. Pure.

A node changes by one pod at a time, and its report once a minute: the sums of all its pods are
computed once for a report, then what comes and goes is added and taken away. They are sums of whole
numbers, so both ways lead to the same. Two states may ask about a node in turn: the cluster, and
the fork on which gangs are planned. Each goes on from what is closest to its own pods.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from domain.usage import load
from extender.framework import views

_MOST_NODES: Final = 16384
"""Nodes whose sums are remembered."""
_MOST_CHANGES: Final = 4
"""Pods that come and go at once; for more of them everything is summed anew."""


class _Kept(msgspec.Struct, frozen=True, gc=False):
    """The sums of these pods, and the report to which they add."""

    report: load.Report
    pods: tuple[views.PodRecord, ...]
    sums: load.Sums


class _Change(msgspec.Struct, frozen=True, gc=False):
    """Pods that are on a node now and were not, and those that were."""

    come: Sequence[views.PodRecord]
    gone: Sequence[views.PodRecord]

    @property
    def size(self) -> int:
        """Return how many pods differ."""
        return len(self.come) + len(self.gone)


class NodeSums:
    """The sums of each node, in units of the universe: millicores, bytes."""

    def __init__(
        self,
        resident: Callable[[views.PodRecord], load.Resident],
        width: int,
        *,
        include_system: bool,
    ) -> None:
        self._resident, self._width, self._include_system = resident, width, include_system
        self._kept: dict[str, tuple[_Kept, ...]] = {}
        """By node: what was asked about last, at most twice, all of it with one report."""

    def of(self, node: str, report: load.Report, pods: tuple[views.PodRecord, ...]) -> load.Sums:
        """Return the sums of a node with this report and these pods."""
        known = self._kept.get(node, ())
        if not known and len(self._kept) >= _MOST_NODES:
            self._kept.clear()
        if not known or known[0].report is not report:
            sums = self._whole(report, pods)
            self._kept[node] = (_Kept(report, pods, sums),)
            return sums
        nearest, other = known[0], known[-1]
        count = len(nearest.pods)
        if len(pods) == count + 1 and pods[:count] == nearest.pods:
            # As most often: one pod has come.
            sums = self._with(nearest, pods[count])
            self._kept[node] = (_Kept(report, pods, sums), other)
            return sums
        change = _change(nearest.pods, pods)
        if change.size > 1 and other is not nearest:
            farther = _change(other.pods, pods)
            if farther.size < change.size:
                nearest, other, change = other, nearest, farther
        if not change.size:
            return nearest.sums
        sums = self._changed(nearest, change, pods)
        self._kept[node] = (_Kept(report, pods, sums), other)
        return sums

    def _with(self, known: _Kept, pod: views.PodRecord) -> load.Sums:
        """Return the sums with one more pod."""
        come = self._resident(pod)
        if come.key not in known.report.pods:
            return known.sums.with_unreported(come)
        return known.sums.plus(load.accumulate(known.report, (come,), self._width))

    def _changed(
        self, known: _Kept, change: _Change, pods: tuple[views.PodRecord, ...]
    ) -> load.Sums:
        if change.size > _MOST_CHANGES:
            return self._whole(known.report, pods)
        sums = known.sums
        if change.gone:
            sums = sums.less(self._of(known.report, change.gone))
        if change.come:
            sums = sums.plus(self._of(known.report, change.come))
        return sums

    def _whole(self, report: load.Report, pods: Iterable[views.PodRecord]) -> load.Sums:
        return self._of(report, pods, include_system=self._include_system)

    def _of(
        self,
        report: load.Report,
        pods: Iterable[views.PodRecord],
        *,
        include_system: bool = False,
    ) -> load.Sums:
        residents = map(self._resident, pods)
        return load.accumulate(report, residents, self._width, include_system=include_system)


def _change(before: tuple[views.PodRecord, ...], after: tuple[views.PodRecord, ...]) -> _Change:
    """Return what leads from some pods to others.

    By identity: a pod that has changed is another record, and what is kept stays alive.
    """
    if after[: len(before)] == before:
        # As most often: others have come, and what was told of these again is the same.
        return _Change(after[len(before) :], ())
    if before[: len(after)] == after:
        return _Change((), before[len(after) :])
    was, becomes = set(map(id, before)), set(map(id, after))
    come, gone = becomes - was, was - becomes
    return _Change(
        [pod for pod in after if id(pod) in come] if come else (),
        [pod for pod in before if id(pod) in gone] if gone else (),
    )
