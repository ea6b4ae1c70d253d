"""How far kube-scheduler is behind with members that have a place, and whether gates are worth it.

To open a gate is one write for each member. While many members have a place and wait for
kube-scheduler, those of a new small gang are all there before the first of them is tried, so that
they need no gate. Nothing here is written or asked: only the clock is read.
"""

from collections.abc import Callable
from typing import Final

from process.runtime import clock as clocks

ARRIVING_SECONDS: Final = 2.5
"""How long after a member has arrived others are expected: the longest back-off."""
_MOST: Final = 1024
"""More of them would be planned long before their turn, and keep their places meanwhile."""
_CROWDED_SECONDS: Final = 10.0
"""How long after a gang found no room new ones wait behind gates: a gate costs kube-scheduler
nothing while they wait, and a pod without one is tried again and again."""


class Backlog:
    """The members that kube-scheduler has not placed yet, of all plans in force."""

    def __init__(self, clock: clocks.Clock, begins: int) -> None:
        """Let a backlog begin with so many members, never with 0; it lasts until a fourth is left.

        Every plan begins with all of its members, so fewer are left for moments only.
        """
        self._clock, self._begins = clock, begins
        self._members: dict[str, int] = {}
        """By group."""
        self._ungated: dict[str, int] = {}
        """Groups with members that nothing holds back from kube-scheduler, by their priority."""
        self._arrived_at = self._refused_at = -float("inf")
        self.lasts = False
        """Whether there is one, as it was found last."""
        self.followers: list[Callable[[], None]] = []
        """Called when it begins and ends."""

    def __len__(self) -> int:
        """Return how many members wait."""
        return sum(self._members.values())

    def is_full(self, priority: int) -> bool:
        """Whether so many members wait, of gangs without gates, that no further one is planned.

        kube-scheduler tries pods of a higher priority before all of these.
        """
        ahead = (group for group, other in self._ungated.items() if other >= priority)
        return sum(self._members[group] for group in ahead) >= _MOST

    @property
    def are_arriving(self) -> bool:
        """Whether a member of any plan has arrived lately."""
        return self._clock.monotonic() - self._arrived_at < ARRIVING_SECONDS

    def wait(self, group: str, members: int, *, ungated: int | None = None) -> None:
        """Take in how many members of a plan wait; `ungated`: their priority, without gates."""
        self._members[group] = members
        if ungated is not None:
            self._ungated[group] = ungated

    def forget(self, group: str) -> None:
        """Take in that a plan has ended."""
        self._members.pop(group, None)
        self._ungated.pop(group, None)

    def arrived(self) -> None:
        """Take in that kube-scheduler has placed members."""
        self._arrived_at = self._clock.monotonic()

    def refused(self, *, again: bool) -> None:
        """Take in that a gang found no room; one that had failed before says nothing of others."""
        if not again:
            self._refused_at = self._clock.monotonic()

    def look(self, *, enforced: bool) -> None:
        """Find whether there is a backlog; `enforced`: whether plans count at all."""
        is_crowded = self._clock.monotonic() - self._refused_at < _CROWDED_SECONDS
        least = self._begins // 4 if self.lasts else self._begins
        wanted = enforced and self._begins > 0 and self.are_arriving and not is_crowded
        lasts = wanted and len(self) >= max(1, least)
        if lasts != self.lasts:
            self.lasts = lasts
            for follower in self.followers:
                follower()
