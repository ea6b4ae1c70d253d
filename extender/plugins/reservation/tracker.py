"""StateTracker: what Reservations keep of every node, and which pods may use which of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from api import names
from domain.pods import resources
from domain.reservations import model, owner_index
from extender.framework import views
from extender.plugins.reservation.allocation import NAME

COUNTED: Final = (
    *(names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE, model.PODS),
    *(names.BATCH_CPU, names.BATCH_MEMORY, names.MID_CPU, names.MID_MEMORY),
)
"""Resources with a column."""
HELD, OTHERS, FREE = 0, 1, 2
COLUMNS: Final = FREE + len(COUNTED)
"""HELD is -1 where a Reservation is, OTHERS where one keeps ports of the node or resources without
a column. From FREE on: what is left of each resource to pods that use no Reservation, `UNBOUNDED`
where none is kept; it may be negative."""
COLUMN_OF: Final[Mapping[str, int]] = {name: FREE + n for n, name in enumerate(COUNTED)}
UNBOUNDED: Final = 1 << 53
_FIGURES_OF_NOTHING: Final = (0, 0, *(UNBOUNDED for _ in COUNTED))


class Kept(msgspec.Struct, frozen=True, gc=False):
    """One Reservation of a node with those that use it."""

    claim: str
    """Id of its claim."""
    held: model.Held
    owners: str
    """Name of its owners in the index; empty: no pod may use it now."""
    ports: frozenset[views.HostPort] = frozenset()
    """Ports of the node that it keeps, without those on which its owners listen."""
    allocates: bool = False
    """Whether it holds CPUs or devices."""
    keeps: Mapping[str, int] = {}
    """What it keeps from other pods, beyond what its owners hold."""


class NodeReservations(msgspec.Struct, frozen=True, gc=False):
    """The Reservations of one node, by name."""

    kept: tuple[Kept, ...]
    free: Mapping[str, int]
    """By resource: what neither pods hold nor Reservations keep; it may be negative."""
    free_slots: int
    """The same of pods; every Reservation takes one, unless it is a pod itself."""
    labels: Mapping[str, str]
    """Of the node."""


def node(info: views.NodeInfo) -> views.Figures:
    """Return what is left of a node to other pods, and its Reservations."""
    if not info.reserved:
        return _FIGURES_OF_NOTHING, None
    kept = tuple(sorted(_kept(info), key=lambda one: one.held.reservation.name))
    offered = dict(info.node.allocatable)
    slots = offered.get(model.PODS, UNBOUNDED)
    pods = [claim for claim in info.claims if claim.id not in info.reserved]
    left = resources.less(offered, [claim.pod.requirements.requests for claim in pods])
    taken: Mapping[str, int] = {}
    for one in kept:
        taken = resources.add(taken, one.keeps)
    free = resources.subtract(left, taken)
    found = NodeReservations(
        kept,
        {name: value for name, value in free.items() if name != model.PODS},
        slots - len(pods) - places(kept),
        info.node.labels,
    )
    return _figures(found, taken), found


def places(kept: Iterable[Kept]) -> int:
    """Return how many pods Reservations keep a place for; one that is a pod has its own."""
    return sum(not one.held.reservation.operates for one in kept)


def _figures(found: NodeReservations, taken: Mapping[str, int]) -> tuple[int, ...]:
    figures = list(_FIGURES_OF_NOTHING)
    figures[HELD] = -1
    # Also of one that is used up: kube-scheduler may see an owner leave before this watch does.
    for name in taken:
        column = COLUMN_OF.get(name)
        if column is None:
            figures[OTHERS] = -1
        else:
            left = found.free[name] if name != model.PODS else found.free_slots
            # What somebody wrote into a status may be more than 64 bits hold.
            figures[column] = max(left, -UNBOUNDED)
    figures[COLUMN_OF[model.PODS]] = found.free_slots
    if any(one.ports for one in found.kept):
        figures[OTHERS] = -1
    return tuple(figures)


def _kept(info: views.NodeInfo) -> Iterable[Kept]:
    users: dict[str, list[views.Claim]] = {}
    for claim in info.claims:
        if claim.consumes in info.reserved:
            users.setdefault(claim.consumes, []).append(claim)
    for ident, claim in info.reserved.items():
        reservation = views.offered(claim)
        if reservation is None:
            continue
        using = users.get(ident, [])
        held = model.Held(reservation)
        if using:
            held = held.with_owners([user.pod.requirements.requests for user in using])
        if reservation.over:
            running = [claim for claim in info.claims if claim.id in reservation.over]
            for claim_of_pod in running:
                held = held.over_pod(dict(claim_of_pod.pod.requirements.requests))
            using = [*using, *running]
        yield Kept(
            ident,
            held,
            owner_index.name_of(reservation.owners) if usable(claim) else "",
            _ports(claim, using),
            _allocates(claim),
            held.kept(),
        )


def _allocates(claim: views.Claim) -> bool:
    """Whether a Reservation holds CPUs or devices."""
    return len(claim.allocations) > 1


def _ports(claim: views.Claim, using: Sequence[views.Claim]) -> frozenset[views.HostPort]:
    ports = frozenset(claim.pod.requirements.host_ports)
    if not ports:
        return ports
    return ports.difference(*(user.pod.requirements.host_ports for user in using))


def usable(claim: views.Claim) -> bool:
    """Whether pods may use a Reservation: the watch shows it, it has owners, it waits for none."""
    found = views.offered(claim)
    if found is None or found.waiting:
        return False
    return bool(found.owners) and claim.evidence == views.SHOWN


class Reservations(msgspec.Struct, frozen=True):
    """What is known of all Reservations of the cluster; a value that is never changed."""

    index: owner_index.OwnerIndex = owner_index.OwnerIndex()
    count: int = 0
    """How many hold anything."""
    allocating: int = 0
    """How many of these hold CPUs or devices."""
    orders: tuple[int, ...] = ()
    """The orders of those that have one, the lowest first."""


def advanced(old: Reservations, delta: views.Delta) -> Reservations:
    """Return what is known after a change."""
    if not isinstance(delta, views.ClaimDelta):
        return old
    before, after = _reservation(delta.before), _reservation(delta.after)
    if before is None and after is None:
        return old
    index, orders = old.index, list(old.orders)
    for claim, by in ((before, -1), (after, 1)):
        found = views.offered(claim) if claim is not None else None
        if claim is None or found is None:
            continue
        if usable(claim):
            index = index.changed(found.owners, claim.node, by)
        if found.order > 0 and by > 0:
            orders.append(found.order)
        elif found.order > 0:
            orders.remove(found.order)
    count = old.count + (after is not None) - (before is not None)
    allocating = old.allocating
    allocating += after is not None and _allocates(after)
    allocating -= before is not None and _allocates(before)
    return Reservations(index, count, allocating, tuple(sorted(orders)))


def _reservation(claim: views.Claim | None) -> views.Claim | None:
    is_one = claim is not None and claim.kind is views.ClaimKind.RESERVATION
    return claim if is_one else None


def of(view: views.View, row: int) -> NodeReservations | None:
    """Return the Reservations of a node, None where there are none."""
    found = view.sparse(NAME, row)
    return found if isinstance(found, NodeReservations) else None


def cluster(view: views.View) -> Reservations:
    """Return what is known of all Reservations."""
    found = view.cluster[NAME]
    assert isinstance(found, Reservations)
    return found
