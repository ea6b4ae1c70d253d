"""What is planned of a gang group: its members without a node, and how many must have one. Pure."""

import dataclasses
from collections.abc import Callable, Collection, Mapping

from domain.gangs import declaration, table
from extender.gangs import queue
from extender.gangs.planning import planner
from extender.state import records

Find = Callable[[str], records.PodRecord | None]
"""Finds a pod by namespace/name, as the watch shows it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """A gang group that is complete."""

    id: str
    members: tuple[planner.Member, ...]
    """Those that could be placed now."""
    needed: Mapping[str, int]
    """By gang: how many of its members must find a node."""
    blocked: int = 0
    """Members that gates of others keep out of the scheduling queue."""

    def options(self, avoided: Mapping[str, Collection[str]]) -> planner.Options:
        """Return what a plan has to reach."""
        return planner.Options(self.needed, avoided)


def standing(group: table.Group) -> queue.Waiting:
    """Return where a group stands in line: by its most important member, and since when complete.

    It is complete since its youngest member was created.
    """
    members = [member for entry in group.gangs for member in entry.members]
    pending = [one for one in members if one.state <= table.State.NOMINATED]
    return queue.Waiting(
        group.id,
        max((one.priority for one in pending), default=0),
        max((one.created for one in members), default=0.0),
    )


def needed(entry: table.Entry, *, ever_bound: bool) -> int:
    """Return how many more members of a gang have to hold a node for its match policy."""
    gang, counts = entry.gang, entry.counts
    match gang.match_policy:
        case declaration.MatchPolicy.ONLY_WAITING:
            held = counts.assumed
        case declaration.MatchPolicy.WAITING_AND_RUNNING:
            held = counts.assumed + counts.bound
        case declaration.MatchPolicy.ONCE_SATISFIED:
            held = gang.min_member if ever_bound else counts.assumed
    return max(0, gang.min_member - held)


def wanted(group: table.Group, find: Find, *, whole: bool = False) -> Wanted:
    """Return what is planned of a group; `whole`: all members up to the minimum, bound ones too.

    That is what a group needs of which an interruption left only some members bound.
    """
    members: list[planner.Member] = []
    blocked = 0
    for entry in group.gangs:
        for one in entry.members:
            if one.state > table.State.NOMINATED:
                continue
            pod = find(one.key)
            if pod is None or pod.uid != one.uid or pod.node or pod.leaves_at >= 0:
                continue
            if pod.gang is not None and pod.gang.held:
                blocked += 1
                continue
            members.append(planner.Member(pod, entry.gang.id))
    return Wanted(
        group.id,
        tuple(sorted(members, key=lambda one: one.pod.key)),
        {
            entry.gang.id: max(0, entry.gang.min_member - entry.counts.bound - entry.counts.assumed)
            if whole
            else needed(entry, ever_bound=group.ever_bound)
            for entry in group.gangs
        },
        blocked,
    )
