"""What the pods of a node add to its NodeMetric report, kept in step with few changes. Pure.

A node changes by one pod at a time, and its report once a minute: the sums of all its pods are
computed once for a report, then what comes and goes is added and taken away. They are sums of whole
numbers, so both ways lead to the same.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Final

from domain.usage import load
from extender.framework import views

_MOST_NODES: Final = 16384
"""Nodes whose sums are remembered."""
_MOST_CHANGES: Final = 4
"""Pods that come and go at once; for more of them everything is summed anew."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """The sums of these pods, and the report to which they add."""

    report: load.Report
    pods: tuple[views.PodRecord, ...]
    sums: load.Sums


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
        self._kept: dict[str, _Kept] = {}

    def of(self, node: str, report: load.Report, pods: tuple[views.PodRecord, ...]) -> load.Sums:
        """Return the sums of a node with this report and these pods."""
        known = self._kept.get(node)
        if known is None and len(self._kept) >= _MOST_NODES:
            self._kept.clear()
        if known is None or known.report is not report:
            sums = self._whole(report, pods)
        else:
            sums = self._changed(known, pods)
        self._kept[node] = _Kept(report, pods, sums)
        return sums

    def _changed(self, known: _Kept, pods: tuple[views.PodRecord, ...]) -> load.Sums:
        # By identity: a pod that has changed is another record, and what is kept stays alive.
        before, after = set(map(id, known.pods)), set(map(id, pods))
        come, gone = after - before, before - after
        if not come and not gone:
            return known.sums
        if len(come) + len(gone) > _MOST_CHANGES:
            return self._whole(known.report, pods)
        sums = known.sums
        if gone:
            sums = sums.less(self._of(known.report, [p for p in known.pods if id(p) in gone]))
        if come:
            sums = sums.plus(self._of(known.report, [p for p in pods if id(p) in come]))
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
