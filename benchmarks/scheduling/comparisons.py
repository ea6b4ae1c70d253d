"""Which runs are compared with which, and under which names; pure but for printing."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks import figures
from benchmarks.plane.layouts import Layout
from benchmarks.plane.rig import Run
from benchmarks.scheduling.variants import (
    BUSY,
    KOORDINATOR,
    KOORDINATOR_BUSY,
    MINIMAL,
    NEVER,
    ONE_NAME,
    OURS,
    STOCK,
)

_BASELINE = 45.6
"""Pods per second that Koordinator publishes, 100 nodes."""
_DEFAULT_QPS = 50
_NODES, _KILOBYTES = 1000, 7
"""The size that the name of a figure leaves out."""


class Case(NamedTuple):
    """What was measured in one run."""

    nodes: int
    kilobytes: int
    """Size of a pod."""
    variant: str

    @property
    def label(self) -> str:
        """How the case is called in tables."""
        return f"{self.variant}, {self.nodes} nodes, {self.kilobytes} KB"


Runs = dict[Case, list[Run]]


class Comparison(NamedTuple):
    """A ratio between two variants that ran side by side."""

    row: str
    value: str
    other: str
    against: str


COMPARISONS = (
    Comparison("F1", OURS, STOCK, "kube-scheduler alone"),
    Comparison("F1.never", NEVER, STOCK, "kube-scheduler alone"),
    Comparison("F1.busy", BUSY, OURS, "the same without refusals"),
    Comparison("F1.go", OURS, MINIMAL, "minimal extender in Go that passes and scores every node"),
    Comparison("F1.go.stock", MINIMAL, STOCK, "kube-scheduler alone"),
    Comparison("F1.one_name", OURS, ONE_NAME, "minimal extender in Go that answers one name"),
    Comparison("F1.one_name.stock", ONE_NAME, STOCK, "kube-scheduler alone"),
    Comparison("K", OURS, KOORDINATOR, "koord-scheduler with the profile of its chart"),
    Comparison("K.busy", BUSY, KOORDINATOR_BUSY, "koord-scheduler, refusing the same nodes"),
    Comparison("K.stock", KOORDINATOR, STOCK, "kube-scheduler alone"),
)
_GOALS = {
    "F1": "0.75", "F1.shared": "0.62", "F1.busy": "0.9", "F1.go": "1.3", "F1.shared.go": "1.3",
    "K": "1.75", "F2": "2.2", "F2.koordinator": "3", "F5": "1.2", "F5.shared": "1.2",
    "F1.5000.cost": "at most 1.3", "F1.5000.shared.cost": "at most 1.3",
}  # fmt: skip


def name(row: str, case: Case, layout: Layout, queries: int) -> str:
    """Return the name of a figure, which leaves out what is usual."""
    head, _, tail = row.partition(".")
    if head == "F1" and queries == _DEFAULT_QPS:
        head = "F2"
    parts = [head]
    if case.nodes != _NODES:
        parts.append(str(case.nodes))
    # Refusals and koord-scheduler are compared on shared cores first of all.
    on_shared = head == "K" or tail == "busy"
    if (layout is Layout.SHARED) != on_shared:
        parts.append(str(layout))
    parts += [tail] if tail else []
    if case.kilobytes != _KILOBYTES:
        parts.append(f"{case.kilobytes}KB")
    return ".".join(parts)


def _against(figure: str, text: str) -> str:
    return f"{text}; goal {_GOALS[figure]}" if figure in _GOALS else text


def table(runs: Runs) -> None:
    """Print every case with its rate, what it is of stock, and the work of each program."""
    width = max(len(case.label) for case in runs)
    print(f"\n{'':<{width}}{'pods/s':>20}{'÷ stock':>20}  processor ms per pod")
    for case, found in runs.items():
        rates = [run.pods_per_second for run in found]
        stock = runs.get(case._replace(variant=STOCK))
        ratios = _ratios(rates, [run.pods_per_second for run in stock]) if stock else []
        used = {
            program: statistics.median(run.milliseconds[program] for run in found)
            for program in found[0].milliseconds
        }
        cells = ", ".join(f"{program} {value:.2f}" for program, value in used.items())
        ratio = figures.spread(ratios) if ratios else ""
        print(f"{case.label:<{width}}{figures.spread(rates, 0):>20}{ratio:>20}  {cells}")


def _ratios(values: Sequence[float], others: Sequence[float]) -> list[float]:
    return [value / other for value, other in zip(values, others, strict=True)]


def show(runs: Mapping[Case, Sequence[Run]], layout: Layout, queries: int) -> None:
    """Print one line for each figure."""
    for case in sorted({case._replace(variant="") for case in runs}):
        _show_rates(runs, case, layout, queries)
        if queries != _DEFAULT_QPS:
            _show_work(runs, case, layout, queries)
        if case.nodes != _NODES:
            _show_cost(runs, case, layout, queries)


def _show_rates(
    runs: Mapping[Case, Sequence[Run]], case: Case, layout: Layout, queries: int
) -> None:
    limit = _limit(case, layout, queries)
    rates = {
        one.variant: [run.pods_per_second for run in found]
        for one, found in runs.items()
        if one._replace(variant="") == case
    }
    for row, value, other, against in COMPARISONS:
        if value in rates and other in rates:
            figure = name(row, case, layout, queries)
            figures.show(
                figures.paired(
                    figure, f"pods/s, {value}, {limit}", "pods/s", rates[value], rates[other],
                    _against(figure, against),
                )
            )  # fmt: skip
    if queries == _DEFAULT_QPS and OURS in rates:
        figure = name("F1.koordinator", case, layout, queries)
        baseline = [_BASELINE] * len(rates[OURS])
        against = _against(figure, "Koordinator's published baseline, 100 nodes")
        figures.show(
            figures.paired(figure, f"pods/s, {limit}", "pods/s", rates[OURS], baseline, against)
        )


def _show_work(
    runs: Mapping[Case, Sequence[Run]], case: Case, layout: Layout, queries: int
) -> None:
    """Show the processor time per scheduled pod: of the extender, and of the scheduler."""
    limit, unit = _limit(case, layout, queries), "ms/pod"
    for variant, row in ((OURS, "F5"), (BUSY, "F5.refusing")):
        if found := runs.get(case._replace(variant=variant)):
            figure = name(row, case, layout, queries)
            what = f"processor time of the extender per pod, {variant}, {limit}"
            work = [run.milliseconds["extender"] for run in found]
            figures.show(figures.plain(figure, what, unit, work, _against(figure, "")))
    ours, stock = runs.get(case._replace(variant=OURS)), runs.get(case._replace(variant=STOCK))
    if ours and stock:
        work, other = ([run.milliseconds["kube-scheduler"] for run in one] for one in (ours, stock))
        what = f"processor time of kube-scheduler per pod, {limit}"
        figure = name("F5.scheduler", case, layout, queries)
        figures.show(figures.paired(figure, what, unit, work, other, "kube-scheduler alone"))


def _show_cost(
    runs: Mapping[Case, Sequence[Run]], case: Case, layout: Layout, queries: int
) -> None:
    """Show what a pod costs with so many nodes relative to the usual number of them."""
    for variant, row in ((OURS, "F1.cost"), (STOCK, "F1.cost_stock")):
        many = runs.get(case._replace(variant=variant))
        few = runs.get(case._replace(variant=variant, nodes=_NODES))
        if not many or not few:
            continue
        figure = name(row, case, layout, queries)
        against = _against(figure, f"the same with {_NODES} nodes")
        limit = f"{variant}, {_limit(case, layout, queries)}"
        time, time_few = ([1000 / run.pods_per_second for run in one] for one in (many, few))
        work, work_few = ([sum(run.milliseconds.values()) for run in one] for one in (many, few))
        what = f"processor time of all programs per pod, {limit}"
        figures.show(
            figures.paired(figure, f"time per pod, {limit}", "ms/pod", time, time_few, against),
            figures.paired(f"{figure}.work", what, "ms/pod", work, work_few, against),
        )


def _limit(case: Case, layout: Layout, queries: int) -> str:
    return (
        f"scheduler QPS {queries}, {case.nodes} nodes, pods of {case.kilobytes} KB, cores {layout}"
    )
