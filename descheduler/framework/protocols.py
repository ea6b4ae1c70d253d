"""Extension points of the descheduler, and what plug-ins are given and return. Pure.

A plug-in that suggests is a generator: it yields a suggestion and receives whether the pod leaves,
so that it can go on with what is left. Nothing is evicted while it runs: the round collects moves.
"""

import dataclasses
import enum
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from descheduler.model import fragments, nodeinfo, picture, podinfo

Memory = Mapping[str, Any]
"""What a plug-in keeps from one round to the next, such as how often a node was overloaded."""
NO_MEMORY: Final[Memory] = {}


class Purpose(enum.StrEnum):
    """Why a pod should leave, which says what the objective asks of the move."""

    BALANCE = "Balance"
    """Its node is loaded more than others: the target has to stay below, the spread to shrink."""
    DEFRAGMENT = "Defragment"
    """Its node has room that nothing fits into: fragments have to shrink."""
    EMPTY = "Empty"
    """Its node is to have no pods: every pod of it needs a target."""
    COMPLY = "Comply"
    """It breaks a rule where it is: a target has to exist, no gain is computed."""
    REMOVE = "Remove"
    """It has failed or is too old: its controller replaces it anywhere, no target is needed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cordon:
    """A node to cordon before its first pod leaves; nothing uncordons it once it is empty."""

    node: str
    plugin: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Suggestion:
    """One pod that should leave its node."""

    pod: podinfo.Pod
    plugin: str
    reason: str
    """For people, as the reference words it."""
    purpose: Purpose
    targets: Collection[str] | None = None
    """Nodes that it may move to; None where any other node will do."""
    needs_target: bool = True
    """False where `nodeFit` is off: where the scheduler would take no node, it leaves all the same.
    One that removes a pod never needs a target."""
    along: tuple[podinfo.Pod, ...] = ()
    """Pods that need a target in the same round, or this one stays: the rest of a node that is to
    be emptied. They are suggested after it, without pods of their own here."""
    gang: tuple[podinfo.Pod, ...] = ()
    """Members of its gang that leave with it, or all stay. A round adds them; plug-ins do not."""
    cordon: Cordon | None = None
    """Cordon its node first, where the pod leaves; not in dry run, not in observe mode."""
    dry_run: bool = False
    """Whether `dryRun` of the plug-in itself keeps it where it is: it is decided and reported."""
    of_prod: bool = False
    """Whether it is the load of prod pods alone that is evened out."""


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """A node that the scheduler would place the pod on."""

    node: str
    score: int = 0
    """Of the extender's plug-ins."""
    held: fragments.Held = fragments.HOLDS_NOTHING
    """Devices and CPUs that it would be given there."""


Answer = bool | Target
"""What became of a suggestion: False where the pod stays; where it leaves, its target, or True
where no target was asked for."""
Suggestions = Generator[Suggestion, Answer, Memory]
"""Yields suggestions, receives whether each pod leaves, returns what to remember."""
COUNTS: Final = "counts"
"""Key under which numbers of nodes stand, by pool and class; they are not remembered either."""
MOST_ANNOTATED: Final = 1000
"""Pods that one round writes annotations on."""
NOTES: Final = "notes"
"""Key in what is returned under which sentences about this round stand; they are not remembered."""


def noted(*sentences: str) -> Memory:
    """Return what a plug-in leaves that remembers nothing and says why it did nothing."""
    return {NOTES: sentences}


@dataclasses.dataclass(frozen=True, slots=True)
class NoTarget:
    """Why no node takes the pod, as the scheduler would say it."""

    reason: str


class Targets(Protocol):
    """Where the scheduler would take pods, on a fork of its state that moves are made on."""

    def target(
        self, pod: podinfo.Pod, among: Collection[str] | None, without: Collection[str]
    ) -> Target | NoTarget:
        """Return the best node for a pod once it has left its own, which is never the answer."""

    def move(self, pod: podinfo.Pod, node: str) -> None:
        """Let the pod be on that node from here on."""

    def remove(self, pod: podinfo.Pod) -> None:
        """Let the pod be gone from here on."""

    def mark(self) -> int:
        """Return a mark to which moves can be taken back."""

    def undo(self, mark: int) -> None:
        """Take all moves back that were made since a mark."""


