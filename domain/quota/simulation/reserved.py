"""What Reservations keep on nodes for their owners while time is played forward. Pure.

A pod uses at most one Reservation; of several on a node the first by name into which it fits.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from domain.quota import model
from domain.quota.simulation import fit
from domain.quota.waiting import line

Amounts = model.Amounts


class Reserve(NamedTuple):
    """One Reservation that has a node."""

    name: str
    node: str
    amounts: Amounts
    """What it reserves."""
    users: Collection[str]
    """The uids of pods that may use it, once they start."""
    owners: Mapping[str, Amounts] = {}
    """What those request that use it already, by uid."""
    restricted: Collection[str] = ()
    """Resources that its owners get from it alone."""
    once: bool = True
    """Whether its first owner uses it up."""
    until: float = math.inf
    """When it expires, seconds since the epoch."""
    over: Mapping[str, Amounts] = {}
    """What pods request, by uid, that run in its place: it takes no owner before they have left."""


class Reserves:
    """All of them, with the owners that they have."""

    def __init__(self, found: Iterable[Reserve] = (), needing: Collection[str] = ()) -> None:
        """`needing`: the uids of pods that may start in a Reservation only."""
        self._by_name = {one.name: one for one in sorted(found)}
        self._owners = {name: dict(one.owners) for name, one in self._by_name.items()}
        self._of = {uid: name for name, uids in self._owners.items() for uid in uids}
        self._over = {name: dict(one.over) for name, one in self._by_name.items()}
        self._needing = frozenset(needing)

    def __bool__(self) -> bool:
        return bool(self._by_name)

    @property
    def next_end(self) -> float:
        """Return when the next one expires; infinite where none does."""
        return min((one.until for one in self._by_name.values()), default=math.inf)

    def expire(self, now: float) -> None:
        """Keep nothing any longer for those that have ended; their owners run on."""
        for name in [name for name, one in self._by_name.items() if one.until <= now]:
            self._forget(name)

    def kept(self, name: str) -> dict[str, int]:
        """Return what one keeps beyond what its owners, or pods in its place, request."""
        left = dict(self._by_name[name].amounts)
        for amounts in (*self._owners[name].values(), *self._over[name].values()):
            for key in left:
                left[key] -= amounts.get(key, 0)
        # As the extender counts: one that has owners or none keeps a place for one more pod.
        return {key: amount for key, amount in {model.PODS: 1, **left}.items() if amount > 0}

    def seen_by(self, table: fit.Table, pod: line.LinePod) -> fit.Table:
        """Return room on nodes as a pod has it: what it may use of Reservations is free for it."""
        if not self:
            return table
        seen = self._beside(table)
        for name in self._chosen(seen, pod).values():
            seen.give_back(self._by_name[name].node, self.kept(name))
        return seen

    def _beside(self, table: fit.Table) -> fit.Table:
        """Return room beside what all of them keep."""
        seen = table.copy()
        for name, one in self._by_name.items():
            seen.take(one.node, self.kept(name))
        return seen

    def _chosen(self, seen: fit.Table, pod: line.LinePod) -> dict[str, str]:
        """Return the Reservation that a pod would use on each node."""
        found: dict[str, str] = {}
        for name, one in self._by_name.items():
            usable = one.node not in found and pod.uid in one.users and not self._over[name]
            if usable and self._fits(seen, pod, name):
                found[one.node] = name
        return found

    def _fits(self, seen: fit.Table, pod: line.LinePod, name: str) -> bool:
        one, kept = self._by_name[name], self.kept(name)
        if any(pod.asks.get(key, 0) > kept.get(key, 0) for key in one.restricted):
            return False
        return seen.takes(one.node, pod.asks, pod.placement, kept)

    def preferred(self, table: fit.Table, pod: line.LinePod) -> str:
        """Return a node where a pod fits into a Reservation; empty where there is none.

        `table` is room beside pods, without what Reservations keep.
        """
        return min(self._chosen(self._beside(table), pod), default="")

    def needs_one(self, uid: str) -> bool:
        """Whether a pod starts in a Reservation only."""
        return uid in self._needing

    def bind(self, table: fit.Table, pod: line.LinePod, node: str) -> None:
        """Count a pod as an owner where it starts, if it fits a Reservation there."""
        name = self._chosen(self._beside(table), pod).get(node, "")
        if not name:
            return
        self._owners[name][pod.uid] = pod.asks
        self._of[pod.uid] = name
        if self._by_name[name].once:
            self._forget(name)

    def leave(self, uid: str) -> None:
        """Give to Reservations what an owner used, or a pod that ran in their place."""
        for running in self._over.values():
            running.pop(uid, None)
        name = self._of.pop(uid, "")
        if name in self._owners:
            del self._owners[name][uid]

    def _forget(self, name: str) -> None:
        del self._by_name[name], self._over[name]
        for uid in self._owners.pop(name):
            self._of.pop(uid, None)
