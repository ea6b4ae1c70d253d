import pytest

from simulator.controllers import workload_plans
from simulator.controllers.workload_plans import Create, Delete, Patch, World

NOW = "2026-01-01T00:00:00Z"
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}


def item(name, spec, owner=None, **status):
    meta = {"name": name, "namespace": "a", "uid": f"uid-{name}", "generation": 2}
    if owner:
        meta["ownerReferences"] = [{"uid": f"uid-{owner}"}]
    return {"metadata": meta, "spec": spec, "status": status}


def pod(name, owner, phase="Running", ready=True):
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return item(name, {}, owner, phase=phase, conditions=conditions)


def deployment(replicas=2, template=TEMPLATE, **status):
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    return item("web", spec, **status)


def replica_set(replicas=2, owner=None, name="rs", **status):
    return item(name, {"replicas": replicas, "template": TEMPLATE}, owner, **status)


def job(**spec):
    return item("job", {"template": TEMPLATE, **spec})


def of(kind, world):
    return [step for step in workload_plans.steps(world, NOW) if isinstance(step, kind)]


def test_a_deployment_makes_a_replica_set_of_its_template():
    (made,) = of(Create, World(deployments=(deployment(),)))
    short = workload_plans.template_hash(TEMPLATE)
    assert made.plural == "replicasets"
    assert made.body["metadata"]["name"] == f"web-{short}"
    assert made.body["spec"]["replicas"] == 2
    assert made.body["spec"]["selector"]["matchLabels"] == {
        "app": "web",
        "pod-template-hash": short,
    }
    labels = made.body["spec"]["template"]["metadata"]["labels"]
    assert labels == {"app": "web", "pod-template-hash": short}


def test_an_old_revision_is_scaled_away():
    old = replica_set(owner="web", name="web-old")
    steps = of(Patch, World(deployments=(deployment(),), replica_sets=(old,)))
    assert Patch("replicasets", "a", "web-old", {"spec": {"replicas": 0}}) in steps


def test_a_deployment_scales_its_revision():
    name = f"web-{workload_plans.template_hash(TEMPLATE)}"
    current = replica_set(1, owner="web", name=name)
    world = World(deployments=(deployment(3),), replica_sets=(current,))
    assert not [step for step in of(Create, world) if step.plural == "replicasets"]
    assert Patch("replicasets", "a", name, {"spec": {"replicas": 3}}) in of(Patch, world)


def test_missing_pods_are_made():
    made = of(Create, World(replica_sets=(replica_set(2),), pods=(pod("p", "rs"),)))
    assert len(made) == 1
    assert made[0].body["metadata"]["generateName"] == "rs-"
    assert made[0].body["metadata"]["ownerReferences"][0]["controller"] is True


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_finished_pod_is_replaced(phase):
    world = World(replica_sets=(replica_set(1),), pods=(pod("p", "rs", phase),))
    assert len(of(Create, world)) == 1


def test_pods_too_many_leave_and_the_waiting_ones_first():
    pods = (pod("old", "rs"), pod("new", "rs", ready=False))
    gone = of(Delete, World(replica_sets=(replica_set(1),), pods=pods))
    assert gone == [Delete("pods", "a", "new", "uid-new")]


def test_a_job_runs_so_many_at_a_time():
    world = World(jobs=(job(completions=5, parallelism=2),), pods=(pod("p", "job"),))
    (made,) = of(Create, world)
    assert made.body["metadata"]["labels"] == {"app": "web", "job-name": "job"}


def test_a_job_starts_no_more_than_it_still_needs():
    pods = (pod("a", "job", "Succeeded"), pod("b", "job"))
    assert not of(Create, World(jobs=(job(completions=2, parallelism=2),), pods=pods))


def test_a_job_is_complete_when_enough_have_succeeded():
    world = World(jobs=(job(),), pods=(pod("a", "job", "Succeeded"),))
    (patch,) = of(Patch, world)
    assert patch.body["status"]["conditions"][0]["type"] == "Complete"
    assert patch.body["status"]["completionTime"] == NOW
    assert not of(Create, world)


def test_a_job_that_fails_too_often_has_failed():
    pods = (pod("p0", "job", "Failed"), pod("p1", "job", "Failed"), pod("live", "job"))
    world = World(jobs=(job(backoffLimit=1, completions=3, parallelism=2),), pods=pods)
    (patch,) = of(Patch, world)
    assert patch.body["status"]["conditions"][0]["reason"] == "BackoffLimitExceeded"
    assert of(Delete, world) == [Delete("pods", "a", "live", "uid-live")]


def test_a_suspended_job_waits():
    assert not of(Create, World(jobs=(job(suspend=True),)))


def test_an_ended_job_is_left_alone():
    done = job()
    done["status"]["conditions"] = [{"type": "Complete", "status": "True"}]
    assert workload_plans.steps(World(jobs=(done,)), NOW) == []


def test_what_is_as_wished_needs_no_write():
    steady = replica_set(1)
    counts = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    steady["status"] = {"observedGeneration": 2, **dict.fromkeys(counts, 1)}
    assert workload_plans.steps(World(replica_sets=(steady,), pods=(pod("p", "rs"),)), NOW) == []


def test_what_is_being_deleted_makes_nothing():
    leaving = replica_set(2)
    leaving["metadata"]["deletionTimestamp"] = NOW
    assert workload_plans.steps(World(replica_sets=(leaving,)), NOW) == []
