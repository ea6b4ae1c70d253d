"""Reservations: what each keeps, who uses it, when it ends, why one is Pending. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from api.koordinator import scheduling
from api.wire import quantity
from domain.reservations import usage
from manager.console.views import paging

_LONGEST: Final = 512
_MOST_OWNERS: Final = 20


class Reservation(msgspec.Struct, frozen=True):
    """A Reservation as its status states it."""

    usage: usage.Usage
    policy: str
    reason: str


def projected(raw: Mapping[str, Any]) -> Reservation:
    """Project a Reservation."""
    written = scheduling.read_reservation(raw)
    found = usage.stated(written)
    wanted = "Ready" if found.node else "Scheduled"
    why = next(
        (": ".join(filter(None, (one.reason, one.message))) for one in written.status.conditions
         if one.type == wanted and one.status == "False"),
        "",
    )  # fmt: skip
    reason = found.fault if found.phase == scheduling.AVAILABLE else why
    return Reservation(found, written.policy, reason[:_LONGEST])


def document(found: Iterable[Reservation], wanted: paging.Asked) -> dict[str, Any]:
    """Return Reservations; those that wait come first."""
    every = [one for one in found if wanted.text in one.usage.name.lower()]
    phases: dict[str, int] = {}
    for one in every:
        phases[one.usage.phase] = phases.get(one.usage.phase, 0) + 1
    if wanted.kind:
        every = [one for one in every if one.usage.phase == wanted.kind]
    every.sort(key=lambda one: (one.usage.phase == scheduling.AVAILABLE, one.usage.name))
    return {**paging.page(every, wanted, _row), "phases": phases}


def _row(one: Reservation) -> dict[str, Any]:
    used = one.usage
    return {
        "name": used.name,
        "phase": used.phase,
        "node": used.node,
        "policy": one.policy,
        "reserved": quantity.texts(used.reserved),
        "allocated": quantity.texts(used.allocated),
        "owners": [owner.key for owner in used.owners[:_MOST_OWNERS]],
        "ownerCount": len(used.owners),
        "endsAt": used.ends_at,
        "reason": one.reason,
    }
