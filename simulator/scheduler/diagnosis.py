"""What became of one attempt to place a pod, and the sentence that people read; pure."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping

from simulator.scheduler import intree

NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_CANDIDATE = "no candidate node for preemption"
NO_NODES = "no nodes available to schedule pods"
# The stock scheduler's events carry at most this much text.
LONGEST_NOTE = 1024


class AttemptError(Exception):
    """The attempt failed for a reason that says nothing about the nodes."""


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """The node that was chosen."""

    node: str


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """No node: who refused each, of how many there are."""

    refusals: Mapping[str, intree.Refusal]
    nodes: int

    @property
    def plugins(self) -> frozenset[str]:
        """Whose change of mind the pod waits for."""
        return frozenset(refusal.plugin for refusal in self.refusals.values())


def sentence(refused: Refused, preemption: str = "") -> str:
    """The message of the PodScheduled condition."""
    if refused.nodes == 0:
        return NO_NODES
    reasons = (reason for r in refused.refusals.values() for reason in r.reasons)
    text = available(refused.nodes, reasons)
    return f"{text} {NOTHING_TO_DEALLOCATE}, preemption: {preemption}" if preemption else text


def no_victims(refused: Refused) -> str:
    """What preemption says when evicting helps nowhere."""
    reasons = (NO_VICTIMS if r.resolvable else NOT_HELPFUL for r in refused.refusals.values())
    return available(refused.nodes, reasons)


def available(nodes: int, reasons: Iterable[str]) -> str:
    """Group equal reasons; sorted as text, count first."""
    counted = collections.Counter(reason for reason in reasons if reason)
    grouped = sorted(f"{count} {reason}" for reason, count in counted.items())
    start = f"0/{nodes} nodes are available"
    return f"{start}: {', '.join(grouped)}." if grouped else f"{start}."


def shortened(note: str) -> str:
    """Cut what an event cannot hold."""
    return note if len(note) <= LONGEST_NOTE else note[: LONGEST_NOTE - 4] + " ..."
