"""Status of a PodGroup: phase, counts, and conditions about its quorum and restarts. Pure.

The CRD has no status subresource: the status is merged into the object itself, and nothing else of
it.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from api import resources
from api.koordinator import scheduling
from api.kubernetes import meta
from api.wire import durations
from domain.gangs import status
from domain.reservations import conditions
from manager.gangs import objects, quorum
from manager.reconcile import actions

MET: Final = "MinimumMet"
BELOW: Final = "BelowMinimum"
EVICTED: Final = "PodsEvicted"
_RESTARTED: Final = "its pods were evicted so that all of them start anew"
_OURS: Final = frozenset({objects.QUORUM, status.RESTARTED})
_BEFORE: Final = frozenset({status.PENDING, status.PRE_SCHEDULING, status.SCHEDULING})


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a gang beside its objects."""

    standing: quorum.Standing
    lost: bool
    """Whether it is below its minimum after it was complete."""
    complete: bool
    """Whether it has been complete."""
    restarted_at: float | None
    """When its pods were evicted last, in seconds since the epoch."""
    now: float
    """In seconds since the epoch."""
    unsure: bool = False
    """Whether it is below its minimum, and it is not known yet if it has been complete."""


def planned(observed: objects.Observed, group: objects.Group, facts: Facts) -> dict[str, Any]:
    """Return the fields of the status that are to change, in the form of the API."""
    minimum = observed.gang.min_member
    before = _stated(group.status)
    pods = [_pod(one) for one in observed.members]
    after = status.following(before, minimum, group.created, pods, facts.now, facts.restarted_at)
    changed = {
        name: value
        for (name, value), old in zip(_wire(after).items(), _wire(before).values(), strict=True)
        if value != old
    }
    marks = _conditions(group, facts, after.phase)
    if marks != [conditions.written(one) for one in group.status.conditions]:
        changed["conditions"] = marks
    return changed


def written(group: objects.Group, changed: Mapping[str, Any]) -> actions.Merge:
    """Return the write of some fields of a status; another version of the object refuses it."""
    metadata = {"uid": group.uid, "resourceVersion": group.version}
    body = {"metadata": metadata, "status": dict(changed)}
    return actions.Merge(resources.POD_GROUPS, group.name, body, group.namespace)


def _stated(written: scheduling.PodGroupStatus) -> status.Status:
    return status.Status(
        written.phase,
        written.occupied_by,
        written.scheduled,
        written.running,
        written.succeeded,
        written.failed,
        written.schedule_start_time,
    )


def _pod(one: objects.GangPod) -> status.MemberPod:
    owners = tuple(owner.name for owner in one.owners)
    return status.MemberPod(one.key, one.phase, bool(one.node), one.created, owners, one.deleting)


def _wire(found: status.Status) -> dict[str, Any]:
    started = found.schedule_start
    return {
        "phase": found.phase,
        "occupiedBy": found.occupied_by,
        "scheduled": found.scheduled,
        "running": found.running,
        "succeeded": found.succeeded,
        "failed": found.failed,
        "scheduleStartTime": None if started is None else durations.moment(started),
    }


def _conditions(group: objects.Group, facts: Facts, phase: str) -> list[dict[str, Any]]:
    kept = [conditions.written(one) for one in group.status.conditions if one.type not in _OURS]
    present = group.condition(objects.QUORUM)
    found = _quorum(facts, phase, present)
    if found is not None:
        since = facts.now
        if present is not None and present.status == found.status and present.last_transition_time:
            since = present.last_transition_time
        kept.append(conditions.condition(objects.QUORUM, *found, probed_at=None, since=since))
    if facts.restarted_at is not None:
        kept.append(
            conditions.condition(
                status.RESTARTED, "True", EVICTED, _RESTARTED, probed_at=None,
                since=facts.restarted_at,
            )
        )  # fmt: skip
    return kept


class _Quorum(NamedTuple):
    """What the condition about the quorum says."""

    status: str
    reason: str
    message: str


def _quorum(facts: Facts, phase: str, present: meta.LooseCondition | None) -> _Quorum | None:
    """Return whether a gang has its minimum; None where it says none, and once it has ended.

    What it says of a loss stays until it is known better. The message counts what ``scheduled``
    counts, so that it costs no write of its own.
    """
    sentence = quorum.sentence(facts.standing)
    said = present.reason if facts.unsure and present is not None else ""
    if facts.lost or said == BELOW:
        return _Quorum("False", BELOW, sentence)
    if facts.complete or said == MET:
        return _Quorum("True", MET, "")
    if facts.standing.minimum and phase in _BEFORE:
        return _Quorum("False", objects.WAITING, sentence)
    return None
