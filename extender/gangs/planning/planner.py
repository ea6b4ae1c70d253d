"""Where the members of a gang group go, all of them at once. Pure: it works on a fork of the state.

Members that are alike are judged once for all nodes; each member that is placed changes the fork,
so that the next one sees what the ones before it took. Every constraint counts through the filters,
scores and reservers of the plug-ins, beside what kube-scheduler's own filters are known to require.
A plan is made in steps of a few milliseconds, between which the caller may do something else.
"""

import dataclasses
from collections import Counter
from collections.abc import Collection, Generator, Hashable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from domain import wording
from domain.quota import placement as node_requirements
from extender.framework import pipeline, verdicts, views
from extender.gangs.planning import in_tree, member_class
from extender.state import allocations, claims, cluster_state, deltas, records

IN_TREE: Final = member_class.IN_TREE
Sorts = member_class.Sorts
_TRIES: Final = 64
"""Nodes that may turn out not to take a member before all of them are judged anew."""
_TOGETHER: Final = 4
"""Members that are placed in one step."""
_MOST_REASONS: Final = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """A pod of the group without a node."""

    pod: records.PodRecord
    gang: str
    """The id of its gang."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What a plan has to reach, and what it leaves out."""

    needed: Mapping[str, int]
    """By gang: how many of its members must be placed; more of them are welcome."""
    avoided: Mapping[str, Collection[str]] = dataclasses.field(default_factory=dict)
    """By uid: nodes on which kube-scheduler has just refused a member of that sort."""
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """By uid: the only node on which a member may be placed, such as what a topology demands."""
    sorts: Sorts | None = None
    """What is shared with other plans on one fork, in which what plans keep is taken already."""


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """The node of one member, and what plug-ins allocate to it there."""

    pod: records.PodRecord
    gang: str
    node: str
    granted: allocations.Allocations


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """Nodes for so many members that every gang of the group has enough."""

    placements: tuple[Placement, ...]
    left: tuple[str, ...] = ()
    """Uids of members beyond what is needed for which there is no node."""
    refusing: int | None = None
    """How many nodes refuse a member of the sort with most of them, which kube-scheduler takes for
    fit, now that this is kept; None: members cannot have other nodes than these."""


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """Why a group has no plan: the first member without a node and what stood in its way."""

    member: str
    """Its namespace/name."""
    gang: str
    placed: int
    """How many members of that gang found a node before it."""
    needed: int
    nodes: int
    """How many nodes were looked at."""
    reasons: tuple[tuple[str, str, int], ...]
    """Plug-in, reason and number of nodes; what refuses most nodes comes first."""
    told: str
    """What stood in the way of the member, with numbers of nodes."""
    sentence: str

    @property
    def plugin(self) -> str:
        """Return who refuses most nodes: the tightest constraint."""
        return self.reasons[0][0] if self.reasons else ""


Found = Plan | Refused


