"""How many pods there are of every class of tasks, and which classes are common.

A class is what a pod takes, so users who may create pods can make as many classes as pods. One pod
changes a few entries of maps that share the rest with their predecessors, and no more than a
bounded number of classes is ever looked at.
"""

import heapq
from typing import Final

import msgspec

from domain import persistent
from domain.devices.allocation import fragmentation

Class = tuple[fragmentation.Task, str]
"""What a pod takes, and the annotation that says which GPUs may serve it."""
SHARE: Final = 0.95
"""Part of all pods that the classes which are looked at have to cover."""
MOST: Final = 1024
"""Classes that are looked at, the most common first."""
MOST_ALIKE: Final = 2048
"""Classes of one count; where there are more of them, none of them counts as common."""
MOST_TASKS: Final = 256
"""Classes with GPUs by which fragmentation is measured."""


class Classes(msgspec.Struct, frozen=True):
    """How many pods, placed or waiting, there are of every class of tasks."""

    counts: persistent.Map[Class, int] = persistent.Map()
    by_count: persistent.Map[int, persistent.Map[Class, bool]] = persistent.Map()
    """The classes of which there are so many pods."""
    total: int = 0
    """Pods."""

    def changed(self, kind: Class, by: int) -> "Classes":
        """Return the counts with more or fewer pods of one class; constant time."""
        before = self.counts.get(kind, 0)
        after = before + by
        grouped = self.by_count
        for count, value in ((before, None), (after, True)):
            if count:
                there = grouped.get(count, _NONE).replaced(kind, value)
                grouped = grouped.replaced(count, there or None)
        return Classes(self.counts.replaced(kind, after or None), grouped, self.total + by)

    def common(self) -> list[tuple[Class, int]]:
        """Return the most common classes and their counts, as many as cover `SHARE` of all pods."""
        found: list[tuple[Class, int]] = []
        covered = tasks = 0
        for count in sorted(self.by_count, reverse=True):
            alike = self.by_count[count]
            if len(alike) > MOST_ALIKE:
                continue
            for kind in heapq.nsmallest(MOST - len(found), alike):
                if covered >= SHARE * self.total or tasks >= MOST_TASKS:
                    return found
                found.append((kind, count))
                covered += count
                tasks += kind[0].gpus > 0
        return found


_NONE: Final[persistent.Map[Class, bool]] = persistent.Map()
