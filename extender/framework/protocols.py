"""Filter, Scorer and Reserver: what a plug-in implements, sees and returns.

A plug-in is built from its settings, keeps nothing between requests and changes nothing it is
shown: arrays are read-only, records are frozen, and what should happen is returned as a value.
All arrays have one entry per row of the view; rows without a node are ignored by the pipeline.
Every row is judged by itself: what other nodes are like must not change what is said of one.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from domain.usage import load
from extender.state import lending, records

Column = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int16]
Shares = npt.NDArray[np.float64]

BEST = 100
"""The highest score that goes out."""


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
    known: Flags
    """Whether a row has a node."""
    resources: Mapping[str, int]
    """Index of a resource in the next two matrices."""
    allocatable: Column
    requested: Column
    summaries: Mapping[str, Column]
    """By plug-in: what its summarize returned, one column per figure, one row per node."""
    facts: Callable[[int], NodeInfo]
    members: int = 0
    """Another number, a greater one, whenever a row got or lost its node."""
    born: Column | None = None
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


@dataclasses.dataclass(frozen=True, slots=True)
class Reason:
    """Why a node is refused: few constant texts, because schedulers group by text."""

    text: str
    resolvable: bool = False
    """Whether the scheduler's own preemption could help: only for what it counts itself."""


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """A filter's word on every node: 0 passes, k is refused for reasons[k - 1]."""

    codes: Codes
    reasons: tuple[Reason, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnosis:
    """What stands behind the refusal of one node, for people."""

    figures: str
    """A clause with the figures; empty where there are none."""
    helps: tuple[str, ...] = ()
    """What would let the pod onto this node, each on its own."""


@dataclasses.dataclass(frozen=True, slots=True)
class Score:
    """A scorer's raw numbers and how to bring them to 0..100."""

    values: Column
    more_is_better: bool = True
    scale: bool = False
    """Stretch so that the largest value becomes 100; otherwise values only are clamped."""


@dataclasses.dataclass(frozen=True, slots=True)
class Allocation:
    """What a reserver grants a pod on a node; written with the binding."""

    plugin: str
    granted: Mapping[str, str]
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)


@runtime_checkable
class Filter(Protocol):
    """Says which nodes may not take a pod."""

    name: str

    def filter(self, request: PodInfo, view: View, now: float) -> Verdict | None:
        """Judge every node; None if this plug-in has nothing to say about the pod."""

    def shortage(self, request: PodInfo, view: View, now: float) -> Shares:
        """Say what share of what the pod needs is lacking on every node; refused ones only count.

        The smallest is the nearest miss.
        """

    def finding(self, request: PodInfo, view: View, row: int, now: float) -> Diagnosis:
        """Return the figures behind the verdict on one node and what would change it."""


@runtime_checkable
class Scorer(Protocol):
    """Says which nodes are better than others."""

    name: str

    def score(self, request: PodInfo, view: View, now: float) -> Score | None:
        """Judge every node; None if this plug-in has no preference for the pod."""


@runtime_checkable
class Reserver(Protocol):
    """Grants what a pod takes from a node beyond its plain requests."""

    name: str

    def reserve(
        self, request: PodInfo, view: View, row: int, now: float
    ) -> Allocation | Reason | None:
        """Grant it, refuse it, or None if the pod takes nothing of that kind."""


@runtime_checkable
class StateTracker(Protocol):
    """Boils what is known of a node down to figures that make filter and score vector maths."""

    name: str
    columns: int

    def summarize(self, facts: NodeInfo) -> tuple[int, ...]:
        """Return the figures of one node; called again whenever anything about it changed."""


Plugin = Filter | Scorer | Reserver | StateTracker
"""What stands in the registry implements at least one of these."""