class Planner:
    """One plan in the making, on a fork that it changes."""

    def __init__(
        self,
        plugins: pipeline.Pipeline,
        fork: cluster_state.ClusterState,
        members: Sequence[Member],
        options: Options,
        now: float,
    ) -> None:
        self._plugins, self._fork, self._now = plugins, fork, now
        self._members, self._options = members, options
        self._context = member_class.Context(plugins, now)
        self._sorts = options.sorts or Sorts()
        self._classes, self._required = self._sorts.classes, self._sorts.required
        self._is_shared = options.sorts is not None
        self._keys: dict[str, Hashable] = {}
        self._placed: list[Placement] = []
        self._short: Counter[str] = Counter()
        """By gang: members without a node."""
        self._totals = Counter(member.gang for member in members)
        self._general: tuple[str, str, int] | None = None
        """What refused the last member on every node that it could have, if it was one thing."""
        self.result: Found | None = None
        """The plan or why there is none, once all steps are done."""

    @property
    def placed(self) -> tuple[Placement, ...]:
        """Return what was placed so far, also where there is no plan in the end."""
        return tuple(self._placed)

    def steps(self) -> Iterator[None]:
        """Make the plan, in steps; `result` is set after the last one."""
        if self._is_shared:
            self._sorts.apply()
        else:
            yield from self.firm_up()
        ordered = yield from self._sorted()
        missing = self._missing_gangs()
        if missing is not None:
            self.result = missing
            return
        left: list[str] = []
        welcome: list[Member] = []
        lacking = Counter(self._options.needed)
        for number, member in enumerate(ordered):
            if number % _TOGETHER == _TOGETHER - 1:
                yield
            if lacking[member.gang] <= 0:
                # What other gangs of the group need comes first.
                welcome.append(member)
                continue
            if (yield from self._place(member)):
                lacking[member.gang] -= 1
                continue
            left.append(member.pod.uid)
            self._short[member.gang] += 1
            spare = self._totals[member.gang] - self._options.needed.get(member.gang, 0)
            if self._short[member.gang] > spare:
                yield from self._refuse(member)
                return
        for member in welcome:
            yield
            if not (yield from self._place(member)):
                left.append(member.pod.uid)
        keys = () if self._options.places else set(self._keys.values())
        sorts = [self._classes[key] for key in keys]
        refusing = yield from member_class.most_refusing(sorts, self._fork.view)
        self.result = Plan(tuple(self._placed), tuple(left), refusing)

    def _missing_gangs(self) -> Refused | None:
        """Refuse a group with a gang that lacks members, whatever the nodes are like."""
        for gang, needed in self._options.needed.items():
            if self._totals[gang] < needed:
                members = wording.count(needed, "member", "members")
                text = f"gang {gang} has {self._totals[gang]} of {members} that it needs"
                return Refused("", gang, self._totals[gang], needed, 0, (), text, text)
        return None

    # -- order -----------------------------------------------------------------------------

    def firm_up(self) -> Iterator[None]:
        """Count what other plans keep as taken, also from members of higher priority.

        What is kept for the members themselves, by an earlier plan, is free. A plan never displaces
        another plan: two gangs that exclude each other are decided once.
        """
        own = {member.pod.uid for member in self._members}
        kept = [
            claim
            for held in self._fork.view().nominated.values()
            for claim in held
            if claim.evidence == EVIDENCE or claim.pod.uid in own
        ]
        for number, claim in enumerate(kept):
            self._fork.apply(deltas.ClaimDelta(claim.id, claim, None))
            if claim.pod.uid not in own:
                taken = firm(claim)
                self._fork.apply(deltas.ClaimDelta(taken.id, self._fork.claim(taken.id), taken))
            if number % 32 == 31:
                yield
        yield

    def _sorted(self) -> Generator[None, None, list[Member]]:
        """Judge every sort of member, and order members: those with the fewest nodes first."""
        view = self._fork.view()
        for number, member in enumerate(self._members):
            self._keys[member.pod.uid] = key = self._key(member, view)
            if not self._sorts.is_known(key, view):
                yield
                pod, nodes = member.pod, node_requirements_of(member.pod)
                rooms = self._sorts.rooms
                required = in_tree.Requirement(self._fork, pod.requirements, nodes, rooms)
                found = member_class.MemberClass(self._context, required, views.PodInfo.of(pod))
                self._classes[key], self._required[key] = found, required
                yield from found.judge(view, self._options.avoided.get(pod.uid, ()))
            if number % 32 == 31:
                yield
        return sorted(
            self._members,
            key=lambda member: (
                -member.pod.requirements.priority,
                self._classes[self._keys[member.pod.uid]].count,
                member.pod.key,
            ),
        )

    def _key(self, member: Member, view: views.View) -> Hashable:
        pod = member.pod
        asked = self._plugins.cycle(views.PodInfo.of(pod), view)
        avoided = frozenset(self._options.avoided.get(pod.uid, ()))
        return asked.key, _in_tree(pod.requirements), node_requirements_of(pod), avoided

    # -- placing ---------------------------------------------------------------------------

    def _place(self, member: Member) -> Generator[None, None, bool]:
        """Place one member on the best node that takes it; return whether there is one."""
        key = self._keys[member.pod.uid]
        sort = self._classes[key]
        only = self._options.places.get(member.pod.uid)
        self._general = None
        for attempt in range(2):
            for _ in range(_TRIES):
                view = self._fork.view()
                asked = self._plugins.cycle(views.PodInfo.of(member.pod), view)
                row = sort.best() if only is None else view.rows.get(only)
                if row is None and (only is not None or not self._is_shared):
                    return False
                if row is None:
                    # Nodes that refused such members in an earlier plan may take them by now.
                    break
                refusal = self._try(member, asked, view, row)
                if refusal is None:
                    if member.pod.gang is not None and member.pod.gang.alone:
                        sort.close(row)
                    return True
                if only is not None or _is_general(asked, refusal):
                    nodes = 1 if only is not None else int(view.known.sum())
                    self._general = refusal.plugin, refusal.status.text, nodes
                    return False
                sort.close(row)
            if attempt == 0:
                yield
                yield from sort.judge(
                    self._fork.view(), self._options.avoided.get(member.pod.uid, ())
                )
        return False

    def _try(
        self, member: Member, asked: pipeline.Cycle, view: views.View, row: int
    ) -> pipeline.Refusal | None:
        """Place a member on a node; return why not where that is impossible."""
        key = self._keys[member.pod.uid]
        sort = self._classes[key]
        if sort.is_stale(row) or self._options.places:
            why = self._required[key].refusal(view, row)
            if why:
                return pipeline.Refusal(IN_TREE, verdicts.Status(why, resolvable=True))
        alone = pipeline.alone(row)
        refusal = self._plugins.filter(asked, view, alone, self._now).refusal(0)
        if refusal is not None:
            return refusal
        granted = self._plugins.reserve(asked, view, row)
        if isinstance(granted, pipeline.Refusal):
            return granted
        try:
            self._count(member, view.names[row], granted)
        except deltas.StaleError as error:
            status = verdicts.Status(f"a plug-in reserved what is no longer so: {error}")
            return pipeline.Refusal("view", status)
        after = self._fork.view()
        for other in self._classes.values():
            other.changed(row)
        sort.rescore(self._plugins.cycle(asked.pod, after), after, row)
        return None

    def _count(self, member: Member, node: str, granted: Mapping[str, verdicts.Grant]) -> None:
        """Count a member on its node as if it were bound."""
        pod, fork = member.pod, self._fork
        held = {name: grant.allocation for name, grant in granted.items() if grant.allocation}
        allocated: allocations.Allocations = held or allocations.NONE
        for grant in granted.values():
            for change in grant.changes:
                fork.apply(change)
        told = fork.told(deltas.UNSCHEDULED_POD, pod.uid)
        if told is not None and told.after is not None:
            fork.apply(deltas.ObjectDelta(deltas.UNSCHEDULED_POD, pod.uid, told.after, None))
        placed = msgspec.structs.replace(
            pod, node=node, assigned_at=self._now, fence="", nominated="", preemption="",
            allocations=allocated, gang=None,
        )  # fmt: skip
        claim = claims.Claim(
            pod.uid, claims.ClaimKind.ASSUMED, node, placed, allocated,
            consumes=allocations.consumed(allocated) if held else "",
        )  # fmt: skip
        fork.apply(deltas.ClaimDelta(pod.uid, fork.claim(pod.uid), claim))
        self._placed.append(Placement(pod, member.gang, node, allocated))

    # -- why not ---------------------------------------------------------------------------

    def _refuse(self, member: Member) -> Iterator[None]:
        """Say what the nodes lack, as they are with the members that found a place."""
        sort = self._classes[self._keys[member.pod.uid]]
        reasons: tuple[tuple[str, str, int], ...]
        if self._general is not None:
            reasons = (self._general,)
        else:
            avoided = self._options.avoided.get(member.pod.uid, ())
            yield from sort.judge(self._fork.view(), avoided)
            ranked = sort.reasons.most_common()
            reasons = tuple((plugin, reason, count) for (plugin, reason), count in ranked)
        self.result = self._refused(member, reasons)

    def _refused(self, member: Member, reasons: tuple[tuple[str, str, int], ...]) -> Refused:
        nodes = self._fork.node_count()
        placed = sum(one.gang == member.gang for one in self._placed)
        needed = self._options.needed.get(member.gang, 0)
        name, told = member.pod.key, "no node is known"
        if reasons:
            told = "; ".join(f"{count} {reason}" for _, reason, count in reasons[:_MOST_REASONS])
            told = f"0/{nodes} nodes are available: {told}"
        sentence = (
            f"{placed} of {wording.count(needed, 'member', 'members')} of gang {member.gang} "
            f"{wording.form(placed, 'finds', 'find')} a node, and {name} does not: {told}"
        )
        return Refused(name, member.gang, placed, needed, nodes, reasons, told, sentence)


