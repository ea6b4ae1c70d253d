"""The plans in force: who has a place where, how far each member has come, and what went wrong.

Pure values; the controller keeps them, and asks once a second and after every change.
"""

import dataclasses
import enum
import math
from collections.abc import Callable, Container, Hashable, Mapping

import msgspec

from domain import wording
from domain.gangs import declaration, plan_record
from extender.gangs.planning import planner
from extender.state import allocations, records


class Fate(enum.Enum):
    """How far a member of a plan has come."""

    WAITING = "waiting"
    """Its place is kept."""
    ASSUMED = "assumed"
    """It is being bound, or waits at Permit."""
    BOUND = "bound"
    GONE = "gone"
    """It was deleted, or has ended."""
    LOST = "lost"
    """Its place is no longer kept."""


@dataclasses.dataclass(frozen=True, slots=True)
class Slot:
    """The place of one member."""

    pod: records.PodRecord
    """As it was when it was planned."""
    gang: str
    node: str
    granted: allocations.Allocations = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """One plan of a gang group, from the claims until every member is bound."""

    group: str
    generation: str
    began: float
    until: float
    slots: Mapping[str, Slot]
    """By uid."""
    needed: Mapping[str, int]
    """By gang: how many of its members must come through."""
    probes: tuple[str, ...] = ()
    """Uids of the members whose gates are opened first, until kube-scheduler has placed them."""
    completes: str = ""
    """The generation of members that are bound and that an interruption left without these."""
    bound: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The nodes of those members, by uid."""
    opened: bool = False
    """Whether the gates of all members are open, or being opened."""
    refusing: int | None = None
    """How many nodes refuse a member that kube-scheduler takes for fit; None: its nodes are fixed,
    or that is not known."""
    nominated: frozenset[str] = frozenset()
    """Uids of the members that are nominated before their gates are opened."""
    unwritten: frozenset[str] = frozenset()
    """Uids of the members on which nothing is written before they are bound."""
    members: tuple[str, ...] = ()
    """As records list them."""
    ends_at: float = math.inf
    """As `until`, on the monotonic clock: the wall clock may be set back meanwhile."""


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """What was found of a round."""

    fates: Mapping[str, Fate]
    problem: str = ""
    """Why the plan has to be given up."""
    unschedulable: str = ""
    """Uid of the member that kube-scheduler does not place on the node kept for it."""

    def count(self, *fates: Fate) -> int:
        """Return how many members have come so far."""
        return sum(one in fates for one in self.fates.values())

    @property
    def done(self) -> bool:
        """Whether no member waits any more."""
        return all(one in (Fate.BOUND, Fate.GONE) for one in self.fates.values())


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What a look depends on."""

    pod: Callable[[str], records.PodRecord | None]
    """Finds a pod by namespace/name."""
    assumed: Callable[[str], bool]
    """Whether a pod, by uid, is assumed on a node."""
    kept: Callable[[str], str]
    """The node that is kept for a pod, by uid; empty where none is."""
    known: Callable[[str], bool]
    """Whether there is a node of this name."""
    now: float
    excused: Callable[[Slot], bool] = lambda _: False
    """Whether a member is tried again that kube-scheduler did not place."""
    elapsed: float = 0.0
    """On the monotonic clock."""


def look(one: Round, facts: Facts) -> Look:
    """Say how far the members have come, and whether the plan still holds."""
    fates = {uid: _fate(uid, slot, facts) for uid, slot in one.slots.items()}
    found = Look(fates)
    if found.done:
        return found
    for uid, slot in one.slots.items():
        if fates[uid] is Fate.LOST:
            gone = "" if facts.known(slot.node) else f": node {slot.node} is gone"
            return Look(fates, f"the place of {slot.pod.key} is no longer kept{gone}")
        if fates[uid] is not Fate.WAITING:
            continue
        if not facts.known(slot.node):
            return Look(fates, f"node {slot.node}, kept for {slot.pod.key}, is gone")
        said = _said(slot, facts)
        if said and not facts.excused(slot):
            return Look(fates, f"kube-scheduler does not place {slot.pod.key}: {said}", uid)
    if short := _short(one, fates):
        return Look(fates, short)
    waits = next((uid for uid, fate in fates.items() if fate is Fate.WAITING), "")
    if waits and (facts.now >= one.until or facts.elapsed >= one.ends_at):
        return Look(fates, f"{one.slots[waits].pod.key} did not arrive at its node in time")
    # Members that are being bound come or lose their places; Permit holds none for longer.
    return found


def _fate(uid: str, slot: Slot, facts: Facts) -> Fate:
    pod = facts.pod(slot.pod.key)
    if pod is None or pod.uid != uid or (pod.leaves_at >= 0 and not pod.node):
        return Fate.GONE
    if pod.node:
        return Fate.BOUND
    if facts.assumed(uid):
        return Fate.ASSUMED
    return Fate.WAITING if facts.kept(uid) == slot.node else Fate.LOST


def _said(slot: Slot, facts: Facts) -> str:
    """Return why kube-scheduler found no node, if it has said so since the gate was opened."""
    pod = facts.pod(slot.pod.key)
    if pod is None or pod.gang is None or pod.gang.gated:
        return ""
    before = slot.pod.gang.unschedulable if slot.pod.gang is not None else ""
    return pod.gang.unschedulable if pod.gang.unschedulable != before else ""


