"""Why a pod may not use Reservations, or what they keep from it, in figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain import wording
from domain.reservations import fit, matching
from extender.framework import verdicts, views
from extender.plugins.reservation import judgement, tracker

_MOST_SHOWN = 5


def diagnosis(
    asked: judgement.Asked, found: tracker.NodeReservations | None, node: str
) -> verdicts.Diagnosis:
    """Return the figures behind the verdict on one node and what would change it."""
    if found is None:
        return verdicts.Diagnosis(f"{node} holds no reservation", _helps_without(asked))
    matched = judgement.usable(asked, found)
    clauses = [_about(asked, one, found) for one in found.kept if one.owners in asked.owners]
    helps: list[str] = []
    for name, value in asked.requests:
        kept = sum(one.keeps.get(name, 0) for one in found.kept)
        free = found.free.get(name, 0)
        if not kept or value <= free:
            continue
        clauses.append(
            f"asks {wording.amount(name, value)} {name}, "
            f"{wording.count(wording.amount(name, max(free, 0)), 'is', 'are')} free beside "
            f"{wording.amount(name, kept)} that {_named(found)} keep"
        )
        helps.append(f"{wording.named(name, value - free)} given back on {node}")
    if found.free_slots + len(matched) < 1:
        clauses.append(f"{_named(found)} keep one pod slot each, and no other is left")
    if not matched:
        helps += _helps_without(asked)
        helps += [f"the end of {_named(found)}"] if clauses and not asked.wishes.affinity else []
    return verdicts.Diagnosis("; ".join(clauses), tuple(helps))


def _helps_without(asked: judgement.Asked) -> tuple[str, ...]:
    if asked.wishes.affinity is None:
        return ()
    name = asked.wishes.affinity.name
    return (f"an Available reservation{f' {name}' if name else ''} that the pod is an owner of",)


def _about(asked: judgement.Asked, one: tracker.Kept, found: tracker.NodeReservations) -> str:
    """Say why one Reservation of which the pod is an owner does not take it."""
    requests, name = dict(asked.requests), one.held.reservation.name
    match = matching.usable(asked.wishes, requests, one.held, found.labels)
    if match is not matching.Match.MATCHED:
        return f"{name}: {match.value}"
    lacking = [*fit.short(requests, one.held), *fit.lacks(requests, found.free, one.held)]
    return f"{name}: {'; '.join(_lack(each, one) for each in lacking) or 'fits'}"


def _lack(each: fit.Shortage, one: tracker.Kept) -> str:
    if each.reservation:
        return each.sentence(detailed=True)
    left = wording.amount(each.resource, one.held.remainder().get(each.resource, 0))
    return f"{each.sentence()}, {wording.count(left, 'is', 'are')} left of the reservation"


def _named(found: tracker.NodeReservations) -> str:
    names = [one.held.reservation.name for one in found.kept]
    more = len(names) - _MOST_SHOWN
    text = ", ".join(names[:_MOST_SHOWN])
    return f"reservations {text}{f' and {more} more' if more > 0 else ''}"


def shortage(
    asked: judgement.Asked, found: Sequence[tracker.NodeReservations | None]
) -> list[float]:
    """Return what share of what the pod requests is lacking, by node."""
    return [0.0 if one is None else _share(asked, one) for one in found]


def _share(asked: judgement.Asked, found: tracker.NodeReservations) -> float:
    shares = [
        max(0, value - found.free.get(name, 0)) / value
        for name, value in asked.requests
        if value > 0 and any(one.keeps.get(name, 0) for one in found.kept)
    ]
    return min(1.0, max(shares, default=0.0))


def inspected(found: tracker.NodeReservations | None) -> Mapping[str, Any]:
    """Return the Reservations of a node as JSON."""
    if found is None:
        return {"reservations": []}
    shown = [
        {
            "name": one.held.reservation.name,
            "uid": one.held.reservation.uid,
            "policy": one.held.reservation.policy.value,
            "allocateOnce": one.held.reservation.allocate_once,
            "allocatable": dict(one.held.reservation.allocatable),
            "allocated": dict(one.held.allocated),
            "remainder": one.held.remainder(),
            "owners": one.held.owners,
            "takesOwners": bool(one.owners) and not one.held.taken,
            "hostPorts": [f"{ip or '*'}:{port}/{kind}" for ip, kind, port in sorted(one.ports)],
        }
        for one in found.kept
    ]
    return {"reservations": shown, "freeBesides": dict(found.free), "podSlots": found.free_slots}


def told(name: str, lent: views.Lent) -> Mapping[str, str]:
    """Return what the record of a placement says of the Reservation that a pod was given."""
    return {"reservation": name, "policy": "Restricted" if lent.restricted else "Aligned"}
