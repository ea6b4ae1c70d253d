"""Members find their places where kube-scheduler looks, which may be at a part of all nodes.

A plan names a node for each member, and kube-scheduler looks for a pod at nodes that it chooses in
rotation. Of members that are alike one may have the place of another, and where there is room
besides also a free one. That spares the write that nominates a member. A group that keeps together
in the network is not moved.
"""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Final

from extender.gangs import in_force, rounds
from extender.gangs.planning import planner

_BINDING_SECONDS: Final = 5.0
"""How long after a member was offered nodes its bind call may come, which names its place."""


class Exchanges:
    """Gives a member another place when it is offered nodes without its own."""

    def __init__(self, parts: in_force.Parts, plans: in_force.PlansInForce) -> None:
        self._parts, self._plans = parts, plans
        self._offered: dict[str, float] = {}
        """By uid: when kube-scheduler looked for a node last, on the monotonic clock; in order."""

    def offered(self, uid: str, nodes: Collection[str], *, is_bound_by_volumes: bool) -> str:
        """Take in that kube-scheduler looks at these nodes for a member; return its place.

        `is_bound_by_volumes`: it has volumes of claims, by which kube-scheduler alone knows where
        it may be placed. Then all members of its plan are nominated.
        """
        one = self._plans.of(uid)
        if one is None:
            return ""
        looks_at = self._parts.sampling.looks_at()
        if looks_at is not None and one.refusing is not None and one.refusing < looks_at:
            self._find(one, uid, nodes, is_bound_by_volumes)
        return self._plans.by_group[one.group].slots[uid].node

    def _find(
        self, one: rounds.Round, uid: str, nodes: Collection[str], is_bound_by_volumes: bool
    ) -> None:
        """Let a member have one of the nodes at which kube-scheduler looks."""
        if is_bound_by_volumes:
            every = frozenset(one.slots)
            self._plans.change(dataclasses.replace(one, nominated=every, refusing=None))
            return
        self._note(uid)
        slot, looked_at = one.slots[uid], frozenset(nodes)
        if slot.node in looked_at or not rounds.may_move(slot) or not self._is_kept(uid, slot):
            return
        other = rounds.partner(one, uid, looked_at, self._waits)
        if other:
            theirs = one.slots[other]
            self._move(one, {uid: _at(slot, theirs), other: _at(theirs, slot)})
        else:
            self._place_anew(one, uid, nodes)

    def _note(self, uid: str) -> None:
        """Remember when a member was offered nodes, and forget those of long ago."""
        now = self._parts.clock.monotonic()
        self._offered.pop(uid, None)
        self._offered[uid] = now
        while now - self._offered[first := next(iter(self._offered))] > _BINDING_SECONDS:
            del self._offered[first]

    def _is_kept(self, uid: str, slot: rounds.Slot) -> bool:
        """Whether a place is kept for a member that is neither assumed nor bound."""
        books = self._parts.books
        is_placed = uid in books.assumptions or books.cluster.claim(uid) is not None
        return not is_placed and self._plans.holding.kept(uid) == slot.node

    def _waits(self, uid: str, slot: rounds.Slot) -> bool:
        """Whether a member may get another place: nothing is under way to its present one.

        It was not refused for want of that, it is not being bound there, and it is not being
        written that it is there.
        """
        if uid in self._plans.opening or uid in self._offered:
            return False
        return self._parts.sampling.refused(slot.pod.key) is None and self._is_kept(uid, slot)

    def _place_anew(self, one: rounds.Round, uid: str, nodes: Collection[str]) -> None:
        """Let a member have a free place; what it has now is not in its own way."""
        slot, holding, now = one.slots[uid], self._plans.holding, self._parts.clock.now()
        found = holding.best(slot.pod, slot.gang, nodes, now)
        if found is not None:
            self._move(one, {uid: found})

    def _move(self, one: rounds.Round, places: Mapping[str, planner.Placement]) -> None:
        self._plans.holding.move(places)
        self._plans.change(
            rounds.moved(one, {uid: (found.node, found.granted) for uid, found in places.items()})
        )
        self._plans.holding.tell_moved(one.group, {uid: at.node for uid, at in places.items()})
        self._parts.notices.moved(len(places))


def _at(member: rounds.Slot, place: rounds.Slot) -> planner.Placement:
    return planner.Placement(member.pod, member.gang, place.node, place.granted)
