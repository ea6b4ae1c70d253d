"""What a quota still has room for, after pods that were let in and are not bound yet. Pure.

Amounts are by resource, as ``quantity.amount`` counts: cpu in thousandths, others in base units.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from domain.quota import model

Amounts = model.Amounts


class Standing(Protocol):
    """The figures of a quota that say what it has room for."""

    @property
    def limit(self) -> Amounts:
        """What may be used: the runtime quota, or the maximum; a missing resource is unlimited."""

    @property
    def used(self) -> Amounts:
        """What its bound pods request."""

    @property
    def minimum(self) -> Amounts:
        """The guarantee, as it was written."""

    @property
    def scaled_minimum(self) -> Amounts:
        """The guarantee, scaled down where the total does not suffice for all."""

    @property
    def non_preemptible_used(self) -> Amounts:
        """What those of its bound pods request that may not be preempted."""


class Sums:
    """Amounts that are added up, up and down."""

    __slots__ = ("amounts",)

    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}

    def __bool__(self) -> bool:
        """Whether anything is in it."""
        return bool(self.amounts)

    def add(self, amounts: Amounts, times: int = 1) -> None:
        """Add amounts; `times` -1 takes them away."""
        own = self.amounts
        for name, amount in amounts.items():
            total = own.get(name, 0) + times * amount
            if total:
                own[name] = total
            else:
                own.pop(name, None)


class Room:
    """What is left of one limit; changes while pods are let in."""

    __slots__ = ("_counted", "left", "limit")

    def __init__(self, limit: Amounts, used: Amounts) -> None:
        self.limit = limit
        self.left = {name: most - used.get(name, 0) for name, most in limit.items()}
        self._counted = frozenset(used)

    def charge(self, amounts: Amounts) -> None:
        """Take away what is promised to a pod."""
        for name, amount in amounts.items():
            if name in self.left:
                self.left[name] -= amount

    def lacks(self, asks: Amounts, *, every: bool, back: Amounts = model.EMPTY) -> tuple[str, ...]:
        """Return the resources that are short; `back` is what would come back before.

        With `every`, a resource that is used beyond its limit counts though it is not asked for.
        """
        left, short = self.left, []
        for name, amount in asks.items():
            if name in left and amount > left[name] + back.get(name, 0):
                short.append(name)
        if every:
            short += [
                name
                for name, amount in left.items()
                if amount + back.get(name, 0) < 0 and name in self._counted and name not in asks
            ]
        return tuple(short)

    @property
    def share(self) -> float:
        """The largest part of any limited resource that is taken."""
        parts = (
            (most - self.left[name]) / most if most > 0 else float(self.left[name] < most)
            for name, most in self.limit.items()
        )
        return max(parts, default=0.0)


class Lack(NamedTuple):
    """Why a pod does not fit: where, which resources, and whether it is the guarantee."""

    quota: str
    resources: frozenset[str]
    guarantee: bool = False
    """The limit is the minimum, which non-preemptible pods stay within."""


class QuotaRoom:
    """The rooms that a pod of one quota has to fit: its own, its parents', and its guarantee."""

    __slots__ = ("_minimum", "_parents", "guarantee", "leaf", "name", "priority")

    def __init__(
        self,
        name: str,
        standing: Standing,
        parents: Iterable[tuple[str, Room]] = (),
        priority: int = 0,
    ) -> None:
        self.name = name
        self.priority = priority
        self.leaf = Room(standing.limit, standing.used)
        self.guarantee = Room(standing.minimum, standing.non_preemptible_used)
        self._parents = tuple(parents)
        self._minimum = standing.scaled_minimum

    @property
    def names(self) -> tuple[str, ...]:
        """The quota and those of its parents that are checked."""
        return (self.name, *(name for name, _ in self._parents))

    def charge(self, asks: Amounts, *, preemptible: bool) -> None:
        """Take away what a pod asks for, everywhere."""
        self.leaf.charge(asks)
        for _, room in self._parents:
            room.charge(asks)
        if not preemptible:
            self.guarantee.charge(asks)

    def charge_all(self, asks: Amounts, firm: Amounts) -> None:
        """Take away what several pods ask for; `firm` is the part that is never preempted."""
        self.charge(asks, preemptible=True)
        self.guarantee.charge(firm)

    def lack(self, asks: Amounts, *, preemptible: bool, back: Amounts = model.EMPTY) -> Lack | None:
        """Return why a pod does not fit, None if it does; `back` would come back before."""
        if short := self.leaf.lacks(asks, every=True, back=back):
            return Lack(self.name, frozenset(short))
        if not preemptible and (short := self.guarantee.lacks(asks, every=False)):
            return Lack(self.name, frozenset(short), guarantee=True)
        for name, room in self._parents:
            if short := room.lacks(asks, every=False, back=back):
                return Lack(name, frozenset(short))
        return None

    def drains_for(self, asks: Amounts, *, preemptible: bool) -> bool:
        """Whether a pod would fit if no other pod used anything."""
        rooms = [self.leaf, *(room for _, room in self._parents)]
        if not preemptible:
            rooms.append(self.guarantee)
        return all(
            amount <= room.limit.get(name, amount)
            for room in rooms
            for name, amount in asks.items()
        )

    def entitles(self, asks: Amounts) -> bool:
        """Whether the quota stays within its guarantee with this pod."""
        leaf = self.leaf
        return all(
            leaf.limit[name] - leaf.left[name] + amount <= self._minimum.get(name, 0)
            for name, amount in asks.items()
            if name in leaf.limit
        )
