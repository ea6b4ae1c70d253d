"""Which pods of a node have to leave so that no allocation is held twice."""

import math
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from domain.reservations import fit, model
from extender.state import allocations, claims
from extender.state.reservations import remainders, reservation_claims


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
    that does not say it comes last. The uid decides between pods of the same second. A Reservation
    has its condition Scheduled.
    """
    offered = reservation_claims.offered(claim)
    at = claim.pod.assigned_at if offered is None else offered.placed_at
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
    ident, consumes = one.id, one.consumes
    strangers = [
        other
        for other in others
        if other.id != ident and other.id != consumes and other.consumes != ident
    ]
    if not strangers:
        return None
    mine = [codec for codec in codecs if codec.name in one.allocations]
    for earlier in strangers:
        plugin = conflict(earlier, one, mine)
        if plugin:
            return Overlap(plugin, earlier, one)
    for codec in mine:
        divided = allocations.sharing(codec)
        sharing = [other for other in strangers if codec.name in other.allocations]
        if divided is None or not sharing:
            continue
        held = [other.allocations[codec.name] for other in sharing]
        if divided.exceeds(one.allocations[codec.name], held):
            *more, kept = sharing
            return Overlap(codec.name, kept, one, tuple(more))
    return None


def bound(held: Iterable[claims.Claim]) -> list[claims.Claim]:
    """Return the claims that the watch has shown and that hold an allocation."""
    return [one for one in held if one.kind is claims.ClaimKind.BOUND and one.allocations]


def holders(held: Iterable[claims.Claim]) -> list[claims.Claim]:
    """Return the same and the Reservations, each with what its owners leave of CPUs and devices."""
    held = tuple(held)
    found, reserved = bound(held), remainders.whole(held)
    if reserved:
        found += [one for one in remainders.counted(held, reserved) if _keeps(one)]
    return found


def _keeps(claim: claims.Claim) -> bool:
    """Whether a Reservation that the watch has shown holds more than amounts."""
    if reservation_claims.offered(claim) is None or claim.evidence != claims.SHOWN:
        return False
    return not claim.allocations.keys() <= {reservation_claims.NAME}


def overlaps(
    held: Iterable[claims.Claim], codecs: Collection[allocations.AllocationCodec]
) -> list[Overlap]:
    """Return who has to leave, each with the earliest pod that it stands in the way of.

    Pods are looked at in the order in which they were bound. Who overlaps with one that stays has
    to leave; who overlaps only with one that leaves may stay. A Reservation stays in any case: pods
    that were bound later and do not use it have to leave what it keeps.
    """
    held = tuple(held)
    kept: list[claims.Claim] = []
    found = overused(held)
    leaving = {overlap.later.id for overlap in found}
    for one in sorted(holders(held), key=rank):
        if one.id in leaving:
            continue
        if one.kind is claims.ClaimKind.RESERVATION:
            kept.append(one)
            continue
        overlap = conflict_with_any(one, _strangers(one, kept), codecs)
        if overlap is None:
            kept.append(one)
        else:
            found.append(overlap)
    return found


def _strangers(one: claims.Claim, kept: Iterable[claims.Claim]) -> list[claims.Claim]:
    """Leave out Reservations that were placed over a pod, or of which it may be an owner.

    The latter cannot be said where it cannot be read which Reservation the pod uses.
    """
    perhaps = reservation_claims.NAME in one.pod.unreadable
    return [
        other
        for other in kept
        if (offered := reservation_claims.offered(other)) is None
        or not (perhaps or one.pod.uid in offered.over)
    ]


def overused(held: Collection[claims.Claim]) -> list[Overlap]:
    """Return the pods that use a Reservation beyond what it may give, which have to leave.

    One that is allocated once serves the pod that was bound first, and a Restricted one as many as
    fit into it.
    """
    found: list[Overlap] = []
    users = sorted((one for one in bound(held) if one.consumes), key=rank)
    for reserved in held if users else ():
        reservation = reservation_claims.offered(reserved)
        # Owners of a pod in operating mode hold nothing of it.
        if reservation is not None and not reservation.operates:
            using = [one for one in users if one.consumes == reserved.id]
            found += _beyond(reservation, using)
    return found


def _beyond(reservation: model.Reservation, using: Iterable[claims.Claim]) -> Iterator[Overlap]:
    held, kept = model.Held(reservation), list[claims.Claim]()
    for one in using:
        requests = dict(one.pod.requirements.requests)
        if kept and (held.taken or any(fit.short(requests, held))):
            *more, last = kept
            yield Overlap(reservation_claims.NAME, last, one, tuple(more))
        else:
            held = held.with_owner(requests)
            kept.append(one)
