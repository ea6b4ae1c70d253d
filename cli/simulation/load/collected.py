"""Figures of a Prometheus collected to rows of recorded load, and what is missing of them. Pure."""

import array
import bisect
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from cli.prometheus import samples
from cli.simulation.load import series
from domain import wording

CPU, MEMORY = 0, 1
_MOST: Final = (1e6, float(1 << 60))
"""Cores and bytes above which a figure is none."""
_NAMED: Final = 3
_HOLES: Final = 5


class Cells:
    """Cores and bytes of one name at every moment; NaN where nothing is known."""

    def __init__(self, moments: int) -> None:
        self.parts = tuple(array.array("d", [math.nan]) * moments for _ in (CPU, MEMORY))

    def known(self, at: int) -> bool:
        """Whether both figures are known."""
        return all(part[at] == part[at] for part in self.parts)

    def use(self, at: int) -> series.Use:
        """Return what is known, as exact as a file says it."""
        return series.Use(round(self.parts[CPU][at], 3), int(self.parts[MEMORY][at]))


class _Means:
    """Sums over the pods of one workload at every moment."""

    def __init__(self, moments: int) -> None:
        self._sums = tuple(array.array("d", [0.0]) * moments for _ in (CPU, MEMORY))
        self._counts = tuple(array.array("l", [0]) * moments for _ in (CPU, MEMORY))

    def add(self, part: int, at: int, value: float) -> None:
        self._sums[part][at] += value
        self._counts[part][at] += 1

    def cells(self) -> Cells:
        found = Cells(len(self._sums[CPU]))
        for into, sums, counts in zip(found.parts, self._sums, self._counts, strict=True):
            for at, count in enumerate(counts):
                if count:
                    into[at] = sums[at] / count
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """Whose load is collected, and at which moments."""

    span: samples.Range
    """Moments at which the steps of the replay end."""
    pods: frozenset[str]
    """Online pods by namespace/name."""
    nodes: Mapping[str, str]
    """Names of nodes by what labels may call them."""

    @property
    def rows(self) -> int:
        """Return how many rows there may be."""
        return (2 * len(self.pods) + len(self.nodes)) * self.span.points

    def node(self, labels: Mapping[str, str], order: Sequence[str]) -> str | None:
        """Return the node that the first fitting label names, an address without its port."""
        for label in order:
            written = labels.get(label, "")
            for name in (written, written.rpartition(":")[0]):
                if name in self.nodes:
                    return self.nodes[name]
        return None


class OfPods:
    """What pods use, and the mean of workloads for pods that are younger than the recording."""

    def __init__(self, wanted: Wanted) -> None:
        self._span, self._wanted = wanted.span, wanted.pods
        self._pods: dict[str, Cells] = {}
        named = {series.workload(pod) for pod in wanted.pods}
        self._workloads = {one: _Means(wanted.span.points) for one in named if one is not None}

    def add(self, part: int, found: Iterable[samples.Series]) -> None:
        """Take cores or bytes of pods, by the labels namespace and pod."""
        for one in found:
            pod = f"{one.labels.get('namespace', '')}/{one.labels.get('pod', '')}"
            cells = None
            if pod in self._wanted:
                cells = self._pods.setdefault(pod, Cells(self._span.points))
            mean = self._workloads.get(series.workload(pod) or "")
            for at, value in points(self._span, one, _MOST[part]):
                if cells is not None:
                    cells.parts[part][at] = value
                if mean is not None:
                    mean.add(part, at, value)

    def collected(self) -> "Collected":
        """Return the rows of pods; of a workload only where a pod is younger than it."""
        moments = range(self._span.points)
        known = {name: [at for at in moments if one.known(at)] for name, one in self._pods.items()}
        known = {name: found for name, found in known.items() if found}
        seen = sorted({at for found in known.values() for at in found})
        young = {
            pod: one
            for pod in self._wanted
            if (one := series.workload(pod)) is not None
            and (pod not in known or known[pod][0] > seen[0])
        }
        means = {one: self._workloads[one].cells() for one in set(young.values())}
        of_workloads = {
            name: found
            for name, cells in means.items()
            if (found := [at for at in moments if cells.known(at)])
        }
        rows = [*self._rows(known, self._pods), *self._rows(of_workloads, means)]
        by_workload = {pod for pod, one in young.items() if one in of_workloads}
        return Collected(
            rows,
            own=frozenset(known),
            by_workload=frozenset(by_workload),
            without=self._wanted - known.keys() - by_workload,
            seen=tuple(seen or sorted({at for one in of_workloads.values() for at in one})),
            missing=sum(_between(seen, one) - len(one) for one in known.values()),
        )

    def _rows(
        self, known: Mapping[str, Sequence[int]], cells: Mapping[str, Cells]
    ) -> Iterator[series.Row]:
        for name, found in sorted(known.items()):
            for at in found:
                yield at * self._span.step, name, cells[name].use(at)


