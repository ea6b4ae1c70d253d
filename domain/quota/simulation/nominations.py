"""Room that is kept for pods: by Reservations, and where victims have left for them. Pure.

Nominations count as they do for kube-scheduler and the extender: against pods of the same or a
lower priority. A pod of higher priority may take what was freed for another one.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from domain.quota.simulation import fit, reserved
from domain.quota.tree import forest as forests
from domain.quota.waiting import line

KEPT_SECONDS: Final = 30.0
"""How long the extender and the manager keep what was freed for a pod that is not placed."""


class Nomination(NamedTuple):
    """Where a pod is expected."""

    node: str
    until: float
    pod: line.LinePod


class Nominations:
    """All of them, by uid."""

    def __init__(self, reserves: reserved.Reserves | None = None) -> None:
        self._by_uid: dict[str, Nomination] = {}
        self.reserves = reserves if reserves is not None else reserved.Reserves()

    @property
    def nodes(self) -> Mapping[str, str]:
        """Return the node of each nominated pod, by uid."""
        return {uid: one.node for uid, one in self._by_uid.items()}

    @property
    def next_end(self) -> float:
        """Return when the next one ends or a Reservation expires; infinite where none does."""
        ends = min((one.until for one in self._by_uid.values()), default=math.inf)
        return min(ends, self.reserves.next_end)

    def node_of(self, uid: str) -> str:
        """Return where a pod is expected; empty: nowhere."""
        found = self._by_uid.get(uid)
        return found.node if found is not None else ""

    def keep(self, pod: line.LinePod, node: str, now: float) -> None:
        """Keep room on a node for a pod."""
        self._by_uid[pod.uid] = Nomination(node, now + KEPT_SECONDS, pod)

    def drop(self, uid: str) -> None:
        """Keep nothing for a pod any longer."""
        self._by_uid.pop(uid, None)

    def over(self, now: float) -> list[str]:
        """Return the uids of those that have ended; Reservations that have expired end as well."""
        self.reserves.expire(now)
        return [uid for uid, one in self._by_uid.items() if one.until <= now]

    def everywhere(self, forest: forests.Forest) -> forests.Forest:
        """Return the quotas with all of these pods counted as placed."""
        return _counted(forest, self._by_uid.values())

    def promised(self) -> dict[str, dict[str, int]]:
        """Return what these pods request, by node."""
        found: dict[str, dict[str, int]] = {}
        for one in self._by_uid.values():
            amounts = found.setdefault(one.node, {})
            for key, amount in one.pod.asks.items():
                amounts[key] = amounts.get(key, 0) + amount
        return found

    def forest_for(self, forest: forests.Forest, pod: line.LinePod) -> forests.Forest:
        """Return the quotas as a pod sees them."""
        return _counted(forest, self._against(pod))

    def table_for(self, table: fit.Table, pod: line.LinePod) -> fit.Table:
        """Return room on nodes as a pod has it beside nominations and Reservations."""
        return self.reserves.seen_by(self.in_tree(table, pod), pod)

    def place(self, table: fit.Table, pod: line.LinePod) -> str:
        """Return the node that a pod gets: first where it is expected, then in a Reservation."""
        beside = self.in_tree(table, pod)
        seen, expected = self.reserves.seen_by(beside, pod), self.node_of(pod.uid)
        if expected and seen.takes(expected, pod.asks, pod.placement):
            return expected
        reserving = self.reserves.preferred(beside, pod)
        if reserving or self.reserves.needs_one(pod.uid):
            return reserving
        return seen.place(pod.asks, pod.placement)

    def in_tree(self, table: fit.Table, pod: line.LinePod) -> fit.Table:
        """Return room on nodes as kube-scheduler sees it, which knows no Reservations."""
        kept = list(self._against(pod))
        if not kept:
            return table
        seen = table.copy()
        for one in kept:
            seen.take(one.node, one.pod.asks)
        return seen

    def _against(self, pod: line.LinePod) -> Iterator[Nomination]:
        for uid, one in self._by_uid.items():
            if uid != pod.uid and one.pod.priority >= pod.priority:
                yield one


def _counted(forest: forests.Forest, kept: Iterable[Nomination]) -> forests.Forest:
    for one in kept:
        used = msgspec.structs.replace(one.pod.use, assigned=True)
        forest = forest.with_pod(one.pod.use, used)
    return forest
