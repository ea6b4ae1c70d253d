"""Fragmentation of GPUs: how much of what is free the expected tasks cannot use.

The measure of *Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent* (USENIX ATC 2023). For one class of tasks, what is free on a node is fragmented
entirely where such a task does not fit, else as far as it is on GPUs with less than the task needs;
the fragmentation of a node is the mean over all classes, weighted by how common they are. A pod
goes where it adds the least. Amounts of GPUs are percent of one GPU.
"""

import dataclasses
import functools
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from domain.devices.requests import requests

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

WHOLE: Final = requests.WHOLE
IMPOSSIBLE: Final = np.inf


class Task(NamedTuple):
    """What one pod takes, as far as fragmentation is concerned."""

    cpu: int
    """In milli."""
    memory: int
    gpus: int = 0
    """How many; none asks for nothing of them."""
    share: int = WHOLE
    """Percent of each."""


@dataclasses.dataclass(frozen=True, slots=True)
class Nodes:
    """What is free on some nodes."""

    cpu: Integers
    memory: Integers
    gpus: Integers
    """Percent by GPU and node; 0 where a node has fewer GPUs than others."""


@dataclasses.dataclass(frozen=True, slots=True)
class Workload:
    """The classes of tasks that are expected, and how common each is."""

    tasks: tuple[Task, ...]
    weights: Floats
    """Of all tasks; those that ask for no GPU cannot use one and need not be listed."""

    def __post_init__(self) -> None:
        """Check that every class has a weight."""
        assert len(self.tasks) == self.weights.size


class _Columns(NamedTuple):
    """The fields of all classes of tasks, each as a column."""

    cpu: Integers
    memory: Integers
    gpus: Integers
    levels: Integers
    """The shares that occur, as a line."""
    level_of: Integers
    """Which of them each class asks for."""


@functools.lru_cache(maxsize=16)
def _columns(tasks: tuple[Task, ...]) -> _Columns:
    fields = np.array(tasks, dtype=np.int64).reshape(len(tasks), 4)
    levels, level_of = np.unique(fields[:, 3], return_inverse=True)
    return _Columns(fields[:, :1], fields[:, 1:2], fields[:, 2:3], levels, level_of)


@dataclasses.dataclass(frozen=True, slots=True)
class Increments:
    """What placing a task adds to the fragmentation of each node, at best."""

    added: Floats
    """Percent of one GPU; infinite where no GPU has enough left."""
    gpu: Integers
    """The GPU that it takes there, of a task that shares one; the first that fits otherwise."""


def usable(workload: Workload, nodes: Nodes, eligible: Flags) -> Floats:
    """Return how much of what is free on each node the expected tasks can use.

    ``eligible`` tells by class and node whether such a task may use these GPUs at all.
    """
    return _usable(workload, nodes.cpu, nodes.memory, nodes.gpus, eligible)


def fragmentation(workload: Workload, nodes: Nodes, eligible: Flags) -> Floats:
    """Return how much of what is free on each node the expected tasks cannot use."""
    found: Floats = nodes.gpus.sum(axis=0) - usable(workload, nodes, eligible)
    return found


def _usable(
    workload: Workload, cpu: Integers, memory: Integers, gpus: Integers, eligible: Flags
) -> Floats:
    """Do the same for arrays; the last axis is the node, the one before it of ``gpus`` the GPU."""
    asked = _columns(workload.tasks)
    enough = gpus[..., None, :, :] >= asked.levels[:, None, None]
    amount = np.where(enough, gpus[..., None, :, :], 0).sum(axis=-2)
    fitting = enough.sum(axis=-2)
    room = (cpu >= asked.cpu) & (memory >= asked.memory) & eligible
    fits = room & (fitting[..., asked.level_of, :] >= asked.gpus)
    found: Floats = workload.weights @ (fits * amount[..., asked.level_of, :])
    return found


def increments(workload: Workload, nodes: Nodes, eligible: Flags, task: Task) -> Increments:
    """Return what a task adds to the fragmentation of each node, on the GPU where it is least."""
    before = usable(workload, nodes, eligible)
    cpu, memory = nodes.cpu - task.cpu, nodes.memory - task.memory
    count = nodes.cpu.size
    if not task.gpus:
        after = _usable(workload, cpu, memory, nodes.gpus, eligible)
        return Increments(before - after, np.zeros(count, dtype=np.int64))
    fits = nodes.gpus >= task.share
    enough = fits.sum(axis=0) >= task.gpus
    if task.gpus > 1 or task.share == WHOLE:
        taken = fits & (np.cumsum(fits, axis=0) <= task.gpus)
        gpus = nodes.gpus - taken * task.share
        after = _usable(workload, cpu, memory, gpus, eligible)
        added = before - after - task.share * task.gpus
        return Increments(np.where(enough, added, IMPOSSIBLE), np.argmax(fits, axis=0))
    return _on_best(workload, (cpu, memory, nodes.gpus), eligible, task.share, before)


def _on_best(
    workload: Workload,
    after: tuple[Integers, Integers, Integers],
    eligible: Flags,
    share: int,
    before: Floats,
) -> Increments:
    cpu, memory, gpus = after
    added = np.full(gpus.shape, IMPOSSIBLE)
    for number in range(len(gpus)):
        # A GPU that is like the one before it gives the same result.
        changed = np.flatnonzero(gpus[number] >= share)
        if not changed.size:
            continue
        left = gpus[:, changed]
        left[number] -= share
        found = _usable(workload, cpu[changed], memory[changed], left, eligible[:, changed])
        added[number, changed] = before[changed] - found - share
    best = np.argmin(added, axis=0)
    return Increments(np.take_along_axis(added, best[None], axis=0)[0], best)


Selector = TypeVar("Selector", bound=Hashable)


def workload(
    common: Sequence[tuple[tuple[Task, Selector], int]],
) -> tuple[Workload, tuple[Selector, ...]]:
    """Return the classes with GPUs among the common ones, and what selects the GPUs of each.

    Tasks without GPUs count among the pods; what is free is no use to them on any node, so they
    tell none from another and are left out.
    """
    covered = sum(count for _, count in common)
    chosen = [one for one in common if one[0][0].gpus]
    weights = np.array([count / covered for _, count in chosen], dtype=np.float64)
    tasks = tuple(task for (task, _), _ in chosen)
    return Workload(tasks, weights), tuple(selector for (_, selector), _ in chosen)
