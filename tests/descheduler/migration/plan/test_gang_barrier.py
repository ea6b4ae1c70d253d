"""Pods that move together: none leaves before all may, and one that cannot keeps all in place."""

import pytest

from descheduler.migration.plan import conditions, facts, gang_barrier, job_plan, steps
from tests.descheduler import builders
from tests.descheduler.migration.plan.given import (
    BEGUN,
    CREATED,
    EVICTING,
    NOW,
    PASSED,
    RULES,
    SCHEDULED,
    condition,
    given,
    job,
    reservation,
    reserving,
)

TOGETHER = {"koord.sh/migration-group": "g", "koord.sh/migration-group-size": "3"}
LABELS = {"app": "web"}


def member(name, *told, phase="Running", annotations=None, **fields):
    """One job of the group, with its pod."""
    notes = {**PASSED, **TOGETHER, **(annotations or {})}
    status = {"conditions": told}
    one = builders.job(name, f"{name}-pod", phase=phase, status=status, annotations=notes, **fields)
    return facts.Member(one, builders.pod(f"{name}-pod", "node-0", labels=LABELS))


def decided(*others, told=(CREATED, SCHEDULED), budgets=(), size="3"):
    """What a job of the group does whose own Reservation has a node."""
    notes = {**PASSED, **TOGETHER, "koord.sh/migration-group-size": size}
    one = reserving(*told, annotations=notes)
    mine = facts.Member(one, builders.pod("web-0", "node-0", labels=LABELS))
    about = given(one, held=reservation(), group=(mine, *others), budgets=budgets)
    return job_plan.planned(about, RULES, NOW)


def kind(plan):
    if not plan.steps:
        return "waits"
    fields = plan.steps[0].fields
    return (
        fields["reason"] if fields.get("phase") == "Failed" else fields["conditions"][-1]["reason"]
    )


READY = (CREATED, SCHEDULED)
REFUSED = condition("Eviction", "False", conditions.FAILED_EVICT)
CASES = {
    "all have a place": ([member("a", *READY), member("b", *READY)], "EvictionBegun"),
    "one is not there yet": ([member("a", *READY)], "waits"),
    "one has no place yet": ([member("a", *READY), member("b", CREATED)], "waits"),
    "one waits for arbitration": ([member("a", *READY), member("b", phase="")], "waits"),
    "one is paused": (
        [member("a", *READY), member("b", *READY, spec={"paused": True})],
        "waits",
    ),
    "one needs no place": (
        [member("a", *READY), member("b", spec={"mode": "EvictDirectly"})],
        "EvictionBegun",
    ),
    "one has failed": ([member("a", *READY), member("b", phase="Failed")], "GroupFailed"),
    "one was aborted": ([member("a", *READY), member("b", phase="Aborted")], "GroupFailed"),
    "one is being deleted": ([member("a", *READY), member("b", leaves_at=NOW)], "GroupFailed"),
    "one has left, one has failed since": (
        [member("a", *READY, BEGUN), member("b", phase="Failed")],
        "EvictionBegun",
    ),
    "one was aborted, whose eviction was refused": (
        [member("a", *READY), member("b", *READY, REFUSED, phase="Aborted")],
        "GroupFailed",
    ),
    "one was aborted, the eviction of another one was refused": (
        [member("a", *READY, REFUSED), member("b", *READY, phase="Aborted")],
        "GroupFailed",
    ),
    "one was refused, another one has lost its place": (
        [member("a", *READY, REFUSED), member("b", CREATED)],
        "waits",
    ),
    "one was refused, and all have a place": (
        [member("a", *READY, REFUSED), member("b", *READY)],
        "EvictionBegun",
    ),
    "one was aborted, whose pod leaves": (
        [member("a", *READY), member("b", *READY, EVICTING, phase="Aborted")],
        "EvictionBegun",
    ),
    "one has left, one is not there": ([member("a", *READY, BEGUN)], "EvictionBegun"),
}


@pytest.mark.parametrize(("others", "expected"), CASES.values(), ids=CASES)
def test_a_pod_leaves_with_its_group(others, expected):
    assert kind(decided(*others)) == expected


