"""How long limits hold an eviction back: those of its own profile, for what all have evicted."""

import pytest

from api import names
from descheduler.configuration import by_profile
from descheduler.configuration.arguments import migration as arguments
from descheduler.migration import eviction_history, stores
from descheduler.migration.plan import object_limits
from kube.informers import store
from process.runtime.clock import ManualClock
from tests.descheduler import builders
from tests.descheduler.migration.plan.given import EVICTING

POD = builders.pod("web-1", "node-0")
WORKLOAD = {names.ANNOTATION_MIGRATION_WORKLOAD: "web"}


def limits(seconds, most=1):
    limiter = arguments.ObjectLimiter(duration=seconds, max_migrating=most)
    return object_limits.Limits({arguments.WORKLOAD: limiter})


LIMITS = by_profile.ByProfile(limits(100), {"slow": limits(600), "free": object_limits.Limits()})


def history(*jobs, limits=LIMITS):
    """A history that knows these jobs."""
    seen = stores.Stores(*(store.Store() for _ in range(4)))
    for version, job in enumerate(jobs, 1):
        seen.jobs.put(store.Meta(job.name, job.uid, version), job)
    clock = ManualClock(builders.NOW)
    return eviction_history.EvictionHistory(seen, limits, lambda uid: 10, clock)


def job(name, profile="", **fields):
    notes = {**WORKLOAD, names.ANNOTATION_MIGRATION_PROFILE: profile}
    return builders.job(name, annotations=notes, **fields)


def evicted(profile):
    return job("before", profile, status={"conditions": (EVICTING,)})


@pytest.mark.parametrize("before", ["", "slow", "free"])
@pytest.mark.parametrize(
    ("profile", "seconds"), [("", 100), ("slow", 600), ("free", 0), ("of-before", 100)]
)
def test_a_job_keeps_the_limits_of_its_profile_for_the_evictions_of_all(before, profile, seconds):
    known = history(evicted(before))
    assert known.held_back(job("now", profile), POD) == pytest.approx(seconds)


def test_an_eviction_that_is_announced_counts_whatever_its_profile_allows():
    known = history()
    known.begins(job("before", "free"))
    assert known.held_back(job("now", "slow"), POD) == pytest.approx(600)


def test_a_job_that_forces_its_pod_out_is_not_held_back():
    forced = builders.job("now", annotations={names.ANNOTATION_FORCE_EVICT: "true"})
    assert history(evicted("")).held_back(forced, POD) == 0


def test_without_limits_nothing_is_held_back():
    unlimited = history(evicted(""), limits=by_profile.ByProfile(object_limits.Limits()))
    unlimited.begins(job("another"))
    assert unlimited.held_back(job("now"), POD) == 0
