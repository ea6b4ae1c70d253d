"""When a job is deleted, and its Reservation with it. Pure."""

import heapq
import math
from collections.abc import Collection, Iterable
from typing import Final

from api import names
from descheduler.migration.plan import conditions, facts, object_limits
from descheduler.model import objects

_OUTCOME: Final = '"outcome":'
AFTER_TTL_SECONDS: Final = 300.0
WITHOUT_TTL_SECONDS: Final = 1800.0
AWAITED_SECONDS: Final = 1800.0
"""How much longer a job stays whose receipt lacks its outcome."""
LONGEST_PAUSE_SECONDS: Final = 86400.0
"""A job that is paused for longer than a day is forgotten."""
MOST_COUNTED: Final = 1000
"""Jobs that stay for limits per time alone: those of a busy cluster must not fill its etcd."""


def deleted_at(job: objects.Job, rules: facts.Rules) -> float:
    """Return when a job is deleted, in seconds since the epoch.

    Five minutes after its ttl, or half an hour after its creation where it has none; half an hour
    later while its receipt does not say what the move has brought. A job that is at work, or that
    a person has paused, stays longer: it is deleted where it ended. One that was suspended has its
    whole ttl again, once it is resumed.
    """
    if job.is_open and not job.spec.paused and conditions.holds(job.status, conditions.SUSPENDED):
        return math.inf
    begins = facts.counts_from(job)
    seconds = facts.ttl(job, rules)
    usual = WITHOUT_TTL_SECONDS if seconds is None else seconds + AFTER_TTL_SECONDS
    if job.is_open and (job.spec.paused or facts.has_begun(job)):
        # What has begun waits for a pod that terminates slowly, and ends by itself.
        return begins + max(usual, LONGEST_PAUSE_SECONDS)
    is_awaited = not job.is_open and _lacks_outcome(job)
    return begins + usual + (AWAITED_SECONDS if is_awaited else 0.0)


def counted(jobs: Iterable[objects.Job], seconds: float, now: float) -> Collection[str]:
    """Return the uids of jobs that stay since limits count evictions for so many seconds.

    The next leader reads evictions off the jobs. Of very many those stay that evicted last.
    """
    evictions = object_limits.evictions(jobs)
    recent = ((one.at, uid) for uid, one in evictions.items() if now - one.at < seconds)
    return {uid for _, uid in heapq.nlargest(MOST_COUNTED, recent)}


def _lacks_outcome(job: objects.Job) -> bool:
    """Whether a receipt lacks its outcome; one that cannot be read lacks it as well."""
    written = job.annotations.get(names.ANNOTATION_MIGRATION_RECEIPT, "")
    return bool(written) and _OUTCOME not in written
