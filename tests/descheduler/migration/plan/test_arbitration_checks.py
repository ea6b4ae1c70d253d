"""Who may be migrated, as arbitration asks it: for good, or for now."""

import pytest

from api import names
from descheduler.configuration import by_profile
from descheduler.configuration.arguments import migration as arguments
from descheduler.configuration.arguments import parts
from descheduler.framework.filtering import lasting_checks, limits, safeguards
from descheduler.migration.plan import arbitration_checks, arbitrator
from descheduler.model import objects, podinfo
from tests.descheduler import builders
from tests.descheduler.migration.plan.given import PROFILE

TOGETHER = {"koord.sh/migration-group": "g", "koord.sh/migration-group-size": "2"}


def decided(jobs, pods, workloads=None, gangs=None, *, even=None, shown=None, **args):
    """Arbitrate jobs; the profile `even` has arguments and nodes of its own."""
    read = arguments.MigrationControllerArgs.model_validate
    named = {} if even is None else {"even": read(even)}
    given = by_profile.ByProfile(read(args), named).mapped(lambda one: one.complete())
    of_even = by_profile.ByProfile(None, {"even": parts.LabelSelector(match_labels=shown or {})})
    nodes = [builders.node(name) for name in sorted({pod.node for pod in pods if pod.node})]
    seen = builders.picture_of(nodes, pods, jobs=jobs, workloads=workloads, gangs=gangs or {})
    checks = arbitration_checks.ArbitrationChecks(given, of_even, seen)
    by_key = {pod.key: pod for pod in pods}
    found = {one.name: by_key[one.pod_key] for one in jobs if one.pod_key in by_key}
    return arbitrator.arbitrated(seen, found, checks)


def replicas(count, node="node-0"):
    return [builders.pod(f"web-{i}", f"{node[:-1]}{i}") for i in range(count)]


def several(*names):
    return [builders.pod(f"{name}-{i}", "node-0", controller=f"ReplicaSet/{name}")
            for name in names for i in range(4)]  # fmt: skip


def test_the_limits_of_the_arguments_count_what_passed_before():
    pods = several("a", "b", "c")
    jobs = [builders.job(name, f"{name}-0") for name in ("a", "b", "c")]
    found = decided(jobs, pods)
    assert found.passed == ("a", "b")
    assert found.waiting == {"c": limits.NODE}
    assert decided(jobs, pods, max_migrating_per_node=0).passed == ("a", "b", "c")


def test_limits_are_those_of_the_profile_of_a_job_and_count_the_jobs_of_all():
    first = [builders.job(name, f"{name}-0") for name in ("a", "b")]
    jobs = [*first, builders.job("c", "c-0", annotations=PROFILE)]
    strict, loose = {"max_migrating_per_node": 1}, {"max_migrating_per_node": 3}
    found = decided(jobs, several("a", "b", "c"), even=strict)
    assert (found.passed, found.waiting) == (("a", "b"), {"c": limits.NODE})
    found = decided(jobs, several("a", "b", "c"), even=loose)
    assert (found.passed, found.waiting) == (("a", "b", "c"), {})
    found = decided(jobs, several("a", "b", "c"), even=loose, **strict)
    assert (found.passed, found.waiting) == (("a", "c"), {"b": limits.NODE})


BARE = {"evict_all_bare_pods": True}


@pytest.mark.parametrize(
    ("notes", "even", "passes"),
    [
        (PROFILE, BARE, True),
        ({}, BARE, False),
        ({"koord.sh/migration-profile": "of-before"}, BARE, False),
        (PROFILE, None, False),
        (PROFILE, {}, False),
    ],
    ids=["its profile allows it", "no profile", "unknown profile", "no such profile", "forbidden"],
)
def test_who_may_move_at_all_is_what_the_profile_of_a_job_says(notes, even, passes):
    pod = builders.pod("web-0", "node-0", controller="")
    found = decided([builders.job("j", "web-0", annotations=notes)], [pod], even=even)
    assert (found.passed == ("j",)) is passes
    assert ("j" in found.failed) is not passes


def test_naming_a_profile_does_not_move_pods_of_nodes_that_it_is_not_shown():
    pods = replicas(4)
    shown = {"kubernetes.io/hostname": "node-0"}
    jobs = [builders.job(f"j{i}", f"web-{i}", annotations=PROFILE) for i in (0, 1)]
    found = decided(jobs, pods, even={}, shown=shown)
    assert (found.passed, found.failed) == (("j0",), {"j1": arbitration_checks.OTHER_NODE})
    unnamed = [builders.job("j", "web-1")]
    assert decided(unnamed, pods, even={}, shown=shown).passed == ("j",)


