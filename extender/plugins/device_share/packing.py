"""LeastFragmented: prefer nodes where a pod leaves GPUs usable for the tasks of this cluster.

The step of fragmentation comes before everything else; among nodes of one step the fuller one is
better. What was worked out for a class of pods is kept per node until that node changes.
"""

import collections
from typing import Final

import numpy as np

from api import names
from api.koordinator import devices
from domain.devices import inventory
from domain.devices.allocation import fragmentation
from extender.framework import verdicts, views
from extender.plugins.device_share import (
    allocation,
    classes,
    columns,
    selection,
    shapes,
    tracker,
)
from extender.plugins.device_share.allocation import NAME, Wanted
from extender.plugins.device_share.columns import DIGEST

STEP: Final = 2.8
"""Percent of a GPU: smaller differences of fragmentation do not count.

Of 1, 2, 2.5, 2.8, 3, 3.5, 4 and 5 the one that packs most workloads of the trace openb best."""
MOST_ADDED: Final = 100 * columns.GPUS
CLASSES: Final = 256
"""Classes of pods whose results are kept."""
ROUNDED: Final = 64
"""Parts in which the popularity of tasks is counted; smaller changes of it do not count."""
CPU_PER_GPU: Final = 24_000
"""Milli CPU that count as much as one GPU in how full a node is."""
MOST_LEFT: Final = 1100
"""What counts as an empty node, in percent of GPUs; a machine of eight with 144 CPUs."""
_MIX: Final = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], dtype=np.uint64).view(np.int64)


class Kept:
    """What a class of pods would add to every node, as the nodes were."""

    def __init__(self, count: int) -> None:
        self.states = np.zeros(count, dtype=np.int64)
        self.added = np.full(count, np.nan)
        self.gpu = np.zeros(count, dtype=np.int64)


class Packing:
    """Results by class of pods; a function of the snapshot alone, remembered to save work."""

    def __init__(self, selected: selection.Selection) -> None:
        self._selection = selected
        self._counted: classes.Classes | None = None
        self._workload: fragmentation.Workload | None = None
        self._selectors: tuple[str, ...] = ()
        self._rounded: object = None
        self._kept: collections.OrderedDict[tuple[object, int], Kept] = collections.OrderedDict()

    def score(self, prepared: Wanted, view: views.View, rows: verdicts.Rows) -> verdicts.Score:
        """Judge candidates."""
        added, _ = self._added(prepared, view, rows)
        bounded = np.clip(added, -MOST_ADDED, MOST_ADDED)
        tiers = np.floor((MOST_ADDED - bounded) / STEP + 1e-6).astype(np.int64)
        return verdicts.Score(_fullness(view, rows), tiers=tiers)

    def best_gpus(self, prepared: Wanted, view: views.View, row: int) -> tuple[int, ...]:
        """Return the minor of the GPU of one node on which a pod adds least, which is tried first.

        None of a pod that does not take just any GPUs with enough left.
        """
        asked = allocation.of(prepared)
        if asked is None or shapes.shape(asked) is None:
            return ()
        found = view.sparse(NAME, row)
        if prepared.task is None or not isinstance(found, inventory.NodeDevices):
            return ()
        _, gpu = self._added(prepared, view, np.array((row,), dtype=np.intp))
        minors = sorted(found.inventory.devices.get(devices.GPU, {}))
        return (minors[int(gpu[0])],) if int(gpu[0]) < len(minors) else ()

    def _added(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows
    ) -> tuple[verdicts.Shares, verdicts.Column]:
        assert prepared.task is not None
        workload = self._follow(view)
        key = (prepared.task, view.known.size)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = Kept(view.known.size)
            if len(self._kept) > CLASSES:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        states = _states(view, rows)
        late = np.flatnonzero((kept.states[rows] != states) | np.isnan(kept.added[rows]))
        if late.size:
            changed = rows[late]
            nodes, eligible = self._nodes(view, changed)
            found = fragmentation.increments(workload, nodes, eligible, prepared.task)
            kept.states[changed] = states[late]
            kept.added[changed], kept.gpu[changed] = found.added, found.gpu
        return kept.added[rows], kept.gpu[rows]

    def _follow(self, view: views.View) -> fragmentation.Workload:
        """Return the tasks that are expected: those of the cluster, placed and waiting."""
        known = view.cluster[NAME]
        assert isinstance(known, tracker.Cluster)
        counted = known.counted
        assert counted is not None
        if self._workload is not None and counted == self._counted:
            return self._workload
        self._counted = counted
        found, selectors = fragmentation.workload(counted.common())
        rounded = (found.tasks, selectors, tuple(np.rint(found.weights * ROUNDED).tolist()))
        if self._workload is None or rounded != self._rounded:
            self._workload, self._selectors, self._rounded = found, selectors, rounded
            self._kept.clear()
        return self._workload

    def _nodes(
        self, view: views.View, rows: verdicts.Rows
    ) -> tuple[fragmentation.Nodes, fragmentation.Flags]:
        figures = view.figures[NAME]
        gpus = figures[columns.RATIO : columns.MEMORY, rows]
        filled = np.flatnonzero((gpus > 0).any(axis=1))
        width = int(filled[-1]) + 1 if filled.size else 1
        cpu, memory = _left(view, rows)
        nodes = fragmentation.Nodes(cpu, memory, np.clip(gpus[:width], 0, fragmentation.WHOLE))
        eligible = self._selection.each(self._selectors, view, rows)
        return nodes, eligible


def _left(view: views.View, rows: verdicts.Rows) -> tuple[verdicts.Column, verdicts.Column]:
    """Return the CPU and memory that nodes have left, by requests."""
    cpu, memory = (view.resources[name] for name in (names.CPU, names.MEMORY))
    return (
        view.allocatable[cpu, rows] - view.requested[cpu, rows],
        view.allocatable[memory, rows] - view.requested[memory, rows],
    )


def _states(view: views.View, rows: verdicts.Rows) -> verdicts.Column:
    """Return a number by node that differs where anything that matters does."""
    cpu, memory = _left(view, rows)
    mixed: verdicts.Column = cpu * _MIX[0] + memory * _MIX[1] + view.figures[NAME][DIGEST, rows]
    return mixed


def _fullness(view: views.View, rows: verdicts.Rows) -> verdicts.Column:
    """Return how little is left on nodes, from 0 to 100: GPUs, and CPU in terms of GPUs."""
    cpu, _ = _left(view, rows)
    gpus = np.maximum(view.figures[NAME][columns.RATIO : columns.MEMORY, rows], 0).sum(axis=0)
    left = gpus + cpu * 100 // CPU_PER_GPU
    found: verdicts.Column = 100 - np.clip(left * 100 // MOST_LEFT, 0, 100)
    return found
