"""How often pods of one workload or namespace may be moved."""

import pytest
from hypothesis import given, strategies

from descheduler.configuration.arguments import migration as arguments
from descheduler.migration.plan import object_limits
from process.runtime import token_bucket
from tests.descheduler import builders
from tests.descheduler.migration.plan.given import NOW, condition

NAMESPACE = "default"


def limiters(**given_):
    return {name: arguments.ObjectLimiter(**fields) for name, fields in given_.items()}


def past(*ago, workload="w", namespace=NAMESPACE):
    return [object_limits.Eviction(workload, namespace, NOW - one) for one in ago]


def held(found, past_, most=2, workload="w"):
    now = object_limits.Eviction(workload, NAMESPACE, NOW)
    return object_limits.held_back(found, now, most, past_)


# Ten replicas move two pods within five minutes: one each 150 s.
BY_WORKLOAD = limiters(workload={"duration": 300.0})
CASES = {
    "nothing moved": ((), {}, 0),
    "just now": ((0,), {}, 150),
    "some time ago": ((100,), {}, 50),
    "long ago": ((150,), {}, 0),
    "another workload": ((0,), {"workload": "x"}, 0),
    "twice at once": ((0, 0), {}, 300),
    "a pause saves up no more than the burst": ((4000, 10), {}, 140),
}


@pytest.mark.parametrize(("ago", "of", "seconds"), CASES.values(), ids=CASES)
def test_one_pod_after_another(ago, of, seconds):
    assert held(BY_WORKLOAD, past(*ago, **of)) == pytest.approx(seconds)


def test_a_burst_moves_several_pods_at_once():
    burst = limiters(workload={"duration": 300.0, "burst": 2})
    assert held(burst, past(0)) == 0
    assert held(burst, past(0, 0)) == pytest.approx(150)


def test_namespaces_are_limited_by_number():
    by_namespace = limiters(namespace={"duration": 60.0, "max_migrating": 1})
    assert held(by_namespace, past(10, workload="x")) == pytest.approx(50)
    assert held(by_namespace, past(10, namespace="other")) == 0


@pytest.mark.parametrize(
    "found",
    [
        {},
        limiters(workload={"duration": 0.0}),
        limiters(namespace={"duration": 300.0}),
    ],
    ids=["none", "no duration", "no number"],
)
def test_a_limit_that_says_nothing_is_off(found):
    assert held(found, past(0, 0, 0)) == 0


def test_a_pod_without_a_controller_is_not_limited_by_workload():
    assert held(BY_WORKLOAD, past(0, workload=""), workload="") == 0


@given(
    strategies.lists(strategies.floats(0, 1000), max_size=20),
    strategies.integers(1, 5),
    strategies.integers(1, 4),
)
def test_it_is_a_token_bucket(ago, most, burst):
    """Played forward, the bucket of the reference lets an eviction pass when this one does."""
    found = limiters(workload={"duration": 100.0, "burst": burst})
    moments = sorted(1000 - one for one in ago)
    bucket = token_bucket.Bucket(most / 100.0, burst)
    allowed = [at for at in moments if bucket.take(at)]
    waits = held(found, past(*(1000 - at for at in allowed)), most)
    left = bucket.left(1000.0)
    assert (waits <= 1e-9) == (left >= 1) or abs(waits) < 1e-6


def test_jobs_tell_what_was_evicted():
    def job(name, *told):
        notes = {"koord.sh/migration-workload": "w"}
        return builders.job(name, annotations=notes, status={"conditions": told})

    jobs = [
        job("reserving"),
        job("announced", condition("Eviction", "False", "EvictionBegun")),
        job("refused", condition("Eviction", "False", "FailedEvict")),
        job("evicting", condition("Eviction", "False", "Evicting", ago=7)),
        job("gone", condition("Eviction", "True", "EvictComplete", ago=5)),
    ]
    assert object_limits.evictions(jobs) == {
        "uid-evicting": object_limits.Eviction("w", "default", NOW - 7),
        "uid-gone": object_limits.Eviction("w", "default", NOW - 5),
    }
    assert list(object_limits.announced(jobs)) == ["uid-announced"]


def test_evictions_are_remembered_longer_than_the_longest_limit():
    both = limiters(workload={"duration": 10.0}, namespace={"duration": 20.0})
    shorter = limiters(workload={"duration": 15.0})
    profiles = [object_limits.Limits(shorter), object_limits.Limits(both)]
    assert object_limits.memory_seconds(profiles) == 30
    assert object_limits.memory_seconds([object_limits.Limits()]) == 0
