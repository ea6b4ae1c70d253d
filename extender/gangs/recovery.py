"""What is left of plans after a restart, and of a burst of Bindings that was interrupted. Pure."""

import collections
import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from domain.gangs import declaration, plan_record, table
from extender.gangs import interrupted_bursts
from extender.gangs.planning import groups, planner
from extender.state import records

_NONE: Final[Counter[str]] = Counter()


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A plan as the records on its members tell of it."""

    group: str
    generation: str
    until: float
    places: tuple[planner.Placement, ...]
    complete: bool
    """Whether every member without a node has a place in it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Partial:
    """Members of a gang that were bound before an interruption, while others of its group wait."""

    group: str
    gang: str
    generation: str
    bound: tuple[records.PodRecord, ...]
    """Members that were bound by that plan."""


def plans(
    waiting: Iterable[table.Group], find: groups.Find, now: float, longest: float
) -> list[Found]:
    """Return the plans of groups that wait, as far as records on their members still count.

    A record counts for the group to which its pod belongs, and for no longer than a plan lasts.
    """
    found: list[Found] = []
    for group in waiting:
        text = plan_record.group_text(group.id)
        wanted = groups.wanted(group, find)
        by_generation: dict[str, list[tuple[planner.Placement, float]]] = {}
        for member in wanted.members:
            facts = member.pod.gang
            record = plan_record.decode(facts.plan, now, longest) if facts is not None else None
            if record is not None and record.group == text and not (facts and facts.gated):
                place = planner.Placement(member.pod, member.gang, record.node, {})
                by_generation.setdefault(record.generation, []).append((place, record.until))
        for generation, places in sorted(by_generation.items()):
            found.append(
                Found(
                    group.id,
                    generation,
                    min(until for _, until in places),
                    tuple(
                        _exchanged([place for place, _ in places], _bound(group, generation, find))
                    ),
                    len(places) == len(wanted.members),
                )
            )
    return found


_Sort = tuple[str, records.PodRequirements]
"""The gang of a member and what it asks for: members that are alike may have exchanged places."""


def _bound(
    group: table.Group, generation: str, find: groups.Find
) -> Iterator[tuple[_Sort, str, str]]:
    """Yield of each member that a plan has bound the sort, the node of its record, and its own."""
    for entry in group.gangs:
        for member in entry.members:
            pod = find(member.key)
            if pod is None or pod.uid != member.uid or not pod.node or pod.gang is None:
                continue
            record = plan_record.read(pod.gang.plan)
            if record is not None and record.generation == generation:
                yield (entry.gang.id, pod.requirements), record.node, pod.node


def _exchanged(
    places: Iterable[planner.Placement], bound: Iterable[tuple[_Sort, str, str]]
) -> Iterator[planner.Placement]:
    """Yield places as they are after some of the members have exchanged theirs.

    A member may have been bound to the place that the record of another one names, which has the
    place of the former then, or of one that was bound to that in turn.
    """
    planned: dict[_Sort, Counter[str]] = collections.defaultdict(Counter)
    actual: dict[_Sort, Counter[str]] = collections.defaultdict(Counter)
    for sort, recorded, node in bound:
        planned[sort][recorded] += 1
        actual[sort][node] += 1
    free = {sort: list((nodes - actual[sort]).elements()) for sort, nodes in planned.items()}
    taken = {sort: nodes - planned[sort] for sort, nodes in actual.items()}
    for place in places:
        sort = place.gang, place.pod.requirements
        if taken.get(sort, _NONE)[place.node] <= 0:
            yield place
            continue
        taken[sort][place.node] -= 1
        yield dataclasses.replace(place, node=free[sort].pop())


def partials(group: table.Group, find: groups.Find) -> list[Partial]:
    """Return the gangs of a group that an interruption has left bound, while others of it wait.

    A gang group starts together: one of its gangs may be whole while another one has no node yet.
    A member that waits was on its way when that ended if the records of those that are bound list
    it, or if it has the record of their plan itself. Members that were created later, in place of
    others, are in none. A plan whose members have left since may have been carried out: what is
    left of it runs.
    """
    strict = [entry for entry in group.gangs if entry.gang.mode is declaration.Mode.STRICT]
    short = [entry for entry in strict if entry.counts.bound < entry.gang.min_member]
    if not short or not any(entry.counts.bound for entry in strict):
        return []
    shown = {entry.gang.id: tuple(_shown(entry, find)) for entry in group.gangs}
    members = [pod for found in shown.values() for pod in found]
    bursts = interrupted_bursts.bursts(members)
    waiting = [pod for entry in short for pod in shown[entry.gang.id] if not pod.node]
    lacking = sum(entry.gang.min_member - entry.counts.bound for entry in short)
    found = [
        one
        for one in bursts
        if any(one.waits_for(pod) for pod in waiting) and one.lost(members) < lacking
    ]
    return [
        Partial(group.id, entry.gang.id, one.generation, bound)
        for entry in strict
        for one in found
        if (bound := tuple(pod for pod in shown[entry.gang.id] if pod.uid in one.bound))
    ]


def completed(group: table.Group, find: groups.Find) -> tuple[str, Mapping[str, str]]:
    """Return what a plan completes now: a generation, and node by uid of those bound by it."""
    found = partials(group, find)
    nodes = {pod.uid: pod.node for one in found for pod in one.bound}
    return (found[0].generation if found else ""), nodes


def _shown(entry: table.Entry, find: groups.Find) -> Iterator[records.PodRecord]:
    """Yield the members of a gang as the watch shows them."""
    for member in entry.members:
        pod = find(member.key)
        if pod is not None and pod.uid == member.uid:
            yield pod