@dataclasses.dataclass(frozen=True, slots=True)
class Collected:
    """Rows of pods, and for which pods there are some."""

    rows: list[series.Row]
    own: frozenset[str]
    by_workload: frozenset[str]
    """Pods whose first hours, or all of them, are the mean of their workload."""
    without: frozenset[str]
    seen: tuple[int, ...]
    """The moments at which any pod has a figure."""
    missing: int
    """Figures that pods lack between others at moments at which other pods have some."""


class OfNodes:
    """What every node uses outside pods, or as a whole."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self.nodes: dict[str, Cells] = {}

    def add(self, part: int, found: Iterable[samples.Series], order: Sequence[str]) -> None:
        """Take cores or bytes of nodes; the larger where two series are of one node."""
        for one in found:
            name = self._wanted.node(one.labels, order)
            if name is None:
                continue
            cells = self.nodes.setdefault(name, Cells(self._wanted.span.points)).parts[part]
            for at, value in points(self._wanted.span, one, _MOST[part]):
                if not cells[at] >= value:
                    cells[at] = value

    def less(self, pods: "OfNodes") -> "OfNodes":
        """Return what is left of nodes without their pods."""
        found = OfNodes(self._wanted)
        for name, whole in self.nodes.items():
            left = found.nodes[name] = Cells(self._wanted.span.points)
            held = pods.nodes.get(name)
            if held is not None:
                for into, total, part in zip(left.parts, whole.parts, held.parts, strict=True):
                    for at, value in enumerate(total):
                        into[at] = max(value - part[at], 0.0) if part[at] == part[at] else math.nan
        return found

    def rows(self) -> Iterator[series.Row]:
        """Yield what is known of nodes."""
        for name, cells in sorted(self.nodes.items()):
            for at in range(self._wanted.span.points):
                if cells.known(at):
                    yield at * self._wanted.span.step, name, cells.use(at)


def points(span: samples.Range, one: samples.Series, most: float) -> Iterator[tuple[int, float]]:
    """Yield figures by the number of their moment; what no machine has is left out."""
    for moment, value in one.points:
        at = round((moment - span.first) / span.step)
        if 0 <= at < span.points and 0 <= value <= most:
            yield at, value


def notes(found: Collected, wanted: Wanted) -> Iterator[str]:
    """Say for which pods and hours figures are missing, and what holds instead."""
    pods = wording.count(len(wanted.pods), "online pod", "online pods")
    have = wording.count(len(found.own), "has figures of its own", "have figures of their own")
    yield f"of {pods} {have} in the Prometheus"
    if found.by_workload:
        yield (
            f"{_listed(found.by_workload)}: younger than the recording, so the mean of the "
            "workload's pods counts where they have no figures yet"
        )
    if found.without:
        yield (
            f"{_listed(found.without)}: without any figures, so what the snapshot measured of them "
            "counts, else their requests"
        )
    if holes := list(_holes(found.seen, wanted.span)):
        more = f" and {len(holes) - _HOLES} more" if len(holes) > _HOLES else ""
        yield (
            f"the Prometheus has no figures of pods for hours {', '.join(holes[:_HOLES])}{more}: "
            "those before go on, at the beginning those after"
        )
    if found.missing:
        figures = wording.count(found.missing, "figure is", "figures are")
        yield f"{figures} missing in between: the one before goes on"


def _between(seen: Sequence[int], found: Sequence[int]) -> int:
    """Return how many moments with figures there are between the first and the last of a pod."""
    return bisect.bisect_right(seen, found[-1]) - bisect.bisect_left(seen, found[0])


def _holes(seen: Sequence[int], span: samples.Range) -> Iterator[str]:
    """Yield the hours between moments with figures."""
    hour = span.step / 3600
    before = -1
    for at in (*seen, span.points):
        if at - before > 1:
            yield f"{(before + 1) * hour:.4g} to {at * hour:.4g}"
        before = at


def _listed(pods: Iterable[str]) -> str:
    """Write names, the first few of many."""
    ordered = sorted(pods)
    rest = len(ordered) - _NAMED
    more = f" and {wording.count(rest, 'more pod', 'more pods')}" if rest > 0 else ""
    return ", ".join(ordered[:_NAMED]) + more
