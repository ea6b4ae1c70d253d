"""Phases and counts of PodGroups: every transition, and what stays as it is."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.gangs import status

NOW, CREATED = 1000.0, 900.0
LATE = CREATED + status.GIVEN_UP_SECONDS + 1.0


def pods(*phases, bound=None):
    """Pods of some phases; those that are no longer pending have a node."""
    return [
        status.MemberPod(
            f"ns/p{number}", phase, phase != "Pending" if bound is None else bound, float(number)
        )
        for number, phase in enumerate(phases)
    ]


def of(phase, **rest):
    return status.Status(phase, **rest)


P, R, S, F = "Pending", "Running", "Succeeded", "Failed"
CASES = {
    "new": ("", 2, pods(P), "Pending"),
    "new and complete": ("", 2, pods(P, P), "PreScheduling"),
    "too few": ("Pending", 2, pods(P), "Pending"),
    "complete": ("Pending", 2, pods(P, P, P), "PreScheduling"),
    "no minimum": ("Pending", 0, pods(P), "Pending"),
    "members are gone": ("Scheduling", 2, [], "Pending"),
    "none has a node": ("PreScheduling", 2, pods(P, P), "Scheduling"),
    "some have a node": ("PreScheduling", 2, pods(R, P), "Scheduling"),
    "all have a node": ("Scheduling", 2, pods(P, P, bound=True), "Scheduled"),
    "all run": ("Scheduling", 2, pods(R, R), "Running"),
    "one has succeeded": ("Running", 2, pods(R, S), "Running"),
    "enough have succeeded": ("Running", 2, pods(S, S, R), "Finished"),
    "one has failed and the others run": ("Running", 2, pods(F, R, R), "Failed"),
    "one has failed and too few are left": ("Running", 3, pods(F, R), "Scheduling"),
    "enough have succeeded and one failed": ("Running", 2, pods(S, S, F), "Finished"),
    "below the minimum again": ("Running", 2, pods(R), "Scheduling"),
    "finished for good": ("Finished", 2, [], "Finished"),
    "failed for good": ("Failed", 2, pods(R, R), "Failed"),
    "an unknown phase": ("Unknown", 2, pods(R, R), "Running"),
}


@pytest.mark.parametrize(("phase", "least", "found", "due"), CASES.values(), ids=CASES)
def test_phases(phase, least, found, due):
    after = status.following(of(phase), least, CREATED, found, NOW)
    assert after.phase == due


def test_counts_include_what_has_ended():
    after = status.following(of("Scheduling"), 9, CREATED, pods(R, R, S, F, P), NOW)
    assert after == of(
        "Scheduling", scheduled=4, running=2, succeeded=1, failed=1, schedule_start=NOW
    )


def test_the_start_is_noted_once():
    later = status.following(of("Scheduling", schedule_start=NOW), 2, CREATED, pods(P, P), 2000.0)
    assert later.schedule_start == NOW


def test_the_owners_of_the_oldest_pod_occupy_the_group():
    first, second = pods(P, P)
    first = msgspec.structs.replace(first, owners=("b", "a"))
    after = status.following(of("Pending"), 2, CREATED, [second, first], NOW)
    assert after.occupied_by == "ns/a,ns/b"


GIVEN_UP = {
    "late, and none runs": (LATE, 2, 0, True),
    "in time": (LATE - 2.0, 2, 0, False),
    "some run": (LATE, 2, 1, False),
    "not scheduled": (LATE, 1, 0, False),
    "never started": (None, 2, 0, False),
}


@pytest.mark.parametrize(("start", "scheduled", "running", "due"), GIVEN_UP.values(), ids=GIVEN_UP)
def test_a_group_is_left_alone_two_days_after_its_creation(start, scheduled, running, due):
    before = of("Scheduling", scheduled=scheduled, running=running, schedule_start=start)
    after = status.following(before, 2, CREATED, pods(R, R), NOW)
    assert (after == before) is due


MISSING = {
    "all run": (2, pods(R, R), 0),
    "more than enough": (2, pods(R, R, R), 0),
    "a failed one": (3, pods(R, F, R), 1),
    "a succeeded one is no loss": (2, pods(R, S), 0),
    "one that waits": (2, pods(R, P), 1),
}


@pytest.mark.parametrize(("least", "found", "due"), MISSING.values(), ids=MISSING)
def test_missing_members(least, found, due):
    assert status.missing(least, found) == due


@given(
    st.lists(st.sampled_from((P, R, S, F)), max_size=4).map(lambda phases: pods(*phases)),
    st.integers(0, 4),
    st.sampled_from(("", "Pending", "PreScheduling", "Scheduled", "Running", "Failed")),
)
def test_a_status_comes_to_rest(found, least, phase):
    states = [of(phase)]
    for _ in range(5):
        states.append(status.following(states[-1], least, CREATED, found, NOW))
    assert states[-1] == states[-2]


@pytest.mark.parametrize("phase", ["Failed", "Finished"])
def test_members_that_end_after_the_last_phase_are_counted_and_stay_counted(phase):
    """The first member that fails ends the gang while the others still run."""
    before = of(phase, scheduled=3, running=2, failed=1)
    ended = status.following(before, 3, CREATED, pods(F, F, S), NOW)
    assert ended == of(phase, scheduled=3, running=0, failed=2, succeeded=1)
    assert status.following(ended, 3, CREATED, pods(F), NOW) == ended
    assert status.following(ended, 3, CREATED, [], NOW) == ended


RESTARTED = 950.4
"""When the gang was restarted, after its creation."""


def following(before, found, least=3, now=NOW):
    return status.following(before, least, CREATED, found, now, RESTARTED)


def member(phase, created, **rest):
    return status.MemberPod(f"ns/{phase}-{created}", phase, phase != P, created, **rest)


ANEW = of("Pending", schedule_start=950.0)
OLD = {
    "one failed": of("Failed", scheduled=3, running=2, failed=1, schedule_start=910.0),
    "one is gone": of("Scheduling", scheduled=2, running=2, schedule_start=910.0),
    "its start was never noted": of("Running", scheduled=3, running=3),
}


@pytest.mark.parametrize("before", OLD.values(), ids=OLD)
def test_a_restarted_gang_begins_anew(before):
    left = [member(F, 901.0), member(R, 902.0, leaving=True), member(R, 903.0, leaving=True)]
    assert following(before, left) == ANEW
    assert following(ANEW, left) == ANEW


def test_what_the_restart_left_behind_is_not_counted():
    left = [member(F, 901.0), member(S, 902.0, leaving=True)]
    new = [member(P, 960.0), member(R, 961.0), member(F, 962.0)]
    gathered = following(ANEW, left + new)
    assert gathered == of("PreScheduling", schedule_start=950.0)
    counted = following(gathered, left + new)
    assert counted == of("Scheduling", scheduled=2, running=1, failed=1, schedule_start=950.0)


def test_a_member_that_succeeded_before_the_restart_counts():
    found = [member(S, 901.0), member(P, 960.0), member(P, 961.0)]
    assert following(of("PreScheduling", schedule_start=950.0), found).succeeded == 1


def test_a_gang_that_fails_after_its_restart_has_failed():
    before = of("Running", scheduled=3, running=3, schedule_start=950.0)
    failed = following(before, [member(F, 960.0), member(R, 961.0), member(R, 962.0)])
    assert failed == of("Failed", scheduled=3, running=2, failed=1, schedule_start=950.0)
    assert following(failed, []) == of("Failed", scheduled=3, failed=1, schedule_start=950.0)


def test_a_finished_gang_stays_finished_whenever_it_was_restarted():
    before = of("Finished", scheduled=3, succeeded=3, schedule_start=910.0)
    assert following(before, []) == before


def test_the_two_days_of_a_restarted_gang_begin_with_the_restart():
    before = of("Scheduled", scheduled=3, schedule_start=LATE)
    found = [member(R, LATE + number) for number in range(3)]
    after = status.following(before, 3, CREATED, found, LATE + 9.0, LATE)
    assert after.phase == "Running"
