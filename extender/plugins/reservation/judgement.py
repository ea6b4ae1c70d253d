"""Whether a pod may be placed on one node with Reservations, and into which of them it fits."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from domain.reservations import choice, fit, matching, model
from extender.framework import verdicts, views
from extender.plugins.reservation import tracker

NO_MATCH: Final = verdicts.Status("node(s) no reservations match reservation affinity")
NONE_FITS: Final = verdicts.Status(fit.NONE_FITS)
PORTS: Final = verdicts.Status("node(s) ports that the pod listens on are kept by reservations")
POLICIES: Final = verdicts.Status("node(s) reservation allocate policy conflict")
OTHER: Final = "resources"
"""Stands for a resource without a column in the text of a refusal."""
_NODE: Final = {
    name: verdicts.Status(f"Insufficient {name} by node") for name in (*tracker.COUNTED, OTHER)
}
_INSIDE: Final = {
    name: verdicts.Status(f"Reservation(s) Insufficient {name}")
    for name in (*tracker.COUNTED, OTHER)
} | {model.PODS: verdicts.Status("Reservation(s) Too many pods")}
STATUSES: Final = (NO_MATCH, NONE_FITS, PORTS, POLICIES, *_NODE.values(), *_INSIDE.values())
CODES: Final = {status: code for code, status in enumerate(STATUSES, 1)}
_LEAP: Final = choice.BEST + 1


def of_node(name: str) -> verdicts.Status:
    """Return the refusal of a node with too little of a resource."""
    return _NODE.get(name, _NODE[OTHER])


class Asked(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """What PreFilter reads of a pod; pods that are alike have equal ones."""

    requests: views.Pairs
    """Without the resources that Reservations do not count."""
    host_ports: tuple[views.HostPort, ...] = ()
    wishes: matching.Wishes = matching.Wishes()
    owners: tuple[str, ...] = ()
    """The names, in the index, of the owners that the pod is one of."""
    orders: tuple[int, ...] = ()
    """The orders of all Reservations, where it is an owner of any."""
    names_policy: bool | None = None
    """Whether the Reservation that it stands in for names its policy; None: it is no stand-in."""
    chosen: str = ""
    """Id of the claim that it is about to use; the node is shown without it."""
    alone: bool = False
    """Whether it is looked at without any Reservation, though it could use some."""


class Judged(msgspec.Struct, frozen=True, gc=False):
    """What was found of a pod on one node."""

    status: verdicts.Status | None
    """Why it is refused, None where it is not."""
    into: tuple[tracker.Kept, ...] = ()
    """The Reservations into which it fits, the one that it takes first."""


def judge(asked: Asked, found: tracker.NodeReservations | None) -> Judged:
    """Judge one node."""
    if asked.wishes.ignores or asked.chosen:
        return Judged(None)
    matched = usable(asked, found) if found is not None else []
    if asked.wishes.affinity is not None and not matched:
        return Judged(NO_MATCH)
    if found is None:
        return Judged(None)
    if asked.names_policy is not None and _conflicts(asked.names_policy, found):
        return Judged(POLICIES)
    if found.free_slots + tracker.places(matched) < 1:
        return Judged(_NODE[model.PODS])
    if not matched or asked.alone:
        return Judged(_plain(asked, found))
    return _among(asked, found, matched)


def _conflicts(names_policy: bool, found: tracker.NodeReservations) -> bool:
    """Whether a Reservation that pods may use names its policy where the new one does not."""
    return any(
        one.owners
        and not one.held.reservation.closed
        and one.held.reservation.named_policy is not names_policy
        for one in found.kept
    )


def usable(asked: Asked, found: tracker.NodeReservations) -> list[tracker.Kept]:
    """Return the Reservations of a node that a pod may use."""
    if not asked.owners:
        return []
    requests = dict(asked.requests)
    return [
        one
        for one in found.kept
        if one.owners in asked.owners
        and matching.usable(asked.wishes, requests, one.held, found.labels)
        is matching.Match.MATCHED
    ]


def _among(
    asked: Asked, found: tracker.NodeReservations, matched: Sequence[tracker.Kept]
) -> Judged:
    requests = dict(asked.requests)
    outcome = fit.judged(asked.wishes, requests, found.free, [one.held for one in matched])
    fitting = [
        one
        for one in matched
        if one.held in outcome.into and not _listens(asked, found, besides=one)
    ]
    if fitting:
        return Judged(None, _ranked(asked, fitting))
    if outcome.into and asked.wishes.affinity is not None:
        return Judged(PORTS)
    if outcome.into:
        return Judged(_plain(asked, found))
    if not outcome.fits:
        return Judged(_status(outcome))
    return Judged(PORTS if _listens(asked, found) else None)


def _ranked(asked: Asked, fitting: Sequence[tracker.Kept]) -> tuple[tracker.Kept, ...]:
    if len(fitting) == 1:
        return tuple(fitting)
    left, ranked = list(fitting), []
    requests = dict(asked.requests)
    while left:
        best = choice.first(requests, [one.held for one in left])
        taken = next(one for one in left if one.held is best)
        ranked.append(taken)
        left.remove(taken)
    return tuple(ranked)


def _plain(asked: Asked, found: tracker.NodeReservations) -> verdicts.Status | None:
    """Return why a pod that uses no Reservation is refused: it would take what one keeps."""
    kept: dict[str, int] = {}
    for one in found.kept:
        for name, value in one.keeps.items():
            kept[name] = kept.get(name, 0) + value
    for name, value in asked.requests:
        if kept.get(name, 0) > 0 and value > found.free.get(name, 0):
            return of_node(name)
    return PORTS if _listens(asked, found) else None


def _listens(
    asked: Asked, found: tracker.NodeReservations, besides: tracker.Kept | None = None
) -> bool:
    """Whether a pod listens on a port that another Reservation keeps."""
    return bool(asked.host_ports) and any(
        collide(mine, theirs)
        for one in found.kept
        if one is not besides
        for theirs in one.ports
        for mine in asked.host_ports
    )


def collide(one: views.HostPort, other: views.HostPort) -> bool:
    """Whether two ports of a node cannot be listened on at once."""
    same = one[1:] == other[1:]
    return same and (one[0] == other[0] or "" in (one[0], other[0]))


def holds(asked: Asked, claim: views.Claim) -> bool:
    """Whether a pod holds anything that another one asks for."""
    wanted = {name for name, value in asked.requests if value}
    held = claim.pod.requirements
    return any(name in wanted and value for name, value in held.requests) or any(
        collide(mine, theirs) for mine in asked.host_ports for theirs in held.host_ports
    )


def _status(outcome: fit.Outcome) -> verdicts.Status:
    """Return the refusal by the first thing that lacks, of the Reservations before the node."""
    order = sorted(outcome.shortages, key=lambda one: (not one.reservation, one.resource))
    if not order:
        return NONE_FITS
    texts = _INSIDE if order[0].reservation else _NODE
    return texts.get(order[0].resource, texts[OTHER])


def ranks(tiers: verdicts.Column) -> verdicts.Column:
    """Return how early the Reservations of nodes come by their order, 0 where none has one."""
    found: verdicts.Column = np.maximum(tiers - 1, 0) // _LEAP
    return found


def tier(asked: Asked, into: Sequence[tracker.Kept]) -> int:
    """Return the tier of a node: 0 without a Reservation to use, else by order and fullness.

    A node whose Reservation comes first by its order is before all others, and every node with a
    Reservation before those without; of those without an order the fullest comes first.
    """
    if not into:
        return 0
    best = into[0].held
    score = choice.score(dict(asked.requests), best)
    rank = 0
    if best.reservation.order in asked.orders:
        rank = len(asked.orders) - asked.orders.index(best.reservation.order)
    return 1 + score + _LEAP * rank
