"""How many pods may be moving at the same time: globally, by node, namespace and workload."""

import dataclasses

import pytest

from descheduler.configuration.arguments import migration
from descheduler.framework.filtering import limits, open_jobs
from tests.descheduler.builders import job, owner, picture_of, pod, workload


def refusal(one, seen, **written):
    arguments = migration.MigrationControllerArgs.model_validate(written).complete()
    return limits.MigratingLimits(arguments, seen, open_jobs.of(seen)).refusal(one)


def web(number, node="n", **fields):
    return pod(f"web-{number}", node, **fields)


def moving(*numbers, **fields):
    return [job(f"job-{number}", f"web-{number}", **fields) for number in numbers]


PODS = [web(number, f"n{number % 2}") for number in range(10)]
SEEN = picture_of(pods=PODS, workloads=[workload("web", 30)])


def with_jobs(jobs, seen=SEEN):
    return dataclasses.replace(seen, jobs={one.name: one for one in jobs})


@pytest.mark.parametrize(
    ("written", "jobs", "reason"),
    [
        pytest.param({}, moving(1), "", id="nothing by default"),
        pytest.param({"maxMigratingGlobally": 2}, moving(1, 3), limits.GLOBALLY, id="globally"),
        pytest.param({"maxMigratingGlobally": 2}, moving(0, 1), "", id="its own job aside"),
        pytest.param({"maxMigratingGlobally": 0}, moving(1, 3), "", id="0 is no limit"),
        pytest.param({"maxMigratingPerNode": 2}, moving(2, 4), limits.NODE, id="node"),
        pytest.param({"maxMigratingPerNode": 2}, moving(1, 3), "", id="other node"),
        pytest.param(
            {"maxMigratingPerNode": 0},
            moving(2, 4, 6),
            limits.MIGRATING,
            id="no limit of the node",
        ),
        pytest.param({"maxMigratingPerNamespace": 1}, moving(1), limits.NAMESPACE, id="namespace"),
        pytest.param(
            {"maxMigratingPerNamespace": 1}, [job("j", "other/web-1")], "", id="other namespace"
        ),
        pytest.param({"maxMigratingPerWorkload": 1}, moving(1), limits.MIGRATING, id="workload"),
        pytest.param({"maxMigratingPerWorkload": "5%"}, moving(1), limits.MIGRATING, id="percent"),
        pytest.param({"maxMigratingPerWorkload": 0}, [], "", id="0 is 1"),
        pytest.param(
            {"maxUnavailablePerWorkload": 1}, moving(1), limits.UNAVAILABLE, id="unavailable"
        ),
        pytest.param({}, moving(1, phase="Succeeded"), "", id="jobs that ended"),
    ],
)
def test_limits_hold(written, jobs, reason):
    assert refusal(PODS[0], with_jobs(jobs), **written) == reason


@pytest.mark.parametrize(
    ("gate", "written"),
    [
        ("MaxMigratingGlobally", {"maxMigratingGlobally": 1}),
        ("MaxMigratingPerNode", {"maxMigratingPerNode": 1}),
        ("MaxMigratingPerNamespace", {"maxMigratingPerNamespace": 1}),
        ("MaxMigratingPerWorkload", {"maxMigratingPerWorkload": 1}),
        ("MaxUnavailablePerWorkload", {"maxUnavailablePerWorkload": 1}),
    ],
)
def test_a_gate_leaves_a_limit_out(gate, written):
    seen = with_jobs(moving(2))
    assert refusal(PODS[0], seen, **written)
    assert refusal(PODS[0], seen, skipEvictionGates=[gate], **written) == ""
    forced = web(0, "n0", annotations={"descheduler.alpha.kubernetes.io/evict": ""})
    assert refusal(forced, seen, **written) == ""


def test_pods_that_do_not_serve_count_with_those_of_other_replica_sets():
    pods = [
        web(0),
        web(1, ready=False),
        pod("old-0", "n", controller="ReplicaSet/old", ready=False),
        pod("other-0", "n", controller="ReplicaSet/other", ready=False),
    ]
    workloads = [
        workload("web", 4, owner="deployment"),
        workload("old", 4, owner="deployment"),
        workload("other", 4, owner="elsewhere"),
    ]
    seen = picture_of(pods=pods, workloads=workloads)
    assert refusal(pods[0], seen) == limits.UNAVAILABLE
    assert refusal(pods[0], seen, maxUnavailablePerWorkload=3) == ""


def test_a_pod_that_is_not_ready_counts_itself():
    one = web(0, ready=False)
    seen = picture_of(pods=[one, web(1)], workloads=[workload("web", 3)])
    assert refusal(one, seen) == limits.UNAVAILABLE


def test_a_workload_that_is_not_known_can_spare_none():
    one = pod("batch-0", "n", controller="Job/batch")
    assert refusal(one, picture_of(pods=[one], workloads=[])) == limits.UNAVAILABLE


def test_pods_that_wait_are_on_no_node():
    seen = with_jobs(moving(1, 2))
    assert refusal(pod("web-9", controller=""), seen, maxMigratingPerNode=1) == ""


def test_pods_of_one_workload_are_looked_at_once():
    pods = [*PODS[:2], pod("api-0", "n", controller="ReplicaSet/api")]
    seen = picture_of(pods=pods, workloads=[workload("web", 30), workload("api", 30)])
    arguments = migration.MigrationControllerArgs()
    asked = limits.MigratingLimits(arguments, seen, open_jobs.of(seen))
    assert [asked.refusal(one) for one in pods] == ["", "", ""]


def test_pods_without_controller_are_limited_by_node_and_namespace_alone():
    one = pod("bare", "n", controller="")
    assert refusal(one, picture_of(pods=[one])) == ""


def test_an_owner_that_does_not_control_is_no_workload():
    reference = owner("ReplicaSet/web")
    other = type(reference)("apps/v1", "ReplicaSet", "web", "web", controller=False)
    one = pod("loose", "n", owners=(other,))
    assert refusal(one, picture_of(pods=[one], workloads=[])) == ""