@pytest.mark.parametrize(
    ("nodes", "passed"),
    [(("node-0", "node-1"), True), (("node-1", "node-2"), False)],
    ids=["one on its nodes", "none on its nodes"],
)
def test_a_profile_moves_whole_gangs_that_have_a_pod_on_its_nodes(nodes, passed):
    members, gangs = gang(2, nodes)
    shown = {"kubernetes.io/hostname": "node-0"}
    jobs = [builders.job(f"j{i}", f"w-{i}", annotations=TOGETHER | PROFILE) for i in range(2)]
    args = {"skip_check_expected_replicas": True}
    found = decided(jobs, members, gangs=gangs, even=args, shown=shown)
    assert found.passed == (("j0", "j1") if passed else ())
    refused = {"j0": arbitration_checks.OTHER_NODE, "j1": arbitration_checks.OTHER_NODE}
    assert found.failed == ({} if passed else refused)


def test_a_workload_that_has_too_few_replicas_is_never_moved():
    pods = replicas(1)
    found = decided([builders.job("j", "web-0")], pods)
    assert found.failed == {"j": lasting_checks.TOO_FEW}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"annotations": {names.ANNOTATION_EXEMPT: "true"}}, safeguards.EXEMPT),
        ({"flaw": "odd"}, safeguards.UNREADABLE),
        (
            {"labels": {"quota.scheduling.koordinator.sh/preemptible": "false"}},
            safeguards.PROTECTED,
        ),
    ],
)
def test_what_protects_a_pod_fails_its_job(fields, reason):
    pods = [builders.pod("web-0", "node-0", **fields), *replicas(4)[1:]]
    assert decided([builders.job("j", "web-0")], pods).failed == {"j": reason}


def test_a_rollout_is_waited_for():
    pods = replicas(4)
    rolling = [builders.workload("web", 4, is_rolling_out=True)]
    found = decided([builders.job("j", "web-0")], pods, rolling)
    assert found.waiting == {"j": safeguards.ROLLING_OUT}


QUOTA = {"quota.scheduling.koordinator.sh/name": "team"}


def waiting(status="False", kind="koord.sh/QuotaAvailable", **fields):
    told = (podinfo.Condition(kind, status),)
    return builders.pod("w", controller="Job/w", conditions=told, **fields)


LINES = {
    "the same quota": (QUOTA, waiting(labels=QUOTA), True),
    "another quota": ({}, waiting(labels=QUOTA), False),
    "the same namespace": ({}, waiting(), True),
    "a quota and a namespace": (QUOTA, waiting(), False),
    "another reason": (QUOTA, waiting(labels=QUOTA, kind="PodScheduled"), False),
    "room by now": (QUOTA, waiting("True", labels=QUOTA), False),
    "on a node by now": (QUOTA, waiting(labels=QUOTA, node="node-1"), False),
}


@pytest.mark.parametrize(("labels", "other", "waits"), LINES.values(), ids=LINES)
def test_a_pod_waits_while_its_replacement_would_stand_in_line_for_quota(labels, other, waits):
    pods = [builders.pod(f"web-{i}", f"node-{i}", labels=labels) for i in range(4)]
    found = decided([builders.job("j", "web-0")], [*pods, other])
    assert found.waiting == ({"j": safeguards.QUOTA_LINE} if waits else {})


def gang(count, nodes=("node-0", "node-1")):
    members = [
        builders.pod(f"w-{i}", nodes[i], controller="ReplicaSet/w", gang="default/w")
        for i in range(count)
    ]
    return members, {"default/w": objects.Gang("default/w", count)}


def test_one_member_of_a_gang_that_needs_all_waits():
    members, gangs = gang(2)
    found = decided(
        [builders.job("j", "w-0")], members, gangs=gangs, skip_check_expected_replicas=True
    )
    assert found.waiting == {"j": safeguards.GANG}


def test_a_gang_that_leaves_as_a_whole_passes_although_its_workload_is_limited():
    members, gangs = gang(2)
    jobs = [builders.job(f"j{i}", f"w-{i}", annotations=TOGETHER) for i in range(2)]
    args = {"skip_check_expected_replicas": True}
    assert decided(jobs, members, gangs=gangs, **args).passed == ("j0", "j1")
    assert decided(jobs[:1], members, gangs=gangs, **args).waiting
