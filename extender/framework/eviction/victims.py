"""Victims: which pods may be preempted, and kube-scheduler's order of victims and nodes. Pure."""

import dataclasses
from typing import Final

from api import names
from extender.framework import pipeline, verdicts, views

EVIDENCE: Final = "preemption"
"""Evidence of a nomination that keeps what the victims of a preemption free."""

EQUAL: Final = verdicts.Status("its priority is not lower")
KEPT: Final = verdicts.Status("it is marked as not preemptible")
UNBOUND: Final = verdicts.Status("it is not known to be bound")

_PROTECTED: Final = (
    (names.LABEL_QUOTA_PREEMPTIBLE, "false"),
    (names.LABEL_DISABLE_PREEMPTIBLE, "true"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """The victims on one node without which a pod passes there."""

    victims: tuple[views.Claim, ...] = ()
    """To be evicted, the most important first."""
    leaving: tuple[views.Claim, ...] = ()
    """Terminating already: only to be waited for."""
    released: tuple[views.Claim, ...] = ()
    """What was kept for preemptors of lower priority."""
    violations: int = 0
    """Evictions that disruption budgets would refuse now."""

    @property
    def claims(self) -> tuple[views.Claim, ...]:
        """Return all of them."""
        return (*self.victims, *self.leaving, *self.released)

    @property
    def cost(self) -> tuple[float, ...]:
        """Return by what kube-scheduler orders nodes; the least is chosen.

        Fewest violated budgets, lowest priority of the most important victim, smallest sum of
        priorities, fewest victims, latest start of the most important victim.
        """
        if not self.victims:
            return (-1,)
        priorities = [priority_of(claim) for claim in self.victims]
        top = max(priorities)
        started = min(c.pod.assigned_at for c in self.victims if priority_of(c) == top)
        # The offset makes every victim count, also one of negative priority.
        total = sum(priority + (1 << 31) for priority in priorities)
        return self.violations, top, total, len(priorities), -started


def priority_of(claim: views.Claim) -> int:
    """Return the priority that admission gave to a pod."""
    return claim.pod.requirements.priority


def importance(claim: views.Claim) -> tuple[int, float, str]:
    """Return the key that sorts the most important pod first: priority, then earlier start."""
    return -priority_of(claim), claim.pod.assigned_at, claim.id


def expendable(claim: views.Claim) -> tuple[int, float, str]:
    """Return the key that sorts the least important pod first: priority, then later start."""
    return priority_of(claim), -claim.pod.assigned_at, claim.id


def is_free(claim: views.Claim) -> bool:
    """Whether no pod is evicted for what it holds: it is leaving, or it is only kept."""
    return claim.pod.leaves_at >= 0 or claim.kind is views.ClaimKind.NOMINATED


def spared(
    plugins: pipeline.Pipeline, pod: views.PodInfo, view: views.View, claim: views.Claim
) -> verdicts.Status | None:
    """Return why a claim must not leave for a pod, None if it may."""
    is_lower = priority_of(claim) < pod.requirements.priority
    if claim.kind is views.ClaimKind.NOMINATED:
        return None if is_lower and claim.evidence == EVIDENCE else UNBOUND
    if claim.kind is not views.ClaimKind.BOUND:
        # Its bind is under way and would fail, or the watch is about to show it.
        return UNBOUND
    if claim.pod.leaves_at >= 0:
        return None
    if not is_lower:
        return EQUAL
    if any(mark in claim.pod.requirements.inputs for mark in _PROTECTED):
        return KEPT
    answers = (guard.protects(pod, view, claim) for guard in plugins.guards)
    return next((status for status in answers if status is not None), None)
