"""Gangs as documents, in the shape that tools for Koordinator's scheduler know."""

from typing import Any, Final

from api.wire import durations
from domain.gangs import declaration
from domain.gangs import table as tables
from extender.plugins.coscheduling import tracker

_FROM_OBJECT: Final = "GangFromPodGroupCrd"
_FROM_POD: Final = "GangFromPodAnnotation"
PHASES: Final = ("gathering", "waiting", "planned", "binding", "bound")


def listed(gangs: tracker.Gangs) -> dict[str, Any]:
    """Return all gangs by id."""
    return {
        gang: _summary(gangs, gang, entry) for gang, entry in sorted(gangs.table.entries.items())
    }


def summary(gangs: tracker.Gangs, gang: str) -> dict[str, Any] | None:
    """Return one gang, None where there is none of this id."""
    entry = gangs.table.get(gang)
    return _summary(gangs, gang, entry) if entry is not None else None


def phases(gangs: tracker.Gangs) -> dict[str, float]:
    """Return how many gangs there are in each phase."""
    found = dict.fromkeys(PHASES, 0.0)
    for entry in gangs.table.entries.values():
        found[phase(gangs, entry)] += 1
    return found


def phase(gangs: tracker.Gangs, entry: tables.Entry) -> str:
    """Return how far a gang has come, as one of `PHASES`."""
    counts = entry.counts
    if counts.assumed:
        return "binding"
    plan = gangs.plan(",".join(declaration.listed(entry.gang)))
    if counts.pending and plan is not None and plan.nodes:
        return "planned"
    if counts.bound and counts.bound >= entry.gang.min_member:
        return "bound"
    return "waiting" if entry.ready else "gathering"


def _summary(gangs: tracker.Gangs, gang: str, entry: tables.Entry) -> dict[str, Any]:
    settings, listed = entry.gang, declaration.listed(entry.gang)
    group, group_id = gangs.group(listed), ",".join(listed)
    plan = gangs.plan(group_id)
    members = sorted(entry.members, key=lambda one: one.key)
    created = min((one.created for one in members if one.created >= 0), default=-1.0)
    is_once = group.ever_bound if group is not None else entry.ever_bound
    document = {
        "name": gang,
        "waitTime": int(settings.wait_seconds * 1e9),
        "createTime": durations.moment(created) if created >= 0 else "",
        "mode": settings.mode.value,
        "gangMatchPolicy": settings.match_policy.value,
        "minRequiredNumber": settings.min_member,
        "totalChildrenNum": settings.total,
        "gangGroup": list(listed),
        "children": _set(members),
        "pendingChildren": _set(members, tables.State.WAITING, tables.State.NOMINATED),
        "waitingForBindChildren": _set(members, tables.State.ASSUMED),
        "boundChildren": _set(members, tables.State.BOUND),
        "onceResourceSatisfied": is_once,
        "gangGroupInfo": {
            "Initialized": group is not None and group.gathered,
            "GangGroupId": group_id,
            "GangGroup": list(listed),
            "OnceResourceSatisfied": is_once,
            "WaitingGangIDs": [one for one in listed if _waits(gangs, one)],
            "RepresentativePodKey": "",
            "BindingMemberPods": _set(members, tables.State.ASSUMED),
        },
        "gangFrom": _FROM_OBJECT if entry.pod_group is not None else _FROM_POD,
        "hasGangInit": settings.initialised,
    }
    if plan is not None:
        until = durations.moment(plan.plan.until)
        document["plan"] = {
            "generation": plan.plan.generation,
            "until": until,
            "refusal": plan.plan.refusal,
            "nodes": {one.key: plan.nodes[one.uid] for one in members if one.uid in plan.nodes},
        }
    return document


def _waits(gangs: tracker.Gangs, gang: str) -> bool:
    entry = gangs.table.get(gang)
    return entry is None or entry.counts.assumed + entry.counts.bound < entry.gang.min_member


def _set(members: list[tables.Member], *states: tables.State) -> dict[str, Any]:
    return {one.key: {} for one in members if not states or one.state in states}
