"""Who has to leave a node so that a pod gets its CPUs: the least important, and no more."""

from collections.abc import Callable, Sequence

from extender.framework import verdicts, views
from extender.plugins.node_numa_resource import tracker

UNALIGNED = verdicts.Status("no pod of lower priority stands in the way of the NUMA policy")
Refusal = Callable[[frozenset[str]], verdicts.Status | None]
"""Returns why a pod is refused on a node without some claims."""


def choose(
    refused: Refusal, claims: Sequence[views.Claim], priority: int
) -> verdicts.Victims | verdicts.Status:
    """Return claims of lower priority that hold CPUs or amounts of NUMA nodes."""
    lower = [
        claim
        for claim in claims
        if claim.pod.requirements.priority < priority and tracker.held_by(claim) is not None
    ]
    lower.sort(key=lambda claim: (claim.pod.requirements.priority, claim.id))
    leaving: list[str] = []
    status = refused(frozenset())
    for claim in lower:
        if status is None:
            break
        leaving.append(claim.id)
        status = refused(frozenset(leaving))
    if status is not None:
        return status
    # The most important of them stay where the others are enough.
    for ident in leaving[::-1]:
        fewer = [one for one in leaving if one != ident]
        if refused(frozenset(fewer)) is None:
            leaving = fewer
    return verdicts.Victims(tuple(leaving))
