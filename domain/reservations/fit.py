"""Whether a pod fits a node with reservations: into what is free, or into one of them.

A node holds real pods, the owners of its reservations among them, and what reservations keep
beyond their owners. A pod that may use reservations takes the remainder of at most one of them.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from domain.pods import resources
from domain.reservations import matching, model

Amounts = resources.Amounts


class Room(msgspec.Struct, frozen=True):
    """One node as a pod that is placed finds it."""

    allocatable: Amounts
    requested: Amounts
    """What all pods on it request, owners included."""
    matched: tuple[model.Held, ...] = ()
    """Reservations that the pod may use."""
    others: tuple[model.Held, ...] = ()
    """Reservations that it may not use."""

    def free(self) -> dict[str, int]:
        """Return what neither pods hold nor reservations keep; it may be negative."""
        left = resources.subtract(self.allocatable, self.requested)
        return resources.subtract(left, kept((*self.matched, *self.others)))


class Shortage(msgspec.Struct, frozen=True, gc=False):
    """A resource of which a pod asks for more than there is."""

    resource: str
    reservation: bool
    """Whether it is the reservation that has too little, not the node."""
    requested: int = 0
    used: int = 0
    capacity: int = 0

    def sentence(self, *, detailed: bool = False) -> str:
        """Return the reason as kube-scheduler shows it."""
        if not self.reservation:
            return f"Insufficient {self.resource} by node"
        many = self.resource == model.PODS
        text = "Too many pods" if many else f"Insufficient {self.resource}"
        figures = f", requested: {self.requested}, used: {self.used}, capacity: {self.capacity}"
        return f"Reservation(s) {text}{figures if detailed else ''}"


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What became of a pod on one node."""

    into: tuple[model.Held, ...] = ()
    """The reservations into which it fits, in the order in which they were given."""
    fits: bool = True
    """Whether it may be placed on this node."""
    shortages: tuple[Shortage, ...] = ()
    """What was missing, of every reservation that was tried, where it may not."""

    def reasons(self, *, detailed: bool = False) -> list[str]:
        """Return why the pod may not be placed, in the words of kube-scheduler's messages."""
        reservations = [one for one in self.shortages if one.reservation]
        node = {one for one in self.shortages if not one.reservation}
        found = sorted(one.sentence(detailed=detailed) for one in (*reservations, *node))
        return found or ([] if self.fits else [NONE_FITS])


NONE_FITS = "node(s) no reservation(s) to meet the requirements"


def judge(asking: matching.Asking, room: Room) -> Outcome:
    """Tell whether a pod may be placed on a node, and into which of its reservations it fits.

    A pod with a reservation affinity needs a reservation; any other one falls back on what is free.
    """
    if asking.wishes.ignores or not room.matched:
        return Outcome()
    return judged(asking.wishes, asking.requests, room.free(), room.matched)


def judged(
    wanted: matching.Wishes, requests: Amounts, free: Amounts, matched: Sequence[model.Held]
) -> Outcome:
    """Tell the same of a node with so much that neither pods hold nor reservations keep."""
    into, shortages = [], []
    for held in _tried(wanted, requests, matched):
        missing = [*lacks(requests, free, held), *short(requests, held)]
        shortages += missing
        if not missing:
            into.append(held)
    if into:
        return Outcome(tuple(into))
    if wanted.affinity is not None:
        return Outcome(fits=False, shortages=tuple(shortages))
    # Where the node has too little even with the remainder of a reservation, it has without it.
    by_node = [one for one in shortages if not one.reservation]
    by_node = by_node or list(lacks(requests, free))
    return Outcome(fits=not by_node, shortages=tuple(by_node))


def _tried(
    wanted: matching.Wishes, requests: Amounts, matched: Sequence[model.Held]
) -> Iterator[model.Held]:
    affinity = wanted.affinity
    requested = {name for name, value in requests.items() if value}
    for held in matched:
        if affinity is None and not requested & held.reservation.charged:
            continue
        if affinity is None or affinity.name in ("", held.reservation.name):
            yield held


def lacks(requests: Amounts, free: Amounts, held: model.Held | None = None) -> Iterator[Shortage]:
    """Yield what the node has too little of, together with the remainder of a reservation."""
    remainder = held.remainder() if held else {}
    for name, value in requests.items():
        if value > 0 and value > free.get(name, 0) + remainder.get(name, 0):
            yield Shortage(name, reservation=False)


def short(requests: Amounts, held: model.Held) -> Iterator[Shortage]:
    """Yield what a Restricted reservation has too little of; an Aligned one lacks nothing."""
    one = held.reservation
    if one.policy is not model.Policy.RESTRICTED:
        return
    if model.PODS in one.allocatable and held.owners + 1 > one.allocatable[model.PODS]:
        yield Shortage(model.PODS, True, 1, held.owners, one.allocatable[model.PODS])
    for name in sorted(one.charged):
        value, used = requests.get(name, 0), max(0, held.allocated.get(name, 0))
        capacity = one.allocatable[name] - one.withheld.get(name, 0)
        if value > 0 and value > capacity - used:
            yield Shortage(name, True, value, used, capacity)


def kept(reservations: Iterable[model.Held]) -> dict[str, int]:
    """Return what reservations keep from pods that may not use them, one pod slot each."""
    total: dict[str, int] = {}
    for held in reservations:
        total = resources.add(total, {**held.kept(), model.PODS: 1})
    return total
