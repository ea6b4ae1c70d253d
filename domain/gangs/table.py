"""All gangs of a cluster with their members: a value that is never changed, and follows the watch.

Every change returns another table and shares what it does not touch, so that one event of a pod
costs some microseconds whatever the number of gangs. Tables are equal that hold the same, in
whatever order it came; so the inverse of a change leads back.
"""

import bisect
import enum
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from domain import persistent
from domain.gangs import declaration


class State(enum.IntEnum):
    """How far a member has come; of several facts about one pod the greatest counts."""

    WAITING = 0
    """The watch shows it without a node."""
    NOMINATED = 1
    """A plan keeps capacity of a node for it."""
    ASSUMED = 2
    """It is being bound, or held at Permit."""
    BOUND = 3
    """The watch shows it on its node."""


class Member(msgspec.Struct, frozen=True, cache_hash=True):
    """One fact about a pod that is a member of a gang: it waits, or a claim holds capacity for it.

    A pod that waits and for which a plan keeps capacity has two of them.
    """

    gang: declaration.Gang
    """As the pod itself declares it."""
    uid: str
    key: str
    """namespace/name of the pod."""
    node: str = ""
    state: State = State.WAITING
    priority: int = 0
    created: float = -1.0
    """creationTimestamp; negative: not known."""

    @property
    def age(self) -> tuple[bool, float, str, str]:
        """Order of members: those first that declare a gang by themselves, then the oldest."""
        declares = self.gang.initialised and not self.gang.source.needs_object
        return not declares, self.created, self.key, self.uid


class Counts(msgspec.Struct, frozen=True):
    """Members of a gang by how far they have come."""

    waiting: int = 0
    nominated: int = 0
    assumed: int = 0
    bound: int = 0

    @property
    def children(self) -> int:
        """Return how many members there are."""
        return self.waiting + self.nominated + self.assumed + self.bound

    @property
    def pending(self) -> int:
        """Return how many members have no node: neither bound nor about to be."""
        return self.waiting + self.nominated

    def changed(self, before: Member | None, after: Member | None) -> "Counts":
        """Return the counts after a member came, changed or went."""
        figures = [self.waiting, self.nominated, self.assumed, self.bound]
        if before is not None:
            figures[before.state] -= 1
        if after is not None:
            figures[after.state] += 1
        return Counts(*figures)


Facts = Mapping[Member, int]
"""What is known about one pod, each with how often."""
_NOTHING: Final[Facts] = MappingProxyType({})
_NOBODY: Final[persistent.Map[str, Facts]] = persistent.Map()


class Entry(msgspec.Struct, frozen=True):
    """One gang: its settings, its members, and how many of them have come how far."""

    gang: declaration.Gang
    """Of its PodGroup where there is one, else of its oldest member that declares any."""
    counts: Counts = Counts()
    facts: persistent.Map[str, Facts] = _NOBODY
    """By uid."""
    oldest: tuple[tuple[bool, float, str, str], ...] = ()
    """`Member.age` of all members, sorted."""
    pod_group: declaration.Gang | None = None
    """As its PodGroup declares it."""
    begun: bool = False
    """Whether the status of its PodGroup says that members were bound once."""

    @property
    def ready(self) -> bool:
        """Whether it is initialised and has as many members as it needs."""
        return self.gang.initialised and self.counts.children >= self.gang.min_member

    @property
    def ever_bound(self) -> bool:
        """Whether any member is bound, or was as far as the PodGroup remembers."""
        return self.begun or self.counts.bound > 0

    @property
    def is_placed(self) -> bool:
        """Whether as many members are bound, or about to be, as it needs."""
        once = self.gang.match_policy is declaration.MatchPolicy.ONCE_SATISFIED
        held = self.counts.assumed + self.counts.bound
        return held >= self.gang.min_member or (once and self.ever_bound)

    @property
    def members(self) -> Iterator[Member]:
        """Yield its members as far as they have come, in no order."""
        return (shown(facts) for facts in self.facts.values())

    @property
    def placed(self) -> tuple[tuple[str, str], ...]:
        """Return uid and node of the members that are bound or about to be."""
        return tuple((one.uid, one.node) for one in self.members if one.state >= State.ASSUMED)

    def member(self, uid: str) -> Member | None:
        """Return a member as far as it has come."""
        facts = self.facts.get(uid)
        return shown(facts) if facts is not None else None

    def empty(self) -> bool:
        """Whether there is neither a member nor a PodGroup."""
        return self.pod_group is None and not self.oldest

    def with_fact(self, fact: Member, sign: int) -> "Entry":
        """Return the entry with one more (1) or one less (-1) such fact."""
        facts = dict(self.facts.get(fact.uid, _NOTHING))
        before = shown(facts) if facts else None
        facts[fact] = (facts.get(fact, 0) if sign > 0 else facts[fact]) + sign
        if not facts[fact]:
            del facts[fact]
        after = shown(facts) if facts else None
        is_alike = _is_alike(before, after)
        found = Entry(
            self.gang,
            self.counts.changed(before, after),
            self.facts.replaced(fact.uid, facts or None),
            self.oldest if is_alike else _reordered(self.oldest, before, after),
            self.pod_group,
            self.begun,
        )
        return found if is_alike else found.settled()

    def settled(self) -> "Entry":
        """Return the entry with the settings that count."""
        found = self.pod_group or self._declared()
        return self if found == self.gang else msgspec.structs.replace(self, gang=found)

    def _declared(self) -> declaration.Gang:
        if not self.oldest:
            return self.gang
        member = self.member(self.oldest[0][-1])
        assert member is not None
        gang = member.gang
        if gang.initialised and gang.source.needs_object:
            return declaration.unknown(gang.namespace, gang.name, gang.source)
        return gang