class NodeRows(Protocol):
    """Some nodes in a fixed order that many pods are compared with."""

    def fitting(self, pod: podinfo.Pod) -> npt.NDArray[np.bool_]:
        """Return which of the nodes take the pod, one flag per node."""


class NodeFit(Protocol):
    """Whether nodes take a pod by labels, taints, requests and affinity to pods (`nodeFit`).

    Cordoned nodes take none.
    """

    def rows(self, among: Sequence[str]) -> NodeRows:
        """Return these nodes in this order, for questions about many pods."""


class Filtering(Protocol):
    """What one filter says in one round."""

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return why the pod must stay, empty where it may leave."""

    def late_refusal(self, pod: podinfo.Pod) -> str:
        """Return what the check before an eviction (PreEvictionFilter) says."""


@runtime_checkable
class FilteringByKind(Protocol):
    """A filter that goes by what `framework.filtering.kinds` compares, with exceptions."""

    def varies(self, pod: podinfo.Pod) -> bool:
        """Whether it may refuse a pod and accept another of its kind, neither being moved."""


class Evictability(Filtering, Protocol):
    """The filter chain of a profile: a pod may leave where all filters accept it."""

    def refusals(self, pods: Sequence[podinfo.Pod]) -> Sequence[str]:
        """Return what `refusal` says of each pod, which takes less time than to ask for each."""


class Limits(Protocol):
    """How many pods may leave."""

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return which limit is reached for a pod, empty where it may leave."""

    def exhausted(self) -> str:
        """Return which limit is reached for every pod, empty where some may leave."""


class _NoLimits:
    """Any number of pods may leave."""

    def exhausted(self) -> str:
        return ""

    def refusal(self, pod: podinfo.Pod) -> str:
        del pod
        return ""


NO_LIMITS: Final = _NoLimits()


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """What a plug-in is asked about."""

    picture: picture.Picture
    nodes: Sequence[nodeinfo.Node]
    """Ready nodes of the profile, by name."""
    evictable: Evictability
    fit: NodeFit
    interval_seconds: float = 0.0
    """deschedulingInterval."""
    limits: Limits = NO_LIMITS
    """Limits of the round, which every suggestion is held to; so that a plug-in with many pods to
    suggest can stop early."""
    eviction_cost: Callable[[podinfo.Pod], float] | None = None
    """What an eviction costs, in points, where limits leave room for some pods alone: of pods that
    are equal otherwise, those that help most for what they cost should be suggested first."""


@runtime_checkable
class DeschedulePlugin(Protocol):
    """Finds pods that break a rule, one by one."""

    def deschedule(self, view: View, memory: Memory) -> Suggestions:
        """Yield pods that should leave."""


@runtime_checkable
class BalancePlugin(Protocol):
    """Finds pods whose leaving evens nodes out."""

    def balance(self, view: View, memory: Memory) -> Suggestions:
        """Yield pods that should leave."""


@dataclasses.dataclass(frozen=True, slots=True)
class FilterView:
    """What filters of one round look at."""

    picture: picture.Picture
    migrating: "Migrating"
    fit: NodeFit


class Migrating(Protocol):
    """Pods that are being moved: by open jobs, and by what this round has decided so far."""

    def holds(self, pod: podinfo.Pod) -> bool:
        """Whether the pod itself is."""

    def count(self, but: podinfo.Pod) -> int:
        """Return how many jobs are open, without that of a pod."""

    def count_on(self, node: str, but: podinfo.Pod) -> int:
        """Return how many pods of a node are being moved, without a pod."""

    def count_in(self, namespace: str, but: podinfo.Pod) -> int:
        """Return how many jobs of a namespace are open, without that of a pod."""

    def pods_of(self, controller: str, but: podinfo.Pod) -> Collection[podinfo.Pod]:
        """Return the pods of a controller, by its uid, that are being moved, without a pod."""


@runtime_checkable
class FilterPlugin(Protocol):
    """Says which pods must stay."""

    def for_round(self, view: FilterView) -> Filtering:
        """Return what it says in one round; `migrating` changes meanwhile, all else does not."""


@runtime_checkable
class Annotator(Protocol):
    """A plug-in that writes on pods instead of moving them (ScaleDownBinPack, CalculateOnly)."""

    def notes(self, view: View) -> Mapping[str, Mapping[str, str]]:
        """Return annotations by uid of the pod that they are written on."""
