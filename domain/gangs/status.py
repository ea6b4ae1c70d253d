"""The status of a PodGroup: its phase and how many of its members are scheduled, run, ended.

Members that have ended count: a gang of which all have succeeded is Finished, and stays so. One
that has failed stays Failed until the manager restarts it: then its status begins anew.
"""

import math
from collections.abc import Sequence
from typing import Final

import msgspec

PENDING: Final = "Pending"
PRE_SCHEDULING: Final = "PreScheduling"
SCHEDULING: Final = "Scheduling"
SCHEDULED: Final = "Scheduled"
RUNNING: Final = "Running"
FINISHED: Final = "Finished"
FAILED: Final = "Failed"
STARTED: Final = frozenset({SCHEDULED, RUNNING, FINISHED, FAILED})
"""Phases of a gang that has had its minimum."""
ENDED: Final = (FINISHED, FAILED)
"""Phases that never change any more, unless a gang that has failed is restarted."""
RESTARTED: Final = "Restarted"
"""Condition of a PodGroup: when its pods were evicted last so that all of them start anew."""
GIVEN_UP_SECONDS: Final = 48 * 3600.0
"""A gang that was scheduled so long after its creation, and of which none runs, is left alone."""


class MemberPod(msgspec.Struct, frozen=True):
    """One pod of a gang, also one that has ended."""

    key: str
    """namespace/name."""
    phase: str
    """status.phase of the pod."""
    bound: bool
    """Whether it has or had a node."""
    created: float = -1.0
    owners: tuple[str, ...] = ()
    """Names of its owner references."""
    leaving: bool = False
    """Whether it is being deleted."""

    @property
    def alive(self) -> bool:
        """Whether it counts towards the quorum of a gang that was bound: it runs or succeeded."""
        return self.bound and self.phase != "Failed"


class Status(msgspec.Struct, frozen=True):
    """status of a PodGroup."""

    phase: str = ""
    occupied_by: str = ""
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start: float | None = None
    """scheduleStartTime, in seconds since 1970."""


def following(
    before: Status,
    least: int,
    created: float,
    pods: Sequence[MemberPod],
    now: float,
    restarted: float | None = None,
) -> Status:
    """Return the status after `before`: one step from phase to phase, the same one at rest.

    `least` is spec.minMember, `created` when the PodGroup was created, `restarted` when its pods
    were evicted last so that all of them start anew.
    """
    if restarted is not None:
        if precedes(before.phase, before.schedule_start, restarted):
            started = float(math.floor(restarted))
            return Status(PENDING, before.occupied_by, schedule_start=started)
        pods = [pod for pod in pods if not _is_left_behind(pod, restarted)]
        created = max(created, restarted)
    if before.phase in ENDED:
        return _ended(before, pods)
    if _is_given_up(before, least, created):
        return before
    if before.phase in ("", PENDING):
        return _pending(before, least, pods)
    if not pods:
        return msgspec.structs.replace(
            before, phase=PENDING, scheduled=0, running=0, succeeded=0, failed=0
        )
    counted = msgspec.structs.replace(
        before,
        scheduled=sum(pod.bound for pod in pods),
        running=sum(pod.phase == "Running" for pod in pods),
        succeeded=sum(pod.phase == "Succeeded" for pod in pods),
        failed=sum(pod.phase == "Failed" for pod in pods),
    )
    phase = _phase(counted, least)
    start = before.schedule_start
    if phase == SCHEDULING and start is None:
        start = now
    return msgspec.structs.replace(counted, phase=phase, schedule_start=start)


def precedes(phase: str, schedule_start: float | None, restarted: float) -> bool:
    """Whether a status is of the time before a restart; one that is Finished holds afterwards, too.

    The scheduleStartTime that the restart has set is the moment of its condition, in whole seconds.
    """
    begins = schedule_start is not None and schedule_start >= math.floor(restarted)
    return phase != FINISHED and not begins


def _is_left_behind(pod: MemberPod, restarted: float) -> bool:
    """Whether the pods that start anew replace this one; what has succeeded is not replaced."""
    is_replaced = pod.leaving or pod.phase == "Failed"
    return is_replaced and pod.created < math.floor(restarted)


def _ended(before: Status, pods: Sequence[MemberPod]) -> Status:
    """Return the status after its last phase: members that still run end as well, and are counted.

    Pods that are removed later stay counted, since the status is what is left of the gang.
    """
    return msgspec.structs.replace(
        before,
        running=sum(pod.phase == "Running" for pod in pods),
        succeeded=max(before.succeeded, sum(pod.phase == "Succeeded" for pod in pods)),
        failed=max(before.failed, sum(pod.phase == "Failed" for pod in pods)),
    )


def _is_given_up(before: Status, least: int, created: float) -> bool:
    """Whether the status stays as it is whatever becomes of the pods."""
    start = before.schedule_start
    late = start is not None and start - created > GIVEN_UP_SECONDS
    return late and before.scheduled == least and before.running == 0


def missing(least: int, pods: Sequence[MemberPod]) -> int:
    """Return how many members a gang lacks that was bound as a whole; 0 while it has its quorum."""
    return max(0, least - sum(pod.alive for pod in pods))


def _pending(before: Status, least: int, pods: Sequence[MemberPod]) -> Status:
    if not 0 < least <= len(pods):
        return msgspec.structs.replace(before, phase=PENDING)
    first = min(pods, key=lambda pod: (pod.created, pod.key))
    namespace = first.key.partition("/")[0]
    owners = ",".join(sorted(f"{namespace}/{name}" for name in first.owners))
    return msgspec.structs.replace(before, phase=PRE_SCHEDULING, occupied_by=owners)


def _phase(counted: Status, least: int) -> str:
    phase = SCHEDULING if counted.scheduled < least else SCHEDULED
    ended = counted.succeeded + counted.failed
    if phase == SCHEDULED and counted.succeeded + counted.running >= least:
        phase = RUNNING
    if counted.failed and ended + counted.running >= least:
        phase = FAILED
    return FINISHED if counted.succeeded >= least else phase