class Group(msgspec.Struct, frozen=True):
    """A gang group: gangs that start together, because each of them lists all of them."""

    id: str
    """Ids of all listed gangs, sorted and joined by commas."""
    gangs: tuple[Entry, ...]
    """Those that belong to it, sorted by id."""
    missing: tuple[str, ...] = ()
    """Ids of listed gangs that do not exist, are not initialised or lack members, and of those
    that start without it and are not placed yet."""
    elsewhere: tuple[str, ...] = ()
    """Ids of listed gangs that list others: they are waited for, and not placed with it."""

    @property
    def gathered(self) -> bool:
        """Whether every listed gang is ready, which is the basic check of PreEnqueue."""
        return not self.missing

    @property
    def pending(self) -> tuple[Member, ...]:
        """Return its members that have no node, by name."""
        found = [
            member
            for entry in self.gangs
            for member in entry.members
            if member.state <= State.NOMINATED
        ]
        return tuple(sorted(found, key=lambda one: (one.key, one.uid)))

    @property
    def ever_bound(self) -> bool:
        """Whether any member of the group is bound or was."""
        return any(entry.ever_bound for entry in self.gangs)


_NO_ENTRIES: Final[persistent.Map[str, Entry]] = persistent.Map()
_NO_GROUPS: Final[persistent.Map[tuple[str, ...], tuple[str, ...]]] = persistent.Map()
_NONE_WAIT: Final[persistent.Map[tuple[str, ...], bool]] = persistent.Map()


class Table(msgspec.Struct, frozen=True):
    """All gangs, their members, and the groups that they form."""

    entries: persistent.Map[str, Entry] = _NO_ENTRIES
    """By id of the gang."""
    groups: persistent.Map[tuple[str, ...], tuple[str, ...]] = _NO_GROUPS
    """By the ids that a group lists: the ids of the gangs that belong to it, sorted."""
    waiting: persistent.Map[tuple[str, ...], bool] = _NONE_WAIT
    """Groups of which every gang that belongs to it is ready, and any has a pending member."""

    # -- reading ---------------------------------------------------------------------------

    def get(self, gang: str) -> Entry | None:
        """Return a gang by its id."""
        return self.entries.get(gang)

    def group_of(self, gang: str) -> Group | None:
        """Return the group that a gang belongs to."""
        entry = self.entries.get(gang)
        return self.group(declaration.listed(entry.gang)) if entry is not None else None

    def group(self, listed: tuple[str, ...]) -> Group | None:
        """Return a group by the ids that it lists, None where no gang belongs to it."""
        ids = self.groups.get(listed)
        if ids is None:
            return None
        missing, elsewhere = [], []
        for gang in listed:
            entry = self.entries.get(gang)
            is_elsewhere = entry is not None and gang not in ids
            if is_elsewhere:
                elsewhere.append(gang)
            if entry is None or not entry.ready or (is_elsewhere and _is_ahead(entry, ids)):
                missing.append(gang)
        gangs = tuple(self.entries[gang] for gang in ids)
        return Group(",".join(listed), gangs, tuple(missing), tuple(elsewhere))

    def quorums(self, gang: str) -> tuple[tuple[int, tuple[tuple[str, str], ...]], ...]:
        """Return what falls together with a strict gang: the strict gangs of its group.

        Of each the minimum, and uid and node of its members that are bound or about to be.
        """
        entry = self.entries.get(gang)
        if entry is None or entry.gang.mode is not declaration.Mode.STRICT:
            return ()
        group = self.group(declaration.listed(entry.gang))
        return tuple(
            (one.gang.min_member, one.placed)
            for one in (group.gangs if group is not None else (entry,))
            if one.gang.mode is declaration.Mode.STRICT
        )

    def gathered(self) -> Iterator[Group]:
        """Yield the groups that are complete and have pending members, in no order."""
        for listed in self.waiting:
            group = self.group(listed)
            if group is not None and group.gathered:
                yield group

    # -- changing --------------------------------------------------------------------------

    def with_member(self, member: Member) -> "Table":
        """Return the table with one more fact about a pod."""
        return self._with_fact(member, 1)

    def without_member(self, member: Member) -> "Table":
        """Return the table with one less fact about a pod; a KeyError where it is not known."""
        return self._with_fact(member, -1)

    def with_pod_group(self, gang: declaration.Gang, *, begun: bool = False) -> "Table":
        """Return the table with a PodGroup, or with another state of it.

        `begun`: whether its status says that members were bound once.
        """
        entry = self.entries.get(gang.id) or Entry(gang)
        found = msgspec.structs.replace(entry, pod_group=gang, begun=begun)
        return self._replaced(gang.id, found.settled())

    def without_pod_group(self, gang: str) -> "Table":
        """Return the table without the PodGroup of a gang; its members stay."""
        entry = self.entries.get(gang)
        if entry is None or entry.pod_group is None:
            return self
        found = msgspec.structs.replace(entry, pod_group=None, begun=False)
        return self._replaced(gang, found.settled())

    def _with_fact(self, fact: Member, sign: int) -> "Table":
        gang = fact.gang
        entry = self.entries.get(gang.id)
        if entry is None:
            entry = Entry(declaration.unknown(gang.namespace, gang.name, gang.source))
        return self._replaced(gang.id, entry.with_fact(fact, sign))

    def _replaced(self, gang: str, entry: Entry) -> "Table":
        before = self.entries.get(gang)
        after = None if entry.empty() else entry
        entries = self.entries.replaced(gang, after)
        if before is not None and after is not None and _waits_alike(before, after):
            return Table(entries, self.groups, self.waiting)
        was = declaration.listed(before.gang) if before is not None else None
        becomes = declaration.listed(after.gang) if after is not None else None
        groups = self.groups
        if was != becomes:
            groups = _moved(groups, gang, was, becomes)
        waiting = self.waiting
        for listed in {was, becomes} - {None}:
            assert listed is not None
            is_waiting = _is_waiting(entries, groups.get(listed, ()))
            if is_waiting is not (listed in waiting):
                waiting = waiting.replaced(listed, True if is_waiting else None)
        return Table(entries, groups, waiting)