EVIDENCE: Final = "gang"
"""Evidence of a nomination that a gang's plan has made."""


def firm(claim: claims.Claim) -> claims.Claim:
    """Return what a plan keeps as if the member were bound, so that no other pod takes it."""
    return msgspec.structs.replace(
        claim, id=claim.pod.uid, kind=claims.ClaimKind.ASSUMED, usable_by=""
    )


def plan(
    plugins: pipeline.Pipeline,
    fork: cluster_state.ClusterState,
    members: Sequence[Member],
    options: Options,
    now: float,
) -> Found:
    """Make a plan in one go; the fork holds it afterwards."""
    made = Planner(plugins, fork, members, options, now)
    for _ in made.steps():
        pass
    assert made.result is not None
    return made.result


def node_requirements_of(pod: records.PodRecord) -> node_requirements.Requirements:
    """Return what a member requires of labels and taints of nodes."""
    return pod.gang.placement if pod.gang is not None else node_requirements.NONE


@records.PodRequirements.remembered(4096)
def _in_tree(wanted: records.PodRequirements) -> Hashable:
    """Return what a verdict depends on beside what plug-ins prepare.

    The gang that a pod names is no part of it, so that members of different gangs may be alike.
    """
    return wanted.requests, wanted.host_ports, wanted.priority, wanted.preempts


def _is_general(asked: pipeline.Cycle, refusal: pipeline.Refusal) -> bool:
    """Whether every node refuses the member for the same reason, such as its quota."""
    return asked.refused is not None or bool(refusal.status.message)