def test_a_group_that_broke_releases_members_that_have_not_reserved_yet():
    one = job(annotations={**PASSED, **TOGETHER})
    about = given(one, group=(facts.Member(one, None), member("b", phase="Failed")))
    plan = job_plan.planned(about, RULES, NOW)
    assert kind(plan) == conditions.GROUP_FAILED
    assert "job b of pod default/b-pod" in plan.message


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (builders.budget(allowed=2, labels=LABELS), "waits"),
        (builders.budget(allowed=3, labels=LABELS), "EvictionBegun"),
        (builders.budget(allowed=0, labels={"app": "other"}), "EvictionBegun"),
        (builders.budget("elsewhere/web", 0), "EvictionBegun"),
        (builders.budget(allowed=0), "waits"),
    ],
    ids=["one too few", "enough", "of other pods", "of another namespace", "of all pods"],
)
def test_budgets_have_to_allow_all_of_them(budget, expected):
    plan = decided(member("a", *READY), member("b", *READY), budgets=(budget,))
    assert kind(plan) == expected


def test_a_selector_that_cannot_be_read_counts_every_pod():
    odd = {"matchExpressions": [{"key": "app", "operator": "Odd", "values": ["x"]}]}
    unreadable = builders.objects.Budget("default/web", odd, 2)
    plan = decided(member("a", *READY), member("b", *READY), budgets=(unreadable,))
    assert kind(plan) == "waits"


def test_the_members_of_a_moving_group_get_time_to_follow():
    late = [member("a", *READY, BEGUN), member("b", *READY)]
    notes = {**PASSED, **TOGETHER}
    one = reserving(*READY, annotations=notes, created=NOW - 299)
    mine = facts.Member(one, builders.pod("web-0", "node-0"))
    about = given(one, held=reservation(), group=(mine, *late))
    assert facts.deadline(about, RULES) == NOW + 300
    alone = given(one, held=reservation(), group=(mine, late[1]))
    assert facts.deadline(alone, RULES) == NOW + 1


@pytest.mark.parametrize(
    ("written", "size"),
    [("3", 3), ("0", 1), ("", 1), ("-2", 1), ("three", 1), ("9" * 500, 1), ("\u0663", 1)],
)
def test_a_size_that_is_no_number_is_one(written, size):
    one = job(annotations={"koord.sh/migration-group-size": written})
    assert gang_barrier.size(one) == size


def test_limits_of_the_workload_do_not_part_a_group_that_is_on_its_way():
    others = [member("a", *READY, BEGUN), member("b", *READY)]
    one = reserving(*READY, annotations={**PASSED, **TOGETHER})
    mine = facts.Member(one, builders.pod("web-0", "node-0"))

    def decided_by(group):
        about = given(one, held=reservation(), group=(mine, *group), held_back_seconds=40.0)
        return job_plan.planned(about, RULES, NOW)

    assert kind(decided_by(others)) == "EvictionBegun"
    assert decided_by([member("a", *READY), member("b", *READY)]).again_in == 40


def test_a_job_alone_waits_for_none():
    assert gang_barrier.held_up(given(job()), RULES) is None
    assert gang_barrier.broken(given(job())) is None


def test_no_step_is_lost_while_a_group_waits():
    assert not any(isinstance(one, steps.Evict) for one in decided(member("a", *READY)).steps)


@pytest.mark.parametrize(
    ("told", "expected"),
    [((BEGUN,), "EvictionBegun"), ((), conditions.FORBIDDEN)],
    ids=["the group is on its way", "nobody has left"],
)
def test_a_place_that_is_taken_matters_until_the_group_is_on_its_way(told, expected):
    one = reserving(*READY, annotations={**PASSED, **TOGETHER})
    mine = facts.Member(one, builders.pod("web-0", "node-0", labels=LABELS))
    group = (mine, member("a", *READY, *told), member("b", *READY))
    about = given(one, held=reservation("Succeeded"), group=group)
    assert kind(job_plan.planned(about, RULES, NOW)) == expected
