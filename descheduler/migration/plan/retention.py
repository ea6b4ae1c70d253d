"""When a job is deleted, and its Reservation with it. Pure."""

from typing import Final

from descheduler.migration.plan import facts
from descheduler.model import objects

AFTER_TTL_SECONDS: Final = 300.0
WITHOUT_TTL_SECONDS: Final = 1800.0
LONGEST_PAUSE_SECONDS: Final = 86400.0
"""A job that is paused for longer than a day is forgotten."""


def deleted_at(job: objects.Job, rules: facts.Rules) -> float:
    """Return when a job is deleted, in seconds since the epoch.

    Five minutes after its ttl, or half an hour after its creation where it has none. A job that is
    at work, or that a person has paused, stays longer: it is deleted where it ended.
    """
    seconds = facts.ttl(job, rules)
    usual = WITHOUT_TTL_SECONDS if seconds is None else seconds + AFTER_TTL_SECONDS
    if job.is_open and job.spec.paused:
        return job.created + max(usual, LONGEST_PAUSE_SECONDS)
    if job.is_open and facts.has_begun(job):
        # It waits for a pod that terminates slowly, and ends by itself.
        return job.created + max(usual, LONGEST_PAUSE_SECONDS)
    return job.created + usual
