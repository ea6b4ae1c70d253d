"""What is said after an eviction was accepted or refused."""

from descheduler.migration.plan import evicting, reserving, steps
from tests.descheduler.migration.plan import given as cases
from tests.descheduler.migration.plan.given import BEGUN, NOW, condition, given, job, reservation


def only(plan, kind):
    (found,) = [step for step in plan.steps if isinstance(step, kind)]
    return found


def test_an_accepted_eviction_is_told_on_the_pod():
    one = job(BEGUN, annotations={"koordinator.sh/evict-trigger": "LowNodeLoad"})
    plan = evicting.accepted(given(one), NOW)
    fields = only(plan, steps.PatchStatus).fields
    message = 'Pod "default/web-0" evicted from node "node-0" by the reason "LowNodeLoad"'
    assert (fields["status"], fields["reason"]) == ("Eviction", "Evicting")
    assert fields["message"] == message
    note = 'Pod evicted from node "node-0" by the reason "LowNodeLoad"'
    assert [step for step in plan.steps if isinstance(step, steps.Tell)] == [
        steps.Tell("Descheduled", note, about=steps.About.POD),
        steps.Tell("Descheduled", message, about=steps.About.WORKLOAD),
    ]


def test_a_refusal_keeps_since_when_the_pod_is_to_leave():
    begun = condition("Eviction", "False", "EvictionBegun", ago=20)
    plan = evicting.refused(given(job(begun)), "429: budget", NOW)
    (found,) = only(plan, steps.PatchStatus).fields["conditions"]
    assert (found["reason"], found["message"]) == ("FailedEvict", "429: budget")
    assert found["lastTransitionTime"] < found["lastProbeTime"]
    assert plan.again_in == 3


def test_a_reservation_that_could_not_be_created_is_told_once():
    plan = reserving.not_created(given(job()), "422: no", NOW)
    assert only(plan, steps.PatchStatus).fields["reason"] == "FailedCreateReservation"
    said = condition("ReservationCreated", "False", "FailedCreateReservation", message="422: no")
    assert reserving.not_created(given(job(said)), "422: no", NOW).steps == ()


def test_a_created_reservation_is_named_by_its_job():
    patch = only(reserving.referenced(job(), reservation()), steps.PatchJob)
    reference = patch.body["spec"]["reservationOptions"]["reservationRef"]
    assert reference == {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "name": "uid-job",
        "uid": "r-1",
    }


def test_a_reservation_of_that_name_that_another_client_made_is_not_taken():
    found = reserving.referenced(job(), reservation(job_uid="another"))
    assert isinstance(found, steps.Failure)
    assert found.reason == "FailedCreateReservation"


def test_the_expected_name_is_the_uid_of_the_job():
    assert reserving.expected_name(cases.job()) == "uid-job"
