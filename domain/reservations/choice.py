"""Which reservation a pod takes on a node, and how much a node with one is preferred."""

from collections.abc import Sequence
from typing import Final

from domain.pods import resources
from domain.reservations import fit, matching, model

BEST: Final = 100
"""The highest score of a reservation."""


def score(requests: resources.Amounts, held: model.Held) -> int:
    """Return how full a reservation would be, 0..100: the fuller, the better."""
    offered = {name: value for name, value in held.reservation.allocatable.items() if value}
    total = 0
    for name, value in offered.items():
        used = requests.get(name, 0) + held.allocated.get(name, 0)
        if used <= value:
            total += BEST * used // value
    return total // len(offered) if offered else 0


def nominate(asking: matching.Asking, room: fit.Room) -> model.Held | None:
    """Return the reservation that a pod takes on a node, None: it uses what is free.

    The lowest order wins; without one, the reservation that would be the fullest, and of equal ones
    the first by name.
    """
    if asking.wishes.ignores or not room.matched:
        return None
    if asking.wishes.affinity is not None and len(room.matched) == 1:
        return room.matched[0]
    found = fit.judge(asking, room).into
    return first(asking.requests, found)


def first(requests: resources.Amounts, found: Sequence[model.Held]) -> model.Held | None:
    """Return the reservation that comes first, of those into which a pod fits."""
    ordered = [held for held in found if held.reservation.order > 0]
    if ordered:
        return min(ordered, key=lambda held: (held.reservation.order, held.reservation.name))
    return min(
        found, key=lambda held: (-score(requests, held), held.reservation.name), default=None
    )
