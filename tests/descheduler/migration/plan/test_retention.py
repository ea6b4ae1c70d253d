"""When a job is forgotten."""

import math

import pytest

from api import names
from descheduler.migration.plan import conditions, retention
from tests.descheduler import builders
from tests.descheduler.migration.plan.given import (
    BEGUN,
    EVICTED,
    EVICTING,
    NOW,
    RULES,
    condition,
    job,
)

RECEIPT = names.ANNOTATION_MIGRATION_RECEIPT
AWAITED = {RECEIPT: '{"sentence":"expected"}'}
MEASURED = {RECEIPT: '{"sentence":"paid","outcome":{"verdict":"Paid","at":1.0}}'}
SUSPENDED = condition("Suspended", "True", "SwitchedOff")
RESUMED = condition("Suspended", "False", "Resumed", ago=-1000)
CASES = {
    "default ttl": (job(phase="Succeeded"), 600),
    "own ttl": (job(phase="Failed", spec={"ttl": 60.0}), 360),
    "no ttl": (job(phase="Failed", spec={"ttl": 0.0}), 1800),
    "open without ttl": (job(spec={"ttl": 0.0}), 1800),
    "unknown phase": (job(phase="Odd"), 600),
    "evicted": (job(EVICTED, phase="Succeeded"), 600),
    "evicting": (job(EVICTING), 86400),
    "paused": (job(spec={"paused": True}), 86400),
    "paused with a long ttl": (job(spec={"paused": True, "ttl": 1e6}), 1e6 + 300),
    "ended and not measured yet": (job(phase="Succeeded", annotations=AWAITED), 2400),
    "ended and measured": (job(phase="Succeeded", annotations=MEASURED), 600),
    "open and not measured": (job(annotations=AWAITED), 600),
    "suspended": (job(SUSPENDED), math.inf),
    "suspended and paused": (job(SUSPENDED, spec={"paused": True}), 86400),
    "aborted while it was suspended": (job(SUSPENDED, phase="Aborted"), 600),
    "resumed": (job(RESUMED), 1600),
    "ended after it was resumed": (job(RESUMED, phase="Succeeded"), 1600),
    "resumed and evicting": (job(RESUMED, EVICTING), 1000 + 86400),
    "ended while it was paused": (job(phase="Aborted", spec={"paused": True}), 600),
}


@pytest.mark.parametrize(("one", "seconds"), CASES.values(), ids=CASES)
def test_a_job_is_deleted_some_time_after_its_ttl(one, seconds):
    assert retention.deleted_at(one, RULES) == NOW + seconds


def evicted(number, ago, *told):
    found = told or (condition("Eviction", "True", conditions.EVICT_COMPLETE, ago=ago),)
    return builders.job(f"j{number}", "web-0", phase="Succeeded", status={"conditions": found})


REFUSED = condition("Eviction", "False", conditions.FAILED_EVICT)


def test_jobs_stay_for_as_long_as_limits_count_their_evictions():
    jobs = [evicted(0, 10), evicted(1, 99), evicted(2, 100), evicted(3, 0, REFUSED)]
    jobs += [evicted(4, 0, BEGUN), builders.job("j5", phase="Failed")]
    assert retention.counted(jobs, 100.0, NOW) == {"uid-j0", "uid-j1"}
    assert retention.counted(jobs, 0.0, NOW) == set()


def test_of_very_many_jobs_those_stay_that_evicted_last():
    jobs = [evicted(number, ago=number) for number in range(retention.MOST_COUNTED + 3)]
    kept = retention.counted(reversed(jobs), 1e6, NOW)
    assert kept == {job.uid for job in jobs[: retention.MOST_COUNTED]}
