"""Which pods of a node have to leave so that no allocation is held twice."""

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

from extender.state import allocations, claims


class Overlap(NamedTuple):
    """Bound pods that hold the same thing, or more parts of it than there are."""

    plugin: str
    """Which allocated it."""
    kept: claims.Claim
    """The latest of those that stay."""
    later: claims.Claim
    """The one that has to leave."""
    others: tuple[claims.Claim, ...] = ()
    """More pods that stay, where it takes all of them to see the overlap."""


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


def conflict_with_any(
    one: claims.Claim,
    others: Collection[claims.Claim],
    codecs: Iterable[allocations.AllocationCodec],
) -> Overlap | None:
    """Return how a claim overlaps with others, alone or together, all of which stay."""
    codecs = tuple(codecs)
    for earlier in others:
        plugin = conflict(earlier, one, codecs)
        if plugin:
            return Overlap(plugin, earlier, one)
    for codec in codecs:
        mine = one.allocations.get(codec.name)
        if mine is None or not isinstance(codec, allocations.SharingCodec):
            continue
        sharing = [
            other
            for other in others
            if codec.name in other.allocations
            and other.id not in (one.id, one.consumes)
            and one.id != other.consumes
        ]
        if sharing and codec.exceeds(mine, [other.allocations[codec.name] for other in sharing]):
            *more, kept = sharing
            return Overlap(codec.name, kept, one, tuple(more))
    return None


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
        overlap = conflict_with_any(one, kept, codecs)
        if overlap is None:
            kept.append(one)
        else:
            found.append(overlap)
    return found
