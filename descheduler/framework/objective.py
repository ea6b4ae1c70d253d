"""What a move is worth, asked once filters and limits have let a suggestion through. Pure."""

import dataclasses
from collections.abc import Mapping
from typing import Final, Protocol

from descheduler.framework import protocols
from descheduler.model import podinfo


@dataclasses.dataclass(frozen=True, slots=True)
class Accepted:
    """A move that is worth making."""

    target: protocols.Target | None = None
    """Where the pod would go; None where it may go anywhere, or is not looked for."""
    gain: float = 0.0
    """What the cluster gains, in the unit of the objective."""
    cost: float = 0.0
    """What the move costs, in the same unit."""
    figures: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """What both were computed from, for people and for the receipt."""


@dataclasses.dataclass(frozen=True, slots=True)
class Declined:
    """A move that is not."""

    reason: str
    """One of few sentences, by which refusals are counted."""
    detail: str = ""
    """Figures of this one, for people."""


Verdict = Accepted | Declined
NOT_LOOKED_AT: Final = Accepted()
"""A move of which neither target nor gain are looked at."""


@dataclasses.dataclass(frozen=True, slots=True)
class Spread:
    """How unevenly nodes are loaded, in percent, before a round and after its moves."""

    before: float
    after: float


class Objective(Protocol):
    """Judges the moves of one round; what it has accepted counts when it judges the next."""

    def judge(self, suggestion: protocols.Suggestion, targets: protocols.Targets | None) -> Verdict:
        """Say whether a suggestion is worth a move, by its purpose; nothing changes yet."""

    def accept(self, suggestion: protocols.Suggestion, accepted: Accepted) -> None:
        """Let the move that was judged last be made from here on."""

    def cost(self, pod: podinfo.Pod) -> float:
        """Return what an eviction of a pod costs, in points; never 0."""

    def spread(self) -> Spread | None:
        """Return the spread of load; None where none is measured."""


class AcceptAll:
    """Accepts every suggestion without a target, as the reference does with EvictDirectly."""

    def judge(self, suggestion: protocols.Suggestion, targets: protocols.Targets | None) -> Verdict:
        """Say that it is worth a move."""
        del suggestion, targets
        return Accepted()

    def accept(self, suggestion: protocols.Suggestion, accepted: Accepted) -> None:
        """Let the move be made; nothing is kept of it."""

    def cost(self, pod: podinfo.Pod) -> float:
        """Return the same for all pods."""
        del pod
        return 1.0

    def spread(self) -> Spread | None:
        """Return None: no load is looked at."""
        return None


ACCEPT_ALL: Final = AcceptAll()
