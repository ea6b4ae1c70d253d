"""A Reservation as placement sees it: what it holds on its node, for which pods."""

import enum
import functools
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from api import names
from api.koordinator import scheduling
from api.koordinator.metadata import annotations
from api.kubernetes import core, meta
from domain.pods import resources
from domain.reservations import conditions, owners

Amounts = resources.Amounts
PODS: Final = "pods"
"""The resource that counts owners where a Restricted reservation names it."""
_INT64: Final = 1 << 63


class Policy(enum.Enum):
    """spec.allocatePolicy: how the requests of an owner map on what is reserved."""

    ALIGNED = "Aligned"
    """The remainder of one reservation and what is free on the node, in any mixture."""
    RESTRICTED = "Restricted"
    """Of the resources that the reservation names, its remainder alone."""


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """One Reservation that is placed on a node, read once."""

    name: str
    uid: str
    node: str
    owners: tuple[owners.Owner, ...]
    policy: Policy
    allocatable: Amounts
    """What is reserved: cpu in milli, everything else in base units."""
    charged: frozenset[str]
    """The resources of which the use of owners is counted; Restricted refuses by these alone."""
    withheld: Amounts = {}
    """Part of what is reserved that no owner gets."""
    labels: Mapping[str, str] = {}
    taints: tuple[core.Taint, ...] = ()
    order: int = 0
    """Where reservations have an order, the lowest positive one is taken first."""
    allocate_once: bool = True
    """Whether the first owner uses it up."""
    closed: bool = False
    """Whether it takes no new owners, unless they tolerate that it is unschedulable."""
    waiting: bool = False
    """Whether it was placed over pods that still run, and takes no owner before they have ended."""
    over: frozenset[str] = frozenset()
    """Uids of those pods; what they request is part of what is reserved."""
    operates: bool = False
    """Whether it is a running pod: the pod itself holds what it offers, so it keeps nothing."""
    named_policy: bool = False
    """Whether it names its policy: on one node no such Reservation is beside one without."""
    placed_at: float = -1.0
    """When it got its node, in seconds since 1970; negative: not said by the object."""


class Held(msgspec.Struct, frozen=True, gc=False):
    """A Reservation together with the owners that use it."""

    reservation: Reservation
    allocated: Amounts = {}
    """What its owners request of the resources that are charged."""
    owners: int = 0
    """Pods that use it."""

    @property
    def taken(self) -> bool:
        """Whether its only owner is there already."""
        return self.reservation.allocate_once and self.owners > 0

    def kept(self) -> dict[str, int]:
        """Return what it keeps from other pods, beyond what its owners hold themselves.

        An owner of an Aligned reservation may hold more than is reserved; what it holds beyond
        that is not given to other pods a second time.
        """
        if self.reservation.operates:
            return dict.fromkeys(self.reservation.allocatable, 0)
        return _difference(self.reservation.allocatable, self.allocated)

    def remainder(self) -> dict[str, int]:
        """Return what one more owner may take of it."""
        return _difference(self.kept(), self.reservation.withheld)

    def over_pod(self, requests: Amounts) -> "Held":
        """Return the reservation with one more pod over which it was placed and that still runs."""
        used = {
            name: value for name, value in requests.items() if name in self.reservation.allocatable
        }
        return Held(self.reservation, resources.add(self.allocated, used), self.owners)

    def with_owner(self, requests: Amounts) -> "Held":
        """Return the reservation with one more owner."""
        return self.with_owners([requests.items()])

    def with_owners(self, several: Collection[Iterable[tuple[str, int]]]) -> "Held":
        """Return the reservation with more owners, given by what each requests."""
        charged, used = self.reservation.charged, dict(self.allocated)
        for requests in several:
            for name, value in requests:
                if name in charged:
                    used[name] = used.get(name, 0) + value
        return Held(self.reservation, used, self.owners + len(several))


def _difference(left: Amounts, right: Amounts) -> dict[str, int]:
    return {name: max(0, value - right.get(name, 0)) for name, value in left.items()}


def read(written: scheduling.Reservation) -> Reservation | None:
    """Return a Reservation that holds capacity; None where it is not placed or has ended.

    Raises `base.ReadError` where one of its annotations cannot be read: no pod may use it then.
    """
    status, metadata = written.status, written.metadata
    waiting = status.phase == scheduling.WAITING
    if not (waiting or status.phase == scheduling.AVAILABLE) or not status.node_name:
        return None
    allocatable = resources.amounts(status.allocatable)
    policy = Policy(written.policy)
    return Reservation(
        name=metadata.name,
        uid=metadata.uid,
        node=status.node_name,
        owners=_one_of(tuple(map(owners.read, written.spec.owners))),
        policy=policy,
        allocatable=allocatable,
        charged=_charged(written, policy, allocatable),
        withheld=_withheld(written, allocatable),
        labels=metadata.labels,
        taints=tuple(
            core.Taint(key=one.key, value=one.value, effect=one.effect)
            for one in written.spec.taints
        ),
        order=order(metadata.labels),
        named_policy=written.policy_name != "",
        allocate_once=written.spec.allocate_once,
        closed=written.spec.unschedulable or metadata.deletion_timestamp is not None,
        waiting=waiting,
        over=frozenset(one.uid for one in status.current_owners) if waiting else frozenset(),
        placed_at=_placed_at(status),
    )


@functools.lru_cache(maxsize=4096)
def _one_of(listed: tuple[owners.Owner, ...]) -> tuple[owners.Owner, ...]:
    """Return one and the same object for equal owners, which is cheap to compare and to keep."""
    return listed


def _placed_at(status: scheduling.ReservationStatus) -> float:
    found = meta.condition(status.conditions, conditions.SCHEDULED)
    since = None if found is None or found.status != "True" else found.last_transition_time
    return -1.0 if since is None else since


def _charged(
    written: scheduling.Reservation, policy: Policy, allocatable: Amounts
) -> frozenset[str]:
    """Return the resources that restricted options name, all where they name none of them."""
    every = frozenset(allocatable)
    if policy is not Policy.RESTRICTED:
        return every
    options = annotations.RESERVATION_RESTRICTED.read(written.metadata.annotations)
    return (every & frozenset(options.resources) if options else every) or every


def _withheld(written: scheduling.Reservation, allocatable: Amounts) -> dict[str, int]:
    noted = annotations.NODE_RESERVATION.read(written.metadata.annotations)
    amounts = resources.amounts(noted.resources) if noted else {}
    return {name: value for name, value in amounts.items() if name in allocatable}


def order(labels: Mapping[str, str]) -> int:
    """Read the label with the order; what is no positive 64-bit number is no order."""
    digits = labels.get(names.LABEL_RESERVATION_ORDER, "").removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return 0
    return int(digits) if int(digits) < _INT64 else 0
