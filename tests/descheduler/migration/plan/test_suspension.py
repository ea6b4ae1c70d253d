"""What jobs do while the live switch lets no pod move, and when it does again."""

import pytest

from api.koordinator import migration
from descheduler.migration.plan import facts, steps
from tests.descheduler import builders
from tests.descheduler.migration.plan.given import (
    BEGUN,
    CREATED,
    EVICTED,
    EVICTING,
    NOW,
    POD,
    REF,
    RULES,
    SCHEDULED,
    condition,
    given,
    job,
    reservation,
    reserving,
)
from tests.descheduler.migration.plan.planned import DIRECTLY, TERMINATING, kinds, planned, told

REFUSED = condition("Eviction", "False", "FailedEvict")
SUSPENDED = condition("Suspended", "True", "SwitchedOff", ago=1000)
RESUMED = condition("Suspended", "False", "Resumed", ago=100)
OFF = {"is_switched_off": True}
SUCCESSOR = builders.pod("web-0", "node-2", uid="another")


def member(*told_, pod=POD):
    return facts.Member(job(*told_), pod)


STAND = {
    "pending": given(job(phase=""), **OFF),
    "about to be evicted": given(job(BEGUN, spec=DIRECTLY), **OFF),
    "refused": given(job(REFUSED, spec=DIRECTLY), **OFF),
    "beyond its ttl": given(job(created=NOW - 1e6), **OFF),
    "of a group that stays": given(job(), group=(member(), member(BEGUN), member(REFUSED)), **OFF),
    "its Reservation was deleted": given(reserving(CREATED), **OFF),
}
ON_THEIR_WAY = {
    "accepted": given(job(EVICTING, spec=DIRECTLY), **OFF),
    "leaving": given(job(BEGUN, spec=DIRECTLY), TERMINATING, **OFF),
    "gone": given(job(BEGUN, spec=DIRECTLY), None, **OFF),
    "gone after a refusal": given(job(REFUSED, spec=DIRECTLY), None, **OFF),
    "evicted": given(job(EVICTED, spec=DIRECTLY), None, **OFF),
    "of a group that moves": given(job(), group=(member(), member(EVICTING)), **OFF),
    "of a group with a successor": given(job(), group=(member(BEGUN, pod=SUCCESSOR),), **OFF),
    "switched on": given(job()),
}


@pytest.mark.parametrize("of", STAND.values(), ids=STAND)
def test_what_does_not_leave_yet_stands_still(of):
    plan = planned(of)
    assert told(plan, "Suspended") == ("True", "SwitchedOff")
    (step,) = plan.steps
    assert set(step.fields) == {"conditions"}, "what it said last is still what happened last"


@pytest.mark.parametrize("of", ON_THEIR_WAY.values(), ids=ON_THEIR_WAY)
def test_what_is_on_its_way_goes_on(of):
    assert planned(of).message != "migration is switched off"
    assert told(planned(of), "Suspended") is None


def test_a_suspended_job_is_left_alone():
    plan = planned(given(job(SUSPENDED, created=NOW - 1e6), **OFF))
    assert (plan.steps, plan.again_in) == ((), 30)


def test_a_paused_job_is_paused():
    assert planned(given(job(spec={"paused": True}), **OFF)).message == "is paused"


@pytest.mark.parametrize("more", [{}, OFF], ids=["switched on", "its pod left meanwhile"])
def test_a_job_is_resumed_before_anything_else(more):
    of = given(job(REFUSED, SUSPENDED, created=NOW - 1e6), None, **more)
    assert kinds(planned(of)) == ["PatchStatus"]
    assert told(planned(of), "Suspended") == ("False", "Resumed")
    assert told(planned(of), "Eviction") == ("False", "FailedEvict")


def test_a_resumed_job_has_its_whole_ttl_again():
    assert facts.deadline(given(job(RESUMED, created=NOW - 1e6)), RULES) == NOW + 200
    assert facts.deadline(given(job(RESUMED, created=NOW)), RULES) == NOW + 300


def options(**spec):
    template = {"spec": spec}
    return {
        "reservation_options": migration.ReservationOptions.model_validate(
            {**REF, "template": template}
        )
    }


LASTS = {"spec": {"ttl": "0s"}}
CLOSES = {"spec": {"unschedulable": True}}
KEPT = {
    "made for it": (reserving(SUSPENDED), reservation(), [LASTS]),
    "suspended just now": (reserving(), reservation(), [LASTS]),
    "open for a pod that was about to leave": (
        reserving(SUSPENDED, BEGUN),
        reservation(),
        [CLOSES, LASTS],
    ),
    "opened before the switch": (reserving(BEGUN), reservation(), [CLOSES, LASTS]),
    "closed before the pod leaves": (
        reserving(SUSPENDED, BEGUN),
        reservation(closed=True),
        [LASTS],
    ),
    "open and lasts": (reserving(SUSPENDED, REFUSED), reservation(ttl="0s"), [CLOSES]),
    "open with a ttl of its own": (
        job(SUSPENDED, BEGUN, spec=options(ttl="1h")),
        reservation(),
        [CLOSES],
    ),
    "lasts already": (reserving(SUSPENDED), reservation(ttl="0s"), []),
    "of a person": (reserving(SUSPENDED, BEGUN), reservation(job_uid="another"), []),
    "with a ttl of its own": (job(SUSPENDED, spec=options(ttl="1h")), reservation(), []),
    "that expires": (
        job(SUSPENDED, spec=options(expires="2030-01-01T00:00:00Z")),
        reservation(),
        [],
    ),
    "has ended": (reserving(SUSPENDED, BEGUN), reservation("Failed"), []),
    "is being deleted": (reserving(SUSPENDED, BEGUN), reservation(deleting=True), []),
}


@pytest.mark.parametrize("group", [(), (member(BEGUN), member())], ids=["alone", "in a group"])
@pytest.mark.parametrize(("one", "held", "bodies"), KEPT.values(), ids=KEPT)
def test_the_place_of_a_suspended_job_neither_expires_nor_goes_to_another_pod(
    one, held, bodies, group
):
    plan = planned(given(one, held=held, group=group, **OFF))
    found = [step for step in plan.steps if isinstance(step, steps.PatchReservation)]
    assert found == [steps.PatchReservation("uid-job", "r-1", body) for body in bodies]
    assert plan.again_in == 30


def test_a_place_that_was_closed_meanwhile_opens_again_once_the_job_is_resumed():
    one = reserving(RESUMED, CREATED, SCHEDULED, BEGUN)
    (trial,) = planned(given(one, held=reservation(closed=True, ttl="0s"))).steps
    assert isinstance(trial, steps.Evict)
    assert trial.is_trial
