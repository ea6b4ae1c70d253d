"""One step of a job at a time: what is written in which state."""

import msgspec
import pytest

from descheduler.migration.plan import conditions, steps
from tests.descheduler import builders
from tests.descheduler.migration.plan.given import (
    BEGUN,
    BOUND,
    CREATED,
    EVICTED,
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

FAILED_SCHEDULING = [
    {"type": "Scheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
]


NEW = builders.pod("web-1", "node-1")


NOT_READY = builders.pod("web-1", "node-1", ready=False)


ON_NODE_0 = {"koord.sh/migration-target": "node-1"}


UNSCHEDULABLE = reservation("Pending", "", conditions=FAILED_SCHEDULING)


PENDING_POD = builders.pod("web-0", "")


FOR_PENDING = [{"object": {"kind": "Pod", "name": "web-0", "uid": "uid-web-0"}}]


EXPIRED = [{"type": "Ready", "status": "False", "reason": "Expired", "message": "it expired"}]


FAILURES = {
    "timeout": (given(job(created=NOW - 300)), "Timeout"),
    "timeout of a job that waits for arbitration": (
        given(job(phase="", annotations={}, created=NOW - 301)),
        "Timeout",
    ),
    "own ttl": (given(job(created=NOW - 60, spec={"ttl": 60.0})), "Timeout"),
    "no pod at the beginning": (given(job(phase=""), None), "MissingPod"),
    "terminating at the beginning": (given(job(phase=""), TERMINATING), "MissingPod"),
    "no pod to reserve for": (given(job(), None), "MissingPod"),
    "no Reservation any more": (given(reserving(CREATED)), "MissingReservation"),
    "another Reservation of the name": (
        given(reserving(CREATED), held=reservation(uid="r-2")),
        "MissingReservation",
    ),
    "on the node of the pod": (
        given(reserving(CREATED), held=reservation(node="node-0")),
        "ForbiddenMigratePod",
    ),
    "bound by another pod": (
        given(reserving(CREATED, SCHEDULED), held=reservation("Succeeded")),
        "ForbiddenMigratePod",
    ),
    "expired before": (
        given(reserving(CREATED), held=reservation("Failed", conditions=EXPIRED)),
        "ReservationExpired",
    ),
    "failed otherwise": (
        given(
            reserving(CREATED),
            held=reservation("Failed", conditions=[{**EXPIRED[0], "reason": "Broken"}]),
        ),
        "Unschedulable",
    ),
    "pod left before it was evicted": (
        given(reserving(CREATED, SCHEDULED), None, reservation()),
        "MissingPod",
    ),
    "Reservation expired before a new pod came": (
        given(reserving(CREATED, SCHEDULED, EVICTED), None, reservation("Failed")),
        "ReservationExpired",
    ),
    "used up without a new pod": (
        given(reserving(CREATED, SCHEDULED, EVICTED), None, reservation("Succeeded")),
        "ForbiddenMigratePod",
    ),
    "pending pod is gone": (
        given(reserving(CREATED, SCHEDULED), None, reservation(owners=FOR_PENDING)),
        "MissingPod",
    ),
    "Reservation of a pending pod is bound by another one": (
        given(
            reserving(CREATED, SCHEDULED),
            PENDING_POD,
            reservation("Succeeded", owners=FOR_PENDING, currentOwners=TAKEN),
        ),
        "ForbiddenMigratePod",
    ),
}


@pytest.mark.parametrize(("facts_", "reason"), FAILURES.values(), ids=FAILURES)
def test_a_job_that_cannot_succeed_fails_for_a_reason(facts_, reason):
    plan = planned(facts_)
    found = status(plan)
    assert (found["phase"], found["reason"]) == ("Failed", reason)
    assert found["message"]
    event = next(step for step in plan.steps if isinstance(step, steps.Tell))
    assert (event.reason, event.warning) == (reason, True)
    # Conditions stay as they were, and another one says how the job has ended.
    before = [one.type for one in facts_.job.status.conditions]
    (patch,) = [step for step in plan.steps if isinstance(step, steps.PatchStatus)]
    *kept, ended = patch.fields["conditions"]
    assert [one["type"] for one in kept] == before
    assert (ended["type"], ended["status"], ended["reason"]) == ("Succeeded", "False", reason)


PROGRESS = {
    "Reservation is there": (
        given(reserving(), held=reservation("Pending", "")),
        ("ReservationCreated", "True", ""),
    ),
    "Reservation finds no node": (
        given(reserving(CREATED), held=UNSCHEDULABLE),
        ("ReservationScheduled", "False", "Unschedulable"),
    ),
    "Reservation has a node": (
        given(reserving(CREATED), held=reservation()),
        ("ReservationScheduled", "True", ""),
    ),
    "eviction is announced": (
        given(reserving(CREATED, SCHEDULED), held=reservation()),
        ("Eviction", "False", "EvictionBegun"),
    ),
    "eviction without a Reservation is announced": (
        given(job(spec=DIRECTLY)),
        ("Eviction", "False", "EvictionBegun"),
    ),
    "pod is terminating": (
        given(reserving(CREATED, SCHEDULED, BEGUN), TERMINATING, reservation()),
        ("Eviction", "False", "Evicting"),
    ),
    "pod is gone": (
        given(reserving(CREATED, SCHEDULED, EVICTING), None, reservation()),
        ("Eviction", "True", "EvictComplete"),
    ),
    "pod is gone although no answer came": (
        given(reserving(CREATED, SCHEDULED, BEGUN), None, reservation()),
        ("Eviction", "True", "EvictComplete"),
    ),
    "no new pod yet": (
        given(reserving(CREATED, SCHEDULED, EVICTED), None, reservation()),
        ("PodBoundReservation", "False", "WaitForPodBindReservation"),
    ),
    "new pod": (
        given(
            reserving(CREATED, SCHEDULED, EVICTED),
            None,
            reservation("Succeeded", currentOwners=TAKEN),
        ),
        ("ReservationBound", "True", ""),
    ),
    "new pod is not ready": (
        given(
            reserving(CREATED, SCHEDULED, EVICTED, BOUND),
            None,
            reservation("Succeeded", currentOwners=TAKEN),
            owner=NOT_READY,
        ),
        ("BoundPodReady", "False", "WaitForBoundPodReady"),
    ),
    "pending pod waits": (
        given(reserving(CREATED, SCHEDULED), PENDING_POD, reservation(owners=FOR_PENDING)),
        ("PodScheduled", "False", "Unschedulable"),
    ),
}


@pytest.mark.parametrize(("facts_", "expected"), PROGRESS.values(), ids=PROGRESS)
def test_progress_is_a_condition_and_repeated_in_the_status(facts_, expected):
    kind, word, reason = expected
    plan = planned(facts_)
    assert told(plan, kind) == (word, reason)
    found = status(plan)
    assert (found["status"], found["reason"]) == (kind, reason)
    assert found.get("phase") is None
    assert plan.again_in is not None


def test_a_new_job_waits_for_arbitration():
    plan = planned(given(job(phase="", annotations={}, created=NOW - 10)))
    assert (plan.steps, plan.again_in) == ((), 290)


def referring(**reference):
    one = job(phase="")
    spec = one.spec.but(pod_ref=one.spec.pod_ref.but(**reference))
    return msgspec.structs.replace(one, spec=spec)


@pytest.mark.parametrize("missing", ["namespace", "name"])
def test_a_job_that_names_no_pod_fails(missing):
    found = status(planned(given(referring(**{missing: ""}), None)))
    assert found["reason"] == "InvalidPodRef"


def test_the_first_step_writes_which_pod_is_meant():
    (patch,) = planned(given(referring(uid=""))).steps
    assert patch.body == {
        "spec": {"podRef": {"uid": "uid-web-0"}},
        "metadata": {"annotations": {"koord.sh/migration-workload": "web"}},
    }


def test_a_pod_without_a_controller_has_no_workload():
    bare = builders.pod("web-0", "node-0", controller="")
    (patch,) = planned(given(referring(uid=""), bare)).steps
    assert patch.body == {"spec": {"podRef": {"uid": "uid-web-0"}}}


def test_then_it_is_running():
    assert status(planned(given(job(phase="")))) == {"phase": "Running"}


@pytest.mark.parametrize("phase", ["", "Running"])
def test_a_paused_job_does_nothing_not_even_time_out(phase):
    plan = planned(given(job(phase=phase, spec={"paused": True}, created=NOW - 9999)))
    assert (plan.steps, plan.again_in) == ((), None)


def test_a_job_that_is_being_deleted_does_nothing():
    assert planned(given(job(leaves_at=NOW), held=reservation())).steps == ()


def test_no_ttl_means_the_default_and_zero_means_never():
    never = given(job(created=NOW - 1e6, spec={"ttl": 0.0}), held=None)
    assert kinds(planned(never)) == ["CreateReservation"]
    rules = ruled(ttl=0.0)
    assert kinds(planned(given(job(created=NOW - 1e6)), rules)) == ["CreateReservation"]


def test_every_wait_ends_at_the_ttl():
    plan = planned(given(reserving(CREATED, created=NOW - 299), held=reservation("Pending", "")))
    assert (plan.steps, plan.again_in) == ((), 1)


ENDED = {
    "failed": ("Failed", reservation(), True),
    "aborted by a person": ("Aborted", reservation(), True),
    "a phase that no controller knows": ("Odd", reservation(), True),
    "failed, used up": ("Failed", reservation("Succeeded"), True),
    "succeeded, not used": ("Succeeded", reservation(), True),
    "succeeded, used up": ("Succeeded", reservation("Succeeded"), False),
    "failed, deleted already": ("Failed", reservation(deleting=True), False),
    "failed, of a person": ("Failed", reservation(job_uid="another"), False),
    "failed without one": ("Failed", None, False),
}


@pytest.mark.parametrize(("phase", "held", "is_deleted"), ENDED.values(), ids=ENDED)
def test_nothing_stays_reserved_for_a_job_that_has_ended(phase, held, is_deleted):
    plan = planned(given(job(phase=phase), held=held))
    expected = (steps.DeleteReservation("uid-job", "r-1"),) if is_deleted else ()
    assert plan.steps == expected


def test_a_reservation_that_only_one_node_may_have_is_given_up_after_a_while():
    refused = condition("ReservationScheduled", "False", "Unschedulable", ago=60)
    one = reserving(CREATED, refused, annotations={**job().annotations, **ON_NODE_0})
    assert status(planned(given(one, held=UNSCHEDULABLE)))["reason"] == "Unschedulable"
    anywhere = reserving(CREATED, {**refused, "message": "0/3 nodes"})
    assert planned(given(anywhere, held=UNSCHEDULABLE)).steps == ()


def test_a_used_reservation_without_order_gets_one():
    plan = planned(given(reserving(), held=reservation(labels={})))
    (patch,) = plan.steps
    labels = {"scheduling.koordinator.sh/reservation-order": str(int(NOW * 1000))}
    assert (patch.name, patch.uid, patch.body) == (
        "uid-job",
        "r-1",
        {"metadata": {"labels": labels}},
    )


DONE = {
    "evicted directly": (
        given(job(EVICTED, spec=DIRECTLY), None),
        'Pod "default/web-0" has been evicted',
    ),
    "new pod is ready": (
        given(
            reserving(CREATED, SCHEDULED, EVICTED, BOUND),
            None,
            reservation("Succeeded", currentOwners=TAKEN),
            owner=NEW,
        ),
        'Pod "default/web-0" was moved to node "node-1", where it is Pod "default/web-1"',
    ),
    "new pod is gone again": (
        given(
            reserving(CREATED, SCHEDULED, EVICTED, BOUND),
            None,
            reservation("Succeeded", currentOwners=TAKEN),
        ),
        'Pod "default/web-0" was moved to node "node-1", where it is Pod "default/web-1"',
    ),
    "pending pod is placed": (
        given(
            reserving(CREATED, SCHEDULED),
            POD,
            reservation("Succeeded", "node-0", owners=FOR_PENDING),
        ),
        'Assign Pod "default/web-0" to node "node-0"',
    ),
}


@pytest.mark.parametrize(("facts_", "message"), DONE.values(), ids=DONE)
def test_a_job_succeeds(facts_, message):
    found = status(planned(facts_))
    assert (found["phase"], found["status"], found["reason"]) == ("Succeeded", "Complete", "")
    assert found["message"] == message


def test_the_new_pod_is_named_in_the_status():
    one = reserving(CREATED, SCHEDULED, EVICTED)
    plan = planned(given(one, None, reservation("Succeeded", currentOwners=TAKEN)))
    assert status(plan)["podRef"] == TAKEN[0]


def test_moments_of_a_condition_change_with_its_status_only():
    old = condition("ReservationScheduled", "False", "Unschedulable", ago=50, message="before")
    plan = planned(given(reserving(CREATED, old), held=UNSCHEDULABLE))
    (patch,) = [step for step in plan.steps if isinstance(step, steps.PatchStatus)]
    (found,) = [one for one in patch.fields["conditions"] if one["type"] == "ReservationScheduled"]
    assert found["lastTransitionTime"] < found["lastProbeTime"]


def test_a_long_message_is_cut():
    fields = conditions.failed(job().status, "Timeout", "x" * 5000, 0.0)
    assert len(fields["message"]) == 1024
