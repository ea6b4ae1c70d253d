"""The extension points of the scheduling framework: what a plug-in implements.

A plug-in is built from its settings, keeps nothing between requests and changes nothing it is
shown: arrays are read-only, records are frozen, and what should happen is returned as a value.
All arrays have one entry per row of the view; rows without a node are ignored by the framework.
Every row is judged by itself: what other nodes are like must not change what is said of one.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from extender.framework import verdicts, views
from extender.state import allocations


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

    def filter(
        self, request: views.PodInfo, view: views.View, now: float
    ) -> verdicts.Verdict | None:
        """Judge every node; None if this plug-in has nothing to say about the pod."""

    def shortage(self, request: views.PodInfo, view: views.View, now: float) -> verdicts.Shares:
        """Say what share of what the pod needs is lacking on every node; refused ones only count.

        The smallest is the nearest miss.
        """

    def diagnose(
        self, request: views.PodInfo, view: views.View, row: int, now: float
    ) -> verdicts.Diagnosis:
        """Return the figures behind the verdict on one node and what would change it."""


@runtime_checkable
class Scorer(Protocol):
    """Says which nodes are better than others."""

    name: str

    def score(self, request: views.PodInfo, view: views.View, now: float) -> verdicts.Score | None:
        """Judge every node; None if this plug-in has no preference for the pod."""


@runtime_checkable
class Reserver(Protocol):
    """Grants what a pod takes from a node beyond its plain requests."""

    name: str

    def reserve(
        self, request: views.PodInfo, view: views.View, row: int, now: float
    ) -> Allocation | verdicts.Status | None:
        """Grant it, refuse it, or None if the pod takes nothing of that kind."""


StateTracker = views.StateTracker
AllocationCodec = allocations.AllocationCodec


@runtime_checkable
class Inspectable(Protocol):
    """Shows people what it counts; optional."""

    name: str

    def inspect(self, facts: views.NodeInfo) -> Mapping[str, Any]:
        """Return the figures of one node as JSON, for the plug-in's debug page."""


Plugin = Filter | Scorer | Reserver | StateTracker | AllocationCodec | Inspectable
"""What stands in the registry implements at least one of these."""
