"""Plans of gangs that ask for a place in the network: the smallest domain that takes them. Pure.

The network says which node each member takes; the planner then checks it with every constraint.
Where a node turns out to take fewer members than its free resources tell, it offers fewer places,
and the network is asked again.
"""

import dataclasses
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Final

from domain.gangs import table
from domain.topology import placement
from domain.topology import rules as gather
from domain.topology import tree as trees
from extender.framework import pipeline
from extender.gangs.network import proposals, slots
from extender.gangs.planning import member_class, planner
from extender.state import cluster_state, records

Wanted = proposals.Wanted
NAME: Final = "NetworkTopology"
"""What stands for the network where a plug-in is named."""
_ATTEMPTS: Final = 16
"""Placements that are checked before the group is refused."""
_SLICE: Final = 512


class NetworkPlanner:
    """One plan in the making; the state that it is given is not changed."""

    def __init__(
        self,
        plugins: pipeline.Pipeline,
        cluster: cluster_state.ClusterState,
        members: Sequence[planner.Member],
        options: planner.Options,
        wanted: proposals.Wanted,
        now: float,
    ) -> None:
        self._plugins, self._cluster, self._now = plugins, cluster, now
        self._options, self._wanted = options, wanted
        self._members = sorted(members, key=self._order)
        self.result: planner.Found | None = None
        """The plan or why there is none, once all steps are done."""

    def _order(self, member: planner.Member) -> tuple[bool, int, str]:
        index = member.pod.gang.index if member.pod.gang is not None else -1
        return index < 0, index, member.pod.key

    def steps(self) -> Iterator[None]:
        """Make the plan, in steps; `result` is set after the last one."""
        if not self._members:
            self.result = planner.Plan(())
            return
        fork = self._cluster.fork()
        kept = planner.Planner(self._plugins, fork, self._members, self._options, self._now)
        yield from kept.firm_up()
        pods = [member.pod for member in self._members]
        context = member_class.Context(self._plugins, self._now)
        avoided = {uid: tuple(nodes) for uid, nodes in self._options.avoided.items()}
        offered = yield from slots.judged(context, fork, pods, avoided)
        existing = yield from _with_selector(fork, pods[0])
        refusal: placement.Refusal | None = None
        for chosen in self._choices():
            asked = [member.pod for member in chosen]
            proposers: list[proposals.Proposer] = [
                proposals.AtOnce(self._wanted, offered, asked, existing)
            ]
            if len(offered.sorts) > 1:
                proposers.append(proposals.SortBySort(self._wanted, offered, asked, existing))
            for proposer in proposers:
                found = yield from self._attempts(chosen, proposer)
                if not isinstance(found, placement.Refusal):
                    self.result = self._complete(found, chosen)
                    return
                refusal = refusal or found
        assert refusal is not None
        self.result = yield from self._refused(refusal)

    def _complete(self, found: planner.Found, chosen: Sequence[planner.Member]) -> planner.Found:
        """Return a plan with the members that it leaves out."""
        if isinstance(found, planner.Refused):
            return found
        there = {member.pod.uid for member in chosen}
        left = (member.pod.uid for member in self._members if member.pod.uid not in there)
        return dataclasses.replace(found, left=tuple(left))

    def _choices(self) -> Iterator[list[planner.Member]]:
        """Yield all members, then no more of each gang than it needs."""
        yield self._members
        counts, chosen = Counter[str](), []
        for member in self._members:
            counts[member.gang] += 1
            if counts[member.gang] <= self._options.needed.get(member.gang, 0):
                chosen.append(member)
        if 0 < len(chosen) < len(self._members):
            yield chosen

    def _attempts(
        self, members: Sequence[planner.Member], proposer: proposals.Proposer
    ) -> Generator[None, None, planner.Found | placement.Refusal]:
        """Let the network propose nodes until a plan confirms them."""
        for _ in range(_ATTEMPTS):
            places = yield from proposer.propose()
            if isinstance(places, placement.Refusal):
                return places
            made = yield from self._planned(members, places)
            assert made.result is not None
            if isinstance(made.result, planner.Plan):
                return made.result
            failed = next((m.pod for m in members if m.pod.key == made.result.member), None)
            if failed is None:
                return made.result
            proposer.lower(failed, places, Counter(one.node for one in made.placed))
        return placement.Refusal(
            f"none of {_ATTEMPTS} placements in the network passes the filters for all members"
        )

    def _planned(
        self, members: Sequence[planner.Member], places: Mapping[str, str]
    ) -> Generator[None, None, planner.Planner]:
        counts = Counter(member.gang for member in members) if places else Counter[str]()
        # Each member has its place, so that none may be left out.
        needed = {gang: max(least, counts[gang]) for gang, least in self._options.needed.items()}
        options = planner.Options(needed, self._options.avoided, places)
        fork = self._cluster.fork()
        yield
        made = planner.Planner(self._plugins, fork, members, options, self._now)
        yield from made.steps()
        return made

    def _refused(self, refusal: placement.Refusal) -> Generator[None, None, planner.Refused]:
        """Say what is lacking: resources where even the whole cluster is too small."""
        anywhere = yield from self._planned(self._members, {})
        if isinstance(anywhere.result, planner.Refused):
            return anywhere.result
        gang = self._members[0].gang
        nodes = self._cluster.node_count()
        return planner.Refused(
            member=self._members[0].pod.key,
            gang=gang,
            placed=min(refusal.most, len(self._members)),
            needed=self._options.needed.get(gang, 0),
            nodes=nodes,
            reasons=((NAME, refusal.sentence, nodes),),
            told=refusal.sentence,
            sentence=f"gang {gang} has no place in the network: {refusal.sentence}",
        )


def _with_selector(
    cluster: cluster_state.ClusterState, pod: records.PodRecord
) -> Generator[None, None, Mapping[str, int]]:
    """Count by node the pods of the namespace with the selector of a pod."""
    selector = pod.requirements.network_selector
    found = Counter[str]()
    for number, claim in enumerate(tuple(cluster.all_claims().values()) if selector else ()):
        same = (
            claim.pod.namespace == pod.namespace
            and claim.pod.requirements.network_selector == selector
        )
        found[claim.node] += same
        if number % _SLICE == _SLICE - 1:
            yield
    return {node: count for node, count in found.items() if count}


def wanted(group: table.Group, tree: trees.Tree | None) -> Wanted | None:
    """Return where in the network a group has to be; None where it may be anywhere.

    The first of its gangs that declares a topology speaks for all. A gang that only prefers
    domains is placed without a network where there is none.
    """
    gangs = [entry.gang for entry in group.gangs if entry.gang.topology is not None]
    rules = gather.of(gangs[0].topology) if gangs else gather.Rules()
    if not gangs or tree is None or (tree.layers is None and not rules.must()):
        return None
    members = [one for entry in group.gangs for one in entry.members]
    return Wanted(
        tree,
        rules,
        tuple(sorted(one.node for one in members if one.state >= table.State.ASSUMED)),
    )
