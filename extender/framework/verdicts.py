"""What plug-ins return: statuses, verdicts, scores, NUMA hints, permits and victims. Frozen."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from domain.numa import hint_merge
from extender.state import deltas

Column = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int16]
Shares = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

BEST = 100
"""The highest score that goes out."""


@dataclasses.dataclass(frozen=True, slots=True)
class Status:
    """Why a node is refused: few constant texts, because schedulers group by text."""

    reason: str
    """By which refusals are counted and grouped: one of a few constants."""
    resolvable: bool = False
    """Whether the scheduler's own preemption could help: only for what it counts itself."""
    message: str = ""
    """The message for the scheduler instead, with figures; only where all nodes have the same."""
    everywhere: bool = False
    """Whether it holds whatever claims are on a node, so that none is looked at; of PreFilter, on
    every node."""

    @property
    def text(self) -> str:
        """Return the message for the scheduler."""
        return self.message or self.reason


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """A filter's word on every node: 0 passes, k is refused with statuses[k - 1]."""

    codes: Codes
    statuses: tuple[Status, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnosis:
    """What stands behind the refusal of one node, for people."""

    figures: str
    """A clause with the figures; empty where there are none."""
    helps: tuple[str, ...] = ()
    """What would let the pod onto this node, each on its own."""


class Score(msgspec.Struct, frozen=True, gc=False):
    """A scorer's raw numbers and how to bring them to 0..100."""

    values: Column
    more_is_better: bool = True
    scale: bool = False
    """Stretch so that the largest value becomes 100; otherwise values only are clamped."""
    tiers: Column | None = None
    """By row: a node of a higher tier comes before every node of a lower one, whatever other
    scorers say; None: all nodes are of tier 0."""

    def of(self, rows: Rows) -> "Score":
        """Return the score of some rows, of all rows' score."""
        tiers = None if self.tiers is None else self.tiers[rows]
        return msgspec.structs.replace(self, values=self.values[rows], tiers=tiers)


NumaHint = hint_merge.NumaHint
Hints = hint_merge.Hints


class Grant(msgspec.Struct, frozen=True, gc=False):
    """Reserve: what a plug-in gives a pod on a node."""

    allocation: msgspec.Struct | None = None
    """Recorded by the plug-in's codec on the pod, and counted with its claim."""
    changes: tuple[deltas.Delta, ...] = ()
    """What else changes in the state; undone in reverse when anything after it fails."""
    figures: Mapping[str, str] = {}
    """What the placement annotation says of it; empty: the allocation itself."""
    annotations: Mapping[str, str] = {}
    """What else the Binding writes on the pod."""
    bind_times: tuple[str, ...] = ()
    """Annotations that get the moment of the bind, in nanoseconds since the epoch."""

    def told(self) -> Any:
        """Return what a record of the placement says of it."""
        return dict(self.figures) or msgspec.to_builtins(self.allocation)


@dataclasses.dataclass(frozen=True, slots=True)
class Allow:
    """Permit: the pod may be bound now."""

    wakes: tuple[str, ...] = ()
    """The keys of waits that may end by it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """Permit: the pod waits, reserved, until its key is woken or the time has come."""

    until: float
    """On the wall clock; a wait that has not ended by then is a refusal."""
    key: str
    """What it waits for, such as a gang; a change of it wakes all that wait for it."""
    status: Status
    """What the pod is refused with when the time has come."""
    together: bool = False
    """Whether pods that wait for the key are refused at once when one of them is refused."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reject:
    """Permit: the pod may not be bound; everything it reserved is undone."""

    status: Status
    wakes: tuple[str, ...] = ()
    """The keys of waits that may end by it."""


Permission = Allow | Wait | Reject


@dataclasses.dataclass(frozen=True, slots=True)
class Nominee:
    """A claim whose capacity a pod may use, such as that of a Reservation."""

    claim: str
    """Its id; empty: the pod uses what is free."""
    prepared: Any
    """What stands for what PreFilter prepared of the pod, while it uses this."""
    restricted: bool = False
    """Whether of what was allocated to the claim nothing may be taken from elsewhere."""


@dataclasses.dataclass(frozen=True, slots=True)
class Quorum:
    """Pods of which so many are needed, such as the members of a gang that are on nodes."""

    least: int
    members: tuple[tuple[str, str], ...]
    """Uid and node."""

    def holds(self, uid: str) -> bool:
        """Whether a pod is one of them."""
        return any(uid == one for one, _ in self.members)


@dataclasses.dataclass(frozen=True, slots=True)
class Victims:
    """Preemption: claims on a node that leave, or that hold what a pod lacks there."""

    claims: tuple[str, ...]
    """Their ids, the first to leave first where they leave."""
