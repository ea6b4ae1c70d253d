"""Which pods of a node have to leave so that no allocation is held twice."""

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

from extender.state import allocations, claims


class Overlap(NamedTuple):
    """Two bound pods that hold the same thing."""

    plugin: str
    """Which allocated it."""
    kept: claims.Claim
    later: claims.Claim


def rank(claim: claims.Claim) -> tuple[float, str]:
    """Return by what claims are ordered: the pod that was bound first keeps what it holds.

    The time of a Binding is the condition PodScheduled, which every extender reads alike. A pod
    that does not say it comes last. The uid decides between pods of the same second.
    """
    at = claim.pod.assigned_at
    return (at if at >= 0 else math.inf, claim.pod.uid)


def conflict(
    one: claims.Claim, other: claims.Claim, codecs: Iterable[allocations.AllocationCodec]
) -> str:
    """Return the plug-in that allocated the same thing twice, empty if none did."""
    if one.id == other.id or one.id == other.consumes or other.id == one.consumes:
        return ""
    for codec in codecs:
        first, second = one.allocations.get(codec.name), other.allocations.get(codec.name)
        if first is not None and second is not None and codec.conflicts(first, second):
            return codec.name
    return ""


def bound(held: Iterable[claims.Claim]) -> list[claims.Claim]:
    """Return the claims that the watch has shown and that hold an allocation."""
    return [one for one in held if one.kind is claims.ClaimKind.BOUND and one.allocations]


def overlaps(
    held: Iterable[claims.Claim], codecs: Collection[allocations.AllocationCodec]
) -> list[Overlap]:
    """Return who has to leave, each with the earliest pod that it stands in the way of.

    Pods are looked at in the order in which they were bound. Who overlaps with one that stays has
    to leave; who overlaps only with one that leaves may stay.
    """
    kept: list[claims.Claim] = []
    found: list[Overlap] = []
    for one in sorted(bound(held), key=rank):
        for earlier in kept:
            plugin = conflict(earlier, one, codecs)
            if plugin:
                found.append(Overlap(plugin, earlier, one))
                break
        else:
            kept.append(one)
    return found
