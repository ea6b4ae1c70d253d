"""How the pod of a job is evicted: by which policy, when again, and when its place opens."""

import dataclasses

import pytest

from descheduler.migration.plan import facts, steps
from tests.descheduler import builders
from tests.descheduler.migration.plan.given import (
    BEGUN,
    CREATED,
    EVICTING,
    NOW,
    POD,
    SCHEDULED,
    condition,
    given,
    job,
    reservation,
    reserving,
    ruled,
)
from tests.descheduler.migration.plan.planned import (
    DIRECTLY,
    TAKEN,
    TERMINATING,
    kinds,
    planned,
    status,
    told,
)


def test_a_pod_is_evicted_once_that_was_announced():
    notes = {
        "koordinator.sh/evict-reason": "too hot",
        "koordinator.sh/evict-trigger": "LowNodeLoad",
    }
    one = reserving(CREATED, SCHEDULED, BEGUN, annotations={**job().annotations, **notes})
    (step,) = planned(given(one, held=reservation())).steps
    assert step == steps.Evict("Eviction", "too hot", "LowNodeLoad")


POLICIES = {
    "default": ({}, {}, "Eviction", "Eviction"),
    "label of the pod": ({"koordinator.sh/evict-policy": "Delete"}, {}, "Eviction", "Delete"),
    "label of the job": ({}, {"koordinator.sh/evict-policy": "Delete"}, "Eviction", "Delete"),
    "pod before job": (
        {"koordinator.sh/evict-policy": "SoftEviction"},
        {"koordinator.sh/evict-policy": "Delete"},
        "Eviction",
        "SoftEviction",
    ),
    "unknown": ({"koordinator.sh/evict-policy": "Odd"}, {}, "Delete", "Delete"),
}


@pytest.mark.parametrize(("of_pod", "of_job", "default", "policy"), POLICIES.values(), ids=POLICIES)
def test_labels_decide_how_a_pod_is_evicted(of_pod, of_job, default, policy):
    pod = builders.pod("web-0", "node-0", labels=of_pod)
    one = job(BEGUN, spec=DIRECTLY, labels=of_job)
    (step,) = planned(given(one, pod), ruled(eviction_policy=default)).steps
    assert (step.policy, step.reason) == (policy, "NotSet")


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("even", ("EvictDirectly", 60, "Delete")),
        ("of-before", ("ReservationFirst", 300, "Eviction")),
        ("", ("ReservationFirst", 300, "Eviction")),
    ],
)
def test_a_job_that_says_nothing_is_carried_out_as_its_profile_says(profile, expected):
    rules = ruled(facts.Defaults("EvictDirectly", 60, "Delete"))
    one = job(annotations={"koord.sh/migration-profile": profile})
    found = (facts.mode(one, rules), facts.ttl(one, rules), facts.policy(one, POD, rules))
    assert found == expected


def test_a_soft_eviction_waits_for_another_client():
    soft = {"scheduling.koordinator.sh/soft-eviction": "{}"}
    labels = {"koordinator.sh/evict-policy": "SoftEviction"}
    pod = builders.pod("web-0", "node-0", labels=labels, annotations=soft)
    plan = planned(given(job(EVICTING, spec=DIRECTLY), pod))
    assert (plan.steps, plan.again_in) == ((), facts.LOOK_AGAIN_SECONDS)


@pytest.mark.parametrize(
    ("since", "told_ago", "rest"),
    [(0, 0, 3), (0, 2, 1), (3, 0, 3), (12, 0, 12), (100, 0, 30), (12, 13, None)],
)
def test_a_refused_eviction_is_tried_again_after_a_growing_pause(since, told_ago, rest):
    refused = condition("Eviction", "False", "FailedEvict", ago=told_ago)
    refused["lastTransitionTime"] = NOW - told_ago - since
    plan = planned(given(job(refused, spec=DIRECTLY)))
    if rest is None:
        assert kinds(plan) == ["Evict"]
    else:
        assert (plan.steps, plan.again_in) == ((), rest)


@pytest.mark.parametrize(("ago", "expected"), [(5, []), (10, ["Evict"])])
def test_an_accepted_eviction_without_effect_is_tried_again(ago, expected):
    accepted = condition("Eviction", "False", "Evicting", ago=ago)
    assert kinds(planned(given(job(accepted, spec=DIRECTLY)))) == expected


OPENS_AT_ONCE = steps.PatchReservation("uid-job", "r-1", {"spec": {"unschedulable": False}})


OPENS = dataclasses.replace(OPENS_AT_ONCE, in_turn=True)


CLOSED = reservation(closed=True)


SOFT = {"koordinator.sh/evict-policy": "SoftEviction"}


CLOSINGS = {
    "a budget is asked first": (POD, (BEGUN,), CLOSED, steps.Evict("Eviction", "NotSet", "", True)),
    "no budget counts": (builders.pod("web-0", "node-0", labels=SOFT), (BEGUN,), CLOSED, OPENS),
    "terminating": (TERMINATING, (BEGUN,), CLOSED, OPENS_AT_ONCE),
    "gone": (None, (BEGUN,), CLOSED, OPENS_AT_ONCE),
    "open": (POD, (BEGUN,), reservation(), steps.Evict("Eviction", "NotSet", "")),
    "of a person": (
        POD,
        (BEGUN,),
        reservation(closed=True, job_uid="another"),
        steps.Evict("Eviction", "NotSet", ""),
    ),
}


@pytest.mark.parametrize(("pod", "told_", "held", "step"), CLOSINGS.values(), ids=CLOSINGS)
def test_a_reservation_is_closed_until_its_pod_leaves(pod, told_, held, step):
    plan = planned(given(reserving(CREATED, SCHEDULED, *told_), pod, held))
    assert plan.steps == (step,)


def test_a_place_that_another_pod_took_before_the_eviction_ends_the_job():
    one = reserving(CREATED, SCHEDULED, BEGUN)
    taken = reservation("Succeeded", currentOwners=TAKEN)
    assert status(planned(given(one, POD, taken)))["reason"] == "ForbiddenMigratePod"
    # Where the pod is gone, its successor may have taken it.
    assert told(planned(given(one, None, taken)), "Eviction") == ("True", "EvictComplete")


def test_a_limit_of_the_workload_holds_a_job_back_before_it_reserves_or_evicts():
    held = given(job(), held_back_seconds=40.0)
    assert (planned(held).steps, planned(held).again_in) == ((), 40)
    begun = given(job(BEGUN, spec=DIRECTLY), held_back_seconds=40.0)
    assert kinds(planned(begun)) == ["Evict"]


def test_a_job_waits_for_a_pod_that_terminates_slowly_beyond_its_ttl():
    slow = builders.pod("web-0", "node-0", leaves_at=NOW + 600)
    one = reserving(CREATED, SCHEDULED, EVICTING, created=NOW - 299)
    plan = planned(given(one, slow, reservation()), now=NOW + 500)
    assert plan.steps == ()
    late = planned(given(one, slow, reservation()), now=NOW + 600 + facts.SETTLING_SECONDS)
    assert status(late)["reason"] == "Timeout"
