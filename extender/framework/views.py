"""What plug-ins are shown: the pod, one node, and read-only views of the cluster."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from domain.usage import load
from extender.framework import verdicts
from extender.state import lending, records


@dataclasses.dataclass(frozen=True, slots=True)
class PodInfo:
    """What a plug-in sees of the pod that is being placed, parsed once."""

    key: str
    """namespace/name"""
    uid: str
    demand: records.PodRequirements


@dataclasses.dataclass(frozen=True, slots=True)
class NodeInfo:
    """Everything that is known about one node."""

    node: records.NodeRecord
    report: load.Report | None
    pods: tuple[records.PodRecord, ...]
    policy: lending.LendingPolicy


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """A read-only picture of the cluster; valid until the next await."""

    names: Sequence[str]
    """Node name by row."""
    rows: Mapping[str, int]
    """Row by name, known nodes only."""
    known: verdicts.Flags
    """Whether a row has a node."""
    resources: Mapping[str, int]
    """Index of a resource in the next two matrices."""
    allocatable: verdicts.Column
    requested: verdicts.Column
    summaries: Mapping[str, verdicts.Column]
    """By plug-in: the figures of its StateTracker, one column per figure, one row per node."""
    facts: Callable[[int], NodeInfo]
    members: int = 0
    """Another number, a greater one, whenever a row got or lost its node."""
    born: verdicts.Column | None = None
    """By row: the number above at which its node came; rows are used again."""

    def only(self, row: int) -> "View":
        """Return the picture of one node, kept as it is now: its row is 0."""
        return self.several((row,))

    def several(self, chosen: Sequence[int]) -> "View":
        """Return the picture of some nodes, kept as they are now, with rows counted anew.

        Plug-ins judge every row by itself, so they say of it what they would say among all.
        """
        names = tuple(self.names[row] for row in chosen)
        facts = [self.facts(row) for row in chosen]
        columns = list(chosen)
        return View(
            names=names,
            rows={name: row for row, name in enumerate(names)},
            known=_kept(self.known[columns]),
            resources=self.resources,
            allocatable=_kept(self.allocatable[:, columns]),
            requested=_kept(self.requested[:, columns]),
            summaries={
                plugin: _kept(summary[:, columns]) for plugin, summary in self.summaries.items()
            },
            facts=facts.__getitem__,
        )


def _kept(part: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # Chosen by a list, so it is a copy already.
    part.flags.writeable = False
    return part
