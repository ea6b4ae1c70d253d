"""Moves of the last time, which limits by the hour and the cool-down look back at. Pure.

It is rebuilt from the PodMigrationJobs after a restart, as far as these are still there.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from api import names
from descheduler.model import objects, picture, podinfo

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
KEPT: Final = 1.5 * DAY
"""How long moves are remembered: longer than the longest rest after one."""
SUCCESSOR_WITHIN: Final = 900.0
"""Seconds after the decision in which a successor is created: a Reservation is placed first."""
_EVICTION: Final = "Eviction"
_CREATED_WITHIN: Final = 300.0
"""Seconds after which a pod that no job moves and that is not terminating was not moved."""


class Line(msgspec.Struct, frozen=True):
    """What moves led to a pod that stands somewhere: it is the last of a line of successors."""

    turns: int = 0
    """How often pods of the line have moved."""
    returns: int = 0
    """How often one of them came to a node that another one had left a short time before."""
    left: Mapping[str, float] = {}
    """The last nodes that they left, and when."""


NEW: Final = Line()


class Moved(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod that was moved or is being moved."""

    at: float
    """When it was decided, in seconds since the epoch."""
    namespace: str
    node: str = ""
    """Empty where it is not known any more, as for the workload."""
    workload: str = ""
    """UID of its controller."""
    target: str = ""
    """The node that it moves to; empty where that is not known."""
    turn: int = 1
    """How often pods of its line have moved, this time included."""
    returns: int = 0
    """How often pods of its line, this one included, came back to a node."""
    left: Mapping[str, float] = {}
    """The last nodes that its line had left before, and when."""


History = Mapping[str, Moved]
"""By uid of the pod."""
NONE: Final[History] = {}


def moved(pod: podinfo.Pod, at: float, target: str = "", line: Line = NEW) -> Moved:
    """Return what is remembered of a pod that is moved now."""
    controller = pod.controller
    workload = controller.uid if controller is not None else ""
    return Moved(
        at, pod.namespace, pod.node, workload, target, line.turns + 1, line.returns, line.left
    )


def followed(before: History, seen: picture.Picture, keep_seconds: float) -> History:
    """Return a history with what the jobs of a picture say, and without what is too long ago.

    Moves of a line that came back to a node are kept for as long as its last pod stands.
    """
    jobs = {job.spec.pod_ref.uid: job for job in seen.jobs.values() if job.spec.pod_ref.uid}
    oldest = seen.now - keep_seconds
    kept = {
        uid: one
        for uid, one in before.items()
        if (one.at >= oldest or (one.returns and _has_successor(one, seen)))
        and _happened(uid, one, jobs.get(uid), seen)
    }
    for uid, job in jobs.items():
        if uid not in kept and job.created >= oldest and _moves(job):
            kept[uid] = _of_job(job, seen)
    return kept


def within(moves: History, now: float, seconds: float) -> Iterator[Moved]:
    """Yield the moves of the last seconds."""
    return (one for one in moves.values() if one.at > now - seconds)


def _has_successor(one: Moved, seen: picture.Picture) -> bool:
    """Whether a pod stands that may have replaced a moved one."""
    return any(
        pod.is_active and one.at <= pod.created <= one.at + SUCCESSOR_WITHIN
        for pod in seen.by_controller.get(one.workload, ())
    )


def _happened(uid: str, one: Moved, job: objects.Job | None, seen: picture.Picture) -> bool:
    if job is not None:
        return _moves(job)
    # Without a job the pod leaves or has left, or the job was removed long after; or none was made.
    pod = seen.pods.get(uid)
    return seen.now - one.at < _CREATED_WITHIN or pod is None or pod.leaves_at >= 0


def _moves(job: objects.Job) -> bool:
    """Whether a job moves its pod, or has evicted it."""
    if job.is_open or job.phase == "Succeeded":
        return True
    return any(
        one.type == _EVICTION and (one.status == "True" or one.reason == "Evicting")
        for one in job.status.conditions
    )


def _of_job(job: objects.Job, seen: picture.Picture) -> Moved:
    pod = seen.pods.get(job.spec.pod_ref.uid)
    notes = job.annotations
    target = job.status.node_name or notes.get(names.ANNOTATION_MIGRATION_TARGET, "")
    if pod is not None:
        return moved(pod, job.created, target)
    workload = notes.get(names.ANNOTATION_MIGRATION_WORKLOAD, "")
    source = notes.get(names.ANNOTATION_MIGRATION_SOURCE, "")
    return Moved(job.created, job.spec.pod_ref.namespace, source, workload, target)