def shown(facts: Facts) -> Member:
    """Return how far a pod has come, of everything that is known about it."""
    if len(facts) == 1:
        return next(iter(facts))
    furthest = max(fact.state for fact in facts)
    found = [fact for fact in facts if fact.state is furthest]
    # Of several that are as far any will do, as long as it is the same one in any order.
    return found[0] if len(found) == 1 else max(found, key=repr)


def _is_alike(before: Member | None, after: Member | None) -> bool:
    """Whether a member has only come further: its gang is as old and declared as it was."""
    if before is None or after is None or before.gang is not after.gang:
        return False
    return before.created == after.created and before.key == after.key


def _waits_alike(before: Entry, after: Entry) -> bool:
    """Whether a gang counts for its group as before."""
    if before.gang is not after.gang or before.ready is not after.ready:
        return False
    return (before.counts.pending > 0) is (after.counts.pending > 0)


def _reordered(
    oldest: tuple[tuple[bool, float, str, str], ...], before: Member | None, after: Member | None
) -> tuple[tuple[bool, float, str, str], ...]:
    was = before.age if before is not None else None
    becomes = after.age if after is not None else None
    if was == becomes:
        return oldest
    if was is not None:
        at = bisect.bisect_left(oldest, was)
        oldest = oldest[:at] + oldest[at + 1 :]
    if becomes is not None:
        at = bisect.bisect_left(oldest, becomes)
        oldest = (*oldest[:at], becomes, *oldest[at:])
    return oldest


def _moved(
    groups: persistent.Map[tuple[str, ...], tuple[str, ...]],
    gang: str,
    was: tuple[str, ...] | None,
    becomes: tuple[str, ...] | None,
) -> persistent.Map[tuple[str, ...], tuple[str, ...]]:
    if was is not None:
        rest = tuple(one for one in groups[was] if one != gang)
        groups = groups.replaced(was, rest or None)
    if becomes is not None:
        groups = groups.replaced(becomes, tuple(sorted((*groups.get(becomes, ()), gang))))
    return groups


def _is_ahead(entry: Entry, ids: tuple[str, ...]) -> bool:
    """Whether gangs have to wait until another one is placed, which does not wait for them.

    What a plan kept for them before that, others could not use. Gangs that wait for one another in
    part arrive at Permit side by side.
    """
    return not entry.is_placed and set(ids).isdisjoint(declaration.listed(entry.gang))


def _is_waiting(entries: Mapping[str, Entry], ids: tuple[str, ...]) -> bool:
    found = [entries[gang] for gang in ids]
    ready = all(entry.ready for entry in found)
    return ready and any(entry.counts.pending for entry in found)
