"""Quorum of a gang after placement: whether it has its minimum of pods, and since when not. Pure.

A gang counts as complete once as many of its pods had a node, or had succeeded, as it needs at
least. From then on a gang below its minimum is a loss. A gang that leaves as a whole, because its
job was deleted or has finished, is none.

Looks at a gang are apart: it may be complete and lose a pod again between two of them, or leave as
a whole and come anew. What its pods say of the plan that bound them tells of that.
"""

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from domain import wording
from domain.gangs import declaration
from manager.gangs import objects

SETTLE_SECONDS: Final = 1.0
"""How long a gang has to be below its minimum before that is reported."""
GRACE_SECONDS: Final = 30.0
"""The same where it was not seen complete: bindings may be under way. From the last one on."""
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
    placed: frozenset[str] = frozenset()
    """Uids of the pods that held a place at the last look."""
    plans: frozenset[str] = frozenset()
    """By which plans they were bound, where that was not done one by one."""
    spent: frozenset[str] = frozenset()
    """Those of them that prove nothing: they are of another minimum, or of work that is done."""
    arrived: int = 0
    """Pods that plans have bound, where it was not seen complete."""

    @property
    def unsure(self) -> bool:
        """Whether it is not known yet if it was complete: more bindings may follow."""
        return self.lost_at is not None and not self.complete

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
    plans = _plans(observed)
    placed = frozenset(one.uid for one in observed.members if one.living)
    if memory is not None and _begins_anew(memory, placed, plans):
        memory = Memory(memory.minimum, ended=_succeeded(observed) - memory.past, past=memory.past)
    found, kept = standing(observed, memory), frozenset(plans)
    looked = Memory(
        found.minimum,
        ended=_ended(memory, observed),
        past=_past(memory, observed),
        placed=placed,
        plans=kept,
        spent=kept & memory.spent if memory is not None else frozenset(),
    )
    if 0 < found.minimum <= found.succeeded:
        # It has done its work; its pods are over, and the next ones are a gang of their own.
        return Memory(
            found.minimum,
            complete=found.living >= found.minimum,
            past=_succeeded(observed),
            placed=placed,
            plans=kept,
            spent=kept,
        )
    if memory is not None and memory.minimum != found.minimum:
        # Another minimum takes no pod away.
        return dataclasses.replace(looked, complete=found.met, spent=kept)
    if found.met:
        left_at = None if memory is None else memory.left_at
        return dataclasses.replace(looked, complete=True, left_at=left_at)
    if found.living == 0:
        # It has gone as a whole; what comes next is a gang that has yet to gather.
        return dataclasses.replace(looked, ended=_succeeded(observed) - looked.past)
    if memory is None or not memory.complete:
        return _judged(looked, memory, observed, now)
    if memory.lost_at is None:
        return _lost(looked, now)
    return dataclasses.replace(
        looked,
        complete=True,
        lost_at=memory.lost_at,
        settles_at=memory.settles_at,
        left_at=memory.left_at,
    )


def _begins_anew(memory: Memory, placed: frozenset[str], plans: Mapping[str, int]) -> bool:
    """Whether all pods had left before others were bound: at the last look, or since then."""
    is_new = not memory.placed or not memory.plans.issuperset(plans)
    return is_new and memory.placed.isdisjoint(placed)


def _lost(looked: Memory, now: float) -> Memory:
    return dataclasses.replace(
        looked, complete=True, lost_at=now, settles_at=now + SETTLE_SECONDS, left_at=now
    )


def _judged(
    looked: Memory, memory: Memory | None, observed: objects.Observed, now: float
) -> Memory:
    """Return what is remembered of a gang below its minimum that was not seen complete.

    The pods of a plan are bound once all of them can be: as many of one plan as the minimum show
    that the gang had it, where no other one waits. Else they may be the first as well as the last.
    """
    told = {plan: count for plan, count in _plans(observed).items() if plan not in looked.spent}
    waits = any(not one.node and not one.deleting for one in observed.members)
    whole = any(plan and 0 < looked.minimum <= count for plan, count in told.items())
    if whole and not waits:
        return _lost(looked, now)
    # A gang that is not strict may rest in part without ever having been complete.
    may_rest = waits and observed.gang.mode is not declaration.Mode.STRICT
    hints = (memory is None and observed.had_quorum) or (bool(told) and not may_rest)
    lost_at = None if memory is None else memory.lost_at
    if lost_at is None and not (hints and looked.minimum):
        return looked
    arrived = sum(told.values())
    goes_on = memory is not None and lost_at is not None and arrived <= memory.arrived
    settles_at = memory.settles_at if memory is not None and goes_on else now + GRACE_SECONDS
    is_over = now >= settles_at
    return dataclasses.replace(
        looked,
        complete=is_over,
        lost_at=now if lost_at is None else lost_at,
        settles_at=settles_at,
        arrived=0 if is_over else arrived,
    )


def _plans(observed: objects.Observed) -> Mapping[str, int]:
    """Return how many pods each plan has bound, of the plans of pods that still hold a place.

    Also those count that have ended or are being deleted. Where the record of a plan is missing,
    the plan has no name.
    """
    placed = [one for one in observed.members if one.gathered and one.node]
    living = {one.plan for one in placed if one.living}
    return collections.Counter(one.plan for one in placed if one.plan in living)


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
    have = wording.count(found.succeeded, "has", "have")
    succeeded = f", {have} succeeded" if found.succeeded else ""
    pods = f"{found.living} of at least {wording.count(found.minimum, 'pod', 'pods')}"
    return f"{pods} {wording.form(found.living, 'has', 'have')} a node{succeeded}"
