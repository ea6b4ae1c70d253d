"""Whose Reservation is open, so that pods of one workload do not take each other's places.

Any pod of a workload may use an open Reservation of it. Were two open while only one of the pods
leaves, its successor could take the other place: one job would wait for ever, and one would fail.
"""

from typing import Final

from api.koordinator import scheduling
from descheduler.migration import stores
from descheduler.migration.plan import facts, gang_barrier
from descheduler.model import objects
from process.runtime import clock as clocks

_ECHO_SECONDS: Final = 10.0
"""How long the watch may take to show that a Reservation was opened."""


class Turns:
    """Of the jobs of one workload, one at a time opens its Reservation.

    Its turn lasts until a pod uses the Reservation, or the job closes it again or ends. The jobs of
    a group are left out: all their pods leave, or none.
    """

    def __init__(self, seen: stores.Stores, clock: clocks.Clock) -> None:
        self._seen = seen
        self._clock = clock
        self._opened: dict[str, tuple[str, float]] = {}
        """By uid of the workload: the job that opened its Reservation last, and until when that
        may not be seen yet."""

    def ahead(self, job: objects.Job) -> str:
        """Return the job of the same workload whose turn it is, empty where there is none."""
        workload = facts.workload(job)
        if not workload or gang_barrier.group(job):
            return ""
        if (unseen := self._unseen(workload)) not in ("", job.name):
            return unseen
        others = (one for one in self._seen.of_workload(workload) if one.name != job.name)
        return next((one.name for one in others if self._is_open(one)), "")

    def take(self, job: objects.Job) -> bool:
        """Let a job open its Reservation; False where it is the turn of another one."""
        if self.ahead(job):
            return False
        if workload := facts.workload(job):
            now = self._clock.monotonic()
            self._opened = {uid: one for uid, one in self._opened.items() if one[1] > now}
            self._opened[workload] = job.name, now + _ECHO_SECONDS
        return True

    def _unseen(self, workload: str) -> str:
        """Return the job that has opened its Reservation, where the watch does not show it yet."""
        name, until = self._opened.get(workload, ("", 0.0))
        job = self._seen.jobs.get(name) if name else None
        held = self._seen.reservation(job) if job is not None and job.is_open else None
        if held is None or not held.raw.spec.unschedulable or self._clock.monotonic() >= until:
            self._opened.pop(workload, None)
            return ""
        return name

    def _is_open(self, job: objects.Job) -> bool:
        """Whether a pod of the workload may take the place that is kept for this job."""
        if not job.is_open or job.spec.paused or gang_barrier.group(job):
            return False
        held = self._seen.reservation(job)
        return (
            held is not None
            and facts.has_begun(job)
            and facts.owns(job, held)
            and not held.raw.spec.unschedulable
            and held.raw.status.phase == scheduling.AVAILABLE
            and held.raw.metadata.deletion_timestamp is None
        )
