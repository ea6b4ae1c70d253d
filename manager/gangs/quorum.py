"""Quorum of a gang after placement: whether it has its minimum of pods, and since when not. Pure.

A gang counts as complete once as many of its pods had a node, or had succeeded, as it needs at
least. From then on a gang below its minimum is a loss. A gang that leaves as a whole, because its
job was deleted or has finished, is none.
"""

import dataclasses
from collections.abc import Iterable
from typing import Final, NamedTuple

from manager.gangs import objects

SETTLE_SECONDS: Final = 1.0
"""How long a gang has to be below its minimum before that is reported."""
GRACE_SECONDS: Final = 30.0
"""The same where nothing was seen of its time before: bindings may be under way."""
MOST_ENDED: Final = 4096
"""Pods of one gang whose success is remembered after they are gone."""


class Standing(NamedTuple):
    """How many pods of a gang count towards its minimum."""

    living: int
    """Pods with a node that have neither ended nor are being deleted."""
    succeeded: int
    minimum: int
    """0: the gang says nothing that can be read."""

    @property
    def met(self) -> bool:
        """Whether it has its minimum."""
        return 0 < self.minimum <= self.living + self.succeeded

    @property
    def missing(self) -> int:
        """Return how many pods it lacks."""
        return max(0, self.minimum - self.living - self.succeeded)


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of one gang; moments are seconds of a monotonic clock."""

    minimum: int = 0
    complete: bool = False
    """Whether it has had its minimum."""
    lost_at: float | None = None
    """Since when it is below its minimum."""
    settles_at: float = 0.0
    """From when on that counts."""
    left_at: float | None = None
    """When it fell below its minimum last, also where it has recovered since."""
    ended: frozenset[str] = frozenset()
    """Uids of pods that have succeeded, also of those that are gone."""
    past: frozenset[str] = frozenset()
    """Uids of pods that are left of a time in which the gang has finished its work."""

    def lost(self, now: float) -> bool:
        """Whether it is below its minimum for long enough to say so."""
        return self.lost_at is not None and now >= self.settles_at


def living(members: Iterable[objects.GangPod]) -> tuple[objects.GangPod, ...]:
    """Return the pods that hold a place on a node, in the order of their names."""
    return tuple(sorted((one for one in members if one.living), key=lambda one: one.key))


def standing(observed: objects.Observed, memory: Memory | None = None) -> Standing:
    """Return how many pods of a gang count; a success counts also when its pod is gone."""
    ended = _succeeded(observed)
    if memory is not None:
        ended = (ended | memory.ended) - memory.past
    gang = observed.gang
    minimum = gang.min_member if gang.initialised else 0
    return Standing(sum(one.living for one in observed.members), len(ended), minimum)


def followed(memory: Memory | None, observed: objects.Observed, now: float) -> Memory:
    """Return what is remembered after a look at a gang."""
    found = standing(observed, memory)
    ended, past = _ended(memory, observed), _past(memory, observed)
    if 0 < found.minimum <= found.succeeded:
        # It has done its work; its pods are over, and the next ones are a gang of their own.
        return Memory(found.minimum, past=_succeeded(observed))
    if memory is None:
        return _first(found, ended, observed.was_complete, now)
    if memory.minimum != found.minimum:
        # Another minimum takes no pod away.
        return Memory(found.minimum, found.met, ended=ended, past=past)
    if found.met:
        return Memory(found.minimum, True, left_at=memory.left_at, ended=ended, past=past)
    if found.living == 0:
        # It has gone as a whole; what comes next is a gang that has yet to gather.
        return Memory(found.minimum, ended=_succeeded(observed) - past, past=past)
    if memory.lost_at is not None or not memory.complete:
        return dataclasses.replace(memory, ended=ended, past=past)
    return Memory(found.minimum, True, now, now + SETTLE_SECONDS, now, ended, past)


def _first(found: Standing, ended: frozenset[str], was_complete: bool, now: float) -> Memory:
    if found.met or not (was_complete and found.living and found.minimum):
        return Memory(found.minimum, found.met, ended=ended)
    return Memory(found.minimum, True, now, now + GRACE_SECONDS, ended=ended)


def _succeeded(observed: objects.Observed) -> frozenset[str]:
    return frozenset(one.uid for one in observed.members if one.succeeded)


def _ended(memory: Memory | None, observed: objects.Observed) -> frozenset[str]:
    before = frozenset[str]() if memory is None else memory.ended
    past = frozenset[str]() if memory is None else memory.past
    new = sorted(_succeeded(observed) - before - past)
    return before.union(new[: MOST_ENDED - len(before)])


def _past(memory: Memory | None, observed: objects.Observed) -> frozenset[str]:
    return frozenset[str]() if memory is None else memory.past & _succeeded(observed)


def sentence(found: Standing) -> str:
    """Say how far a gang is below its minimum."""
    succeeded = f", {found.succeeded} have succeeded" if found.succeeded else ""
    return f"{found.living} of at least {found.minimum} pods have a node{succeeded}"