def _short(one: Round, fates: Mapping[str, Fate]) -> str:
    """Return which gang has lost more members than it can do without."""
    for gang, needed in one.needed.items():
        there = [uid for uid, slot in one.slots.items() if slot.gang == gang]
        left = sum(fates[uid] is not Fate.GONE for uid in there)
        if left < min(needed, len(there)):
            are = wording.form(left, "is", "are")
            return f"gang {gang} has lost members: {left} of {needed} that it needs {are} left"
    return ""


def of_plan(
    plan: planner.Plan,
    needed: Mapping[str, int],
    names: tuple[str, str],
    times: tuple[float, float],
) -> Round:
    """Return the round of a plan; `names` are group and generation, `times` begin and end."""
    slots = {one.pod.uid: Slot(one.pod, one.gang, one.node, one.granted) for one in plan.placements}
    return Round(*names, *times, slots, dict(needed), probes_of(slots), refusing=plan.refusing)


def probes_of(slots: Mapping[str, Slot]) -> tuple[str, ...]:
    """Return one member of each sort of which kube-scheduler alone knows where it may be placed."""
    seen: dict[object, str] = {}
    for uid, slot in sorted(slots.items(), key=lambda item: item[1].pod.key):
        facts = slot.pod.gang
        if facts is not None and facts.probed and facts.gated:
            seen.setdefault((facts.placement, slot.pod.requirements), uid)
    return tuple(seen.values()) if len(slots) > len(seen) else ()


def arrived(one: Round, found: Look) -> bool:
    """Whether kube-scheduler has placed all members whose gates were opened first."""
    return all(found.fates.get(uid) in (Fate.ASSUMED, Fate.BOUND) for uid in one.probes)


# -- where kube-scheduler looks at a part of all nodes --------------------------------------------


def nominated(one: Round, looks_at: int) -> frozenset[str]:
    """Return the members whose nodes kube-scheduler has to be told, as it looks at so many at most.

    Where fewer nodes than that refuse a member, it finds one whichever nodes are looked at: a place
    of another member that is like it, or a free one.
    """
    if one.refusing is None or one.refusing >= looks_at:
        return frozenset(one.slots)
    return frozenset(uid for uid, slot in one.slots.items() if not may_move(slot))


def unwritten(one: Round) -> frozenset[str]:
    """Return the members that kube-scheduler tries by itself, at whatever place they have.

    They have no gate, no earlier plan, and were not refused by kube-scheduler itself; those that
    filter has refused are woken as any such pod. Their Bindings record the plan, which has to name
    all members then, as nothing else does: so it is a small one. A native group is placed in one
    go of kube-scheduler, for which it is woken by the records.
    """
    if len(one.slots) > plan_record.MOST_LISTED:
        return frozenset()
    return frozenset(
        uid for uid, slot in one.slots.items() if uid not in one.nominated and _is_untouched(slot)
    )


def _is_untouched(slot: Slot) -> bool:
    facts = slot.pod.gang
    if facts is None or slot.gang.endswith(declaration.NATIVE):
        return False
    return not (facts.gated or facts.held or facts.plan or facts.unschedulable)


def with_members(one: Round) -> Round:
    """Return a plan that knows how records list its members.

    Those that are bound are left out where a record lists a part only, which is to tell of others.
    """
    every = one.slots.keys() | one.bound.keys()
    uids = one.slots if len(every) > plan_record.MOST_LISTED else every
    return dataclasses.replace(one, members=plan_record.digests(uids))


def gate_record(one: Round, uid: str, granted: dict[str, str]) -> plan_record.Record:
    """Return what is written on a member as its gate is opened."""
    return msgspec.structs.replace(
        binding_record(one),
        node=one.slots[uid].node,
        granted=granted,
        members=plan_record.others(one.members, uid),
    )


def binding_record(one: Round) -> plan_record.Record:
    """Return what is noted of a plan on members, without a node; it lists all of them."""
    group, count = plan_record.group_text(one.group), len(one.bound.keys() | one.slots.keys())
    return plan_record.Record(
        group,
        one.generation,
        "",
        one.until,
        completes=one.completes,
        members=one.members,
        count=count,
    )


def may_move(slot: Slot) -> bool:
    """Whether a member may be placed on another node than the planned one.

    kube-scheduler alone knows which nodes take a pod with terms about other pods, and a rank in the
    network belongs to its node.
    """
    facts = slot.pod.gang
    return facts is not None and not facts.probed and facts.index < 0


def partner(one: Round, uid: str, nodes: Container[str], waits: Callable[[str, Slot], bool]) -> str:
    """Return a member that is like this one and has its place on one of these nodes, or "".

    `waits` says whether it may be moved. Those whose gates are opened last come first: what is
    written on them is their new place.
    """
    sort = _sort(one.slots[uid])
    for other, slot in reversed(list(one.slots.items())):
        is_there = other != uid and slot.node in nodes and may_move(slot)
        if is_there and _sort(slot) == sort and waits(other, slot):
            return other
    return ""


def moved(one: Round, places: Mapping[str, tuple[str, allocations.Allocations]]) -> Round:
    """Return a plan in which some members have other places, each with what it is granted there."""
    slots = {
        uid: Slot(one.slots[uid].pod, one.slots[uid].gang, node, granted)
        for uid, (node, granted) in places.items()
    }
    return dataclasses.replace(one, slots={**one.slots, **slots})


def _sort(slot: Slot) -> Hashable:
    facts = slot.pod.gang
    return slot.gang, slot.pod.requirements, facts.placement if facts is not None else None
