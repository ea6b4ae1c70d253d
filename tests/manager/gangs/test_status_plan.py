"""Phase, counts and conditions of a PodGroup."""

import pytest

from domain.gangs import status
from manager.gangs import objects, quorum, status_plan
from tests.manager.gangs import ganged

NOW = ganged.CREATED + 1000.0


def members(*pods):
    return tuple(
        ganged.pod(
            f"p{number}",
            group=True,
            node="" if kind == "waits" else "n1",
            phase={"waits": "Pending", "bound": ""}.get(kind, kind),
            created=ganged.CREATED + number,
            owner={"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "u"},
        )
        for number, kind in enumerate(pods)
    )


UP, OK, BAD, BOUND, WAITS = "Running", "Succeeded", "Failed", "bound", "waits"


@pytest.mark.parametrize(
    ("before", "pods", "after"),
    [
        pytest.param("", (WAITS,), "Pending", id="one-of-two"),
        pytest.param("Pending", (WAITS, WAITS), "PreScheduling", id="gathered"),
        pytest.param("PreScheduling", (WAITS, WAITS), "Scheduling", id="is-placed"),
        pytest.param("Scheduling", (BOUND, BOUND), "Scheduled", id="all-bound"),
        pytest.param("Scheduling", (UP, UP), "Running", id="all-run"),
        pytest.param("Running", (OK, OK, BAD), "Finished", id="enough-have-ended-well"),
        pytest.param("Running", (UP, BAD), "Failed", id="too-few-are-left"),
        pytest.param("Running", (UP,), "Scheduling", id="one-is-gone"),
        pytest.param("Nonsense", (UP, UP), "Running", id="what-a-tenant-has-written"),
    ],
)
def test_phases_follow_pods(before, pods, after) -> None:
    group = ganged.group(status={"phase": before})
    seen = ganged.observed(*members(*pods), group)
    changed = status_plan.planned(seen, group, facts(complete=False))
    assert changed.get("phase", before) == after


def test_counts_owners_and_the_start_of_scheduling() -> None:
    group = ganged.group(least=6, status={"phase": "Pending"})
    pods = members(UP, UP, OK, BAD, BOUND, WAITS)
    known = facts(complete=False, minimum=6)
    changed = status_plan.planned(ganged.observed(*pods, group), group, known)
    (waits,) = changed.pop("conditions")
    assert changed == {"phase": "PreScheduling", "occupiedBy": "default/job"}
    group = ganged.group(least=7, status={**changed, "conditions": [waits]})
    changed = status_plan.planned(ganged.observed(*pods, group), group, known)
    assert changed == {
        "phase": "Scheduling",
        "scheduled": 5,
        "running": 2,
        "succeeded": 1,
        "failed": 1,
        "scheduleStartTime": "2023-11-14T22:30:00Z",
    }


def facts(**given):
    standing = quorum.Standing(given.pop("living", 2), 0, given.pop("minimum", 2))
    values = {"lost": False, "complete": True, "restarted_at": None, "now": NOW, **given}
    return status_plan.Facts(standing, **values)


def planned(known, status=None):
    group = ganged.group(status=status)
    return status_plan.planned(ganged.observed(*members(UP, UP), group), group, known)


STATED = {
    "phase": "Running",
    "occupiedBy": "default/job",
    "scheduled": 2,
    "running": 2,
    "succeeded": 0,
    "failed": 0,
    "scheduleStartTime": "2023-11-14T22:13:20Z",
}


def test_only_what_differs_is_written() -> None:
    status = {**STATED, "running": 1}
    changed = planned(facts(complete=False), status)
    assert changed == {"running": 2}
    assert planned(facts(complete=False), STATED) == {}


GATHERS = {"phase": "Pending", "conditions": []}


def test_a_gang_that_gathers_says_how_far_it_is() -> None:
    group = ganged.group(least=2, status=GATHERS)
    seen = ganged.observed(*members(WAITS), group)
    known = facts(complete=False, living=0)
    (waits,) = status_plan.planned(seen, group, known)["conditions"]
    assert (waits["type"], waits["status"], waits["reason"]) == (
        "Quorum",
        "False",
        "WaitingForPods",
    )
    assert waits["message"] == "0 of at least 2 pods have a node"
    again = ganged.group(least=2, status={**GATHERS, "conditions": [waits]})
    assert not again.had_quorum
    assert status_plan.planned(ganged.observed(*members(WAITS), again), again, known) == {}
    changed = planned(facts(), {**STATED, "conditions": [waits]})
    assert [(one["status"], one["reason"]) for one in changed["conditions"]] == [
        ("True", "MinimumMet")
    ]


@pytest.mark.parametrize(
    ("phase", "minimum"),
    [
        pytest.param("Pending", 0, id="minimum-that-cannot-be-read"),
        pytest.param("Finished", 2, id="ended"),
        pytest.param("Failed", 2, id="failed"),
    ],
)
def test_nothing_is_said_of_the_quorum_of_other_gangs(phase, minimum) -> None:
    group = ganged.group(status={"phase": phase})
    known = facts(complete=False, minimum=minimum, living=0)
    assert "conditions" not in status_plan.planned(ganged.observed(group), group, known)


def test_a_loss_and_its_end_are_conditions() -> None:
    changed = planned(facts(lost=True, living=1), STATED)
    (lost,) = changed["conditions"]
    assert (lost["type"], lost["status"], lost["reason"]) == ("Quorum", "False", "BelowMinimum")
    assert lost["message"] == "1 of at least 2 pods has a node"
    later = facts(now=NOW + 60, lost=True, living=1)
    assert planned(later, {**STATED, "conditions": [lost]}) == {}
    changed = planned(facts(now=NOW + 90), {**STATED, "conditions": [lost]})
    (met,) = changed["conditions"]
    assert (met["status"], met["reason"], met["message"]) == ("True", "MinimumMet", "")
    assert met["lastTransitionTime"] != lost["lastTransitionTime"]


def test_a_new_leader_does_not_take_back_what_was_said_of_a_loss() -> None:
    """Until it knows whether more bindings follow."""
    unsure = facts(complete=False, unsure=True, living=1)
    (lost,) = planned(facts(lost=True, living=1), STATED)["conditions"]
    assert planned(unsure, {**STATED, "conditions": [lost]}) == {}
    (met,) = planned(facts(), STATED)["conditions"]
    assert planned(unsure, {**STATED, "conditions": [met]}) == {}
    gathers = ganged.group(least=2, status={**STATED, "phase": "Scheduling"})
    seen = ganged.observed(*members(UP), gathers)
    (waits,) = status_plan.planned(seen, gathers, unsure)["conditions"]
    assert (waits["status"], waits["reason"]) == ("False", "WaitingForPods")


def test_conditions_of_others_stay() -> None:
    foreign = {"type": "Foreign", "status": "True", "reason": "Theirs", "message": "m"}
    restarted = {**STATED, "scheduleStartTime": "2023-11-14T22:29:55Z"}
    changed = planned(facts(restarted_at=NOW - 5), {**restarted, "conditions": [foreign]})
    kinds = [one["type"] for one in changed["conditions"]]
    assert kinds == ["Foreign", objects.QUORUM, status.RESTARTED]
    assert changed["conditions"][2]["lastTransitionTime"] == "2023-11-14T22:29:55Z"
    assert planned(facts(restarted_at=NOW - 5), {**restarted, **changed}) == {}


def test_the_status_of_a_restarted_gang_begins_anew_with_the_condition_that_says_so() -> None:
    failed = {**STATED, "phase": "Failed", "scheduled": 3, "failed": 1}
    group = ganged.group(status=failed)
    pods = (*members(BAD), ganged.pod("p9", group=True, deleting=True, phase=UP))
    # Within the second in which the pods were evicted.
    known = facts(complete=False, living=0, restarted_at=NOW - 4.4)
    changed = status_plan.planned(ganged.observed(*pods, group), group, known)
    told = changed.pop("conditions")
    assert changed == {
        "phase": "Pending",
        "scheduled": 0,
        "running": 0,
        "failed": 0,
        "scheduleStartTime": "2023-11-14T22:29:55Z",
    }
    assert [(one["type"], one["reason"]) for one in told] == [
        ("Quorum", "WaitingForPods"),
        ("Restarted", "PodsEvicted"),
    ]
    again = ganged.group(status={**failed, **changed, "conditions": told})
    assert status_plan.planned(ganged.observed(*pods, again), again, known) == {}


def test_a_status_that_cannot_be_read_is_written_anew() -> None:
    changed = planned(facts(), {"phase": [1], "running": "x", "conditions": 5})
    assert changed["phase"] == "Pending" or changed["phase"] == "PreScheduling"


def test_the_write_names_the_version_that_it_is_about() -> None:
    step = status_plan.written(ganged.group(), {"phase": "Running"})
    assert step.body == {
        "metadata": {"uid": "group-default-g", "resourceVersion": "7"},
        "status": {"phase": "Running"},
    }
    assert (step.name, step.namespace) == ("g", "default")
