"""What a round decides: moves with targets and gains, refusals by reason, memory. Pure."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from descheduler.framework import objective, protocols
from descheduler.framework.planning import history, resting
from domain import wording

EXAMPLES: Final = 5
"""Pods that are named as examples of a reason."""


@dataclasses.dataclass(frozen=True, slots=True)
class Move:
    """One pod that leaves its node."""

    suggestion: protocols.Suggestion
    profile: str
    evictor: str
    """The plug-in by which it leaves: MigrationController or DefaultEvictor."""
    worth: objective.Accepted = objective.NOT_LOOKED_AT
    dry_run: bool = False
    """Whether it is only reported."""

    @property
    def target(self) -> str:
        """Return the node that the pod moves to; empty where that is left to the scheduler."""
        return self.worth.target.node if self.worth.target is not None else ""


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """Suggestions that became no move for the same reason."""

    plugin: str
    reason: str
    count: int
    examples: tuple[str, ...]
    """Some of the pods, as namespace/name, with what is peculiar to them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """A plug-in that failed; its suggestions until then stand."""

    profile: str
    plugin: str
    error: str


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    """A sentence of a plug-in about this round."""

    profile: str
    plugin: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """How many nodes a plug-in has found in a class, in one round."""

    profile: str
    plugin: str
    pool: str
    kind: str
    """The class, as the plug-in calls it."""
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """Pods that the filters of a profile kept, of those that plug-ins asked about."""

    profile: str
    reason: str
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class RoundMemory:
    """What one round leaves to the next."""

    plugins: Mapping[tuple[str, str], protocols.Memory] = dataclasses.field(default_factory=dict)
    """By profile and plug-in."""
    moves: history.History = dataclasses.field(default_factory=dict)


NO_MEMORY: Final = RoundMemory()


@dataclasses.dataclass(frozen=True, slots=True)
class RoundPlan:
    """What a round decided, for the shell to carry out and to report."""

    moves: tuple[Move, ...] = ()
    refused: tuple[Refused, ...] = ()
    kept: tuple[Kept, ...] = ()
    failures: tuple[Failure, ...] = ()
    notes: tuple[Note, ...] = ()
    counts: tuple[Counted, ...] = ()
    cordons: tuple[protocols.Cordon, ...] = ()
    """Nodes to cordon before the first pod leaves."""
    annotations: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    """By uid of the pod that they are written on."""
    memory: RoundMemory = NO_MEMORY
    spread: objective.Spread | None = None
    dry_run: bool = False
    skipped: str = ""
    """Why there was no round; empty where there was one."""

    @property
    def summary(self) -> str:
        """Return the round in one sentence."""
        if self.skipped:
            return f"no round: {self.skipped}"
        return "; ".join([self._moved(), *self._without()])

    def _moved(self) -> str:
        count = sum(not move.dry_run for move in self.moves)
        tried = len(self.moves) - count
        verb, number = ("would move", tried) if tried and not count else ("moves", count)
        if not self.moves:
            verb, number = ("would move" if self.dry_run else "moves"), 0
        text = f"{verb} {_pods(number)}"
        if self.spread is not None and self.moves:
            text += f", spread {self.spread.before:.0f} % → {self.spread.after:.0f} %"
        return f"{text}, would move {_pods(tried)}" if tried and count else text

    def _without(self) -> list[str]:
        found = []
        if self.refused:
            count = sum(one.count for one in self.refused)
            often = max(self.refused, key=lambda one: one.count)
            refused = wording.count(count, "suggestion", "suggestions")
            found.append(f"refused {refused}, most often: {often.reason}")
        looped = max((one.count for one in self.kept if one.reason == resting.LOOP), default=0)
        if looped:
            found.append(f"keeps {_pods(looped)} that moved in a loop")
        if self.failures:
            named = ", ".join(dict.fromkeys(one.plugin for one in self.failures))
            found.append(f"failed: {named}")
        return found


def _pods(count: int) -> str:
    return wording.count(count, "pod", "pods") if count else "no pod"
