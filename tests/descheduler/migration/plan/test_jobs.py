"""The PodMigrationJob that a move becomes."""

import pytest

from api.koordinator import migration
from descheduler.framework import objective, protocols
from descheduler.framework.planning import round_plan
from descheduler.migration.plan import facts, jobs
from tests.descheduler import builders

DEFAULTS = facts.Defaults()
NO_POLICY = facts.Defaults(eviction_policy="")


def test_a_job_says_which_pod_leaves_why_and_for_where():
    wanted = jobs.Wanted(
        builders.pod("shop/web-0", "node-0"),
        "LowNodeLoad",
        "too hot",
        target="node-1",
        gain="spread 31 % -> 28 %",
        group="g",
        group_size=3,
        profile="even",
    )
    made = jobs.body("j", wanted, DEFAULTS, "me")
    assert made["metadata"] == {
        "name": "j",
        "annotations": {
            "koordinator.sh/evict-reason": "too hot",
            "koordinator.sh/evict-trigger": "LowNodeLoad",
            "koordinator.sh/job-created-by": "me",
            "koord.sh/migration-profile": "even",
            "koord.sh/migration-source": "node-0",
            "koord.sh/migration-target": "node-1",
            "koord.sh/migration-gain": "spread 31 % -> 28 %",
            "koord.sh/migration-group": "g",
            "koord.sh/migration-group-size": "3",
            "koord.sh/migration-workload": "web",
        },
        "labels": {"koordinator.sh/evict-policy": "Eviction"},
    }
    read = migration.read_pod_migration_job(made).spec
    assert (read.mode, read.ttl, read.delete_options) == ("ReservationFirst", 300, None)
    ref = read.pod_ref
    assert (ref.namespace, ref.name, ref.uid) == ("shop", "web-0", "uid-shop-web-0")


def test_a_job_alone_says_no_more_than_it_knows():
    made = jobs.body("j", jobs.Wanted(builders.pod(controller=""), "P", "r"), NO_POLICY)
    assert set(made["metadata"]["annotations"]) == {
        "koordinator.sh/evict-reason",
        "koordinator.sh/evict-trigger",
    }
    assert "labels" not in made["metadata"]


def test_delete_options_of_the_settings_are_those_of_the_job():
    defaults = facts.Defaults(delete_options={"gracePeriodSeconds": 5}, ttl=60)
    made = jobs.body("j", jobs.Wanted(builders.pod(), "P", "r"), defaults)
    assert made["spec"]["deleteOptions"] == {"gracePeriodSeconds": 5}
    assert made["spec"]["ttl"] == "1m0s"


@pytest.mark.parametrize(
    ("pod", "purpose", "mode"),
    [
        (builders.pod(), protocols.Purpose.BALANCE, "ReservationFirst"),
        (builders.pod(), protocols.Purpose.REMOVE, "EvictDirectly"),
        (builders.pod(phase="Failed"), protocols.Purpose.COMPLY, "EvictDirectly"),
    ],
)
def test_a_pod_that_only_has_to_go_needs_no_reservation(pod, purpose, mode):
    made = jobs.body("j", jobs.Wanted(pod, "P", "r", purpose), DEFAULTS)
    assert made["spec"]["mode"] == mode


def test_a_long_reason_is_cut():
    made = jobs.body("j", jobs.Wanted(builders.pod(), "P", "r" * 9999), DEFAULTS)
    assert len(made["metadata"]["annotations"]["koordinator.sh/evict-reason"]) == 1024


def test_a_round_that_tries_again_uses_the_same_name():
    first, other = builders.pod("a"), builders.pod("b")
    assert jobs.name(first, 1.0) == jobs.name(first, 1.0)
    names = {jobs.name(first, 1.0), jobs.name(first, 2.0), jobs.name(other, 1.0)}
    assert len(names) == 3


def move(pod, evictor="MigrationController", dry_run=False, worth=objective.NOT_LOOKED_AT):
    suggestion = protocols.Suggestion(pod, "P", "r", protocols.Purpose.EMPTY)
    return round_plan.Move(suggestion, "default", evictor, worth, dry_run)


def test_moves_of_this_evictor_become_jobs_unless_they_are_only_reported():
    target = protocols.Target("node-7", 3)
    worth = objective.Accepted(target, gain=12.0, cost=2.5, figures={"spread": 0.25})
    moves = [
        move(builders.pod("a"), worth=worth),
        move(builders.pod("b"), dry_run=True),
        move(builders.pod("c"), evictor="DefaultEvictor"),
    ]
    (found,) = jobs.of_moves(moves, 1.0)
    assert (found.pod.name, found.target) == ("a", "node-7")
    assert found.gain == "12 for 2.5 (spread 0.25)"
    assert (found.plugin, found.reason, found.purpose) == ("P", "r", protocols.Purpose.EMPTY)
    assert found.profile == "default"


def test_the_pods_of_a_gang_that_leave_in_one_round_move_together():
    pods = [builders.pod(f"w-{i}", gang="default/train") for i in range(3)]
    alone = builders.pod("x", gang="default/other")
    found = jobs.of_moves([move(pod) for pod in (*pods, alone, builders.pod("y"))], 7.0)
    assert {one.group for one in found[:3]} == {"default/train@7"}
    assert [one.group_size for one in found] == [3, 3, 3, 0, 0]
    assert [one.group for one in found[3:]] == ["", ""]
    assert [one.gain for one in found] == [""] * 5
