"""The pods that controllers would create of what a file holds."""

import pytest

from api import names
from cli.gangs import workloads

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}


def an_object(kind, spec, group="example.com/v1", name="w"):
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec}


def replicas(count, **more):
    return {"replicas": count, "template": TEMPLATE, **more}


def a_job(**more):
    return {"template": TEMPLATE, **more}


JOB = an_object("Job", a_job(parallelism=3), "batch/v1")
JOBS = {
    "replicatedJobs": [
        {"name": "lead", "template": {"spec": a_job()}},
        {"name": "work", "replicas": 2, "template": {"spec": a_job(parallelism=3, completions=2)}},
    ]
}
RAY = {
    "headGroupSpec": {"template": TEMPLATE},
    "workerGroupSpecs": [replicas(2, groupName="g", numOfHosts=2), {
        "minReplicas": 1, "template": TEMPLATE}],
}  # fmt: skip
TORCH = {"pytorchReplicaSpecs": {"Master": replicas(1), "Worker": replicas(2)}}


def numbered(prefix, count):
    return [f"{prefix}-{n}" for n in range(count)]


@pytest.mark.parametrize(
    ("document", "pods"),
    [
        pytest.param({"kind": "Pod", **TEMPLATE, "metadata": {"name": "p"}}, ["p"], id="a pod"),
        pytest.param(JOB, numbered("w", 3), id="as many as a Job runs at a time"),
        pytest.param(
            an_object("Job", a_job(parallelism=3, completions=2), "batch/v1"),
            numbered("w", 2),
            id="no more than it completes",
        ),
        pytest.param(
            an_object("CronJob", {"jobTemplate": JOB}), numbered("w", 3), id="the Job of a CronJob"
        ),
        pytest.param(an_object("StatefulSet", replicas(2)), numbered("w", 2), id="replicas"),
        pytest.param(an_object("Other", a_job()), ["w-0"], id="a template of any kind"),
        pytest.param(
            an_object("JobSet", JOBS), ["w-lead-0", *numbered("w-work", 4)], id="Jobs of a JobSet"
        ),
        pytest.param(
            an_object("PyTorchJob", TORCH),
            ["w-master-0", *numbered("w-worker", 2)],
            id="replicas by role",
        ),
        pytest.param(
            an_object("RayCluster", RAY),
            ["w-head-0", *numbered("w-g", 4), "w-worker-0"],
            id="head and workers",
        ),
        pytest.param(
            an_object("RayJob", {"rayClusterSpec": RAY}),
            ["w-head-0", *numbered("w-g", 4), "w-worker-0"],
            id="inside a RayJob",
        ),
    ],
)
def test_the_pods_of_a_workload(document, pods):
    found = workloads.expand([document])
    assert [one["metadata"]["name"] for one in found.pods] == pods
    assert all(one["spec"] == TEMPLATE["spec"] for one in found.pods)
    assert (found.groups, found.notes) == ((), ())


def test_pods_have_the_metadata_of_the_template_and_the_namespace_of_the_workload():
    document = an_object("Job", a_job(parallelism=1))
    document["metadata"]["namespace"] = "team"
    (pod,) = workloads.expand([document]).pods
    assert pod["metadata"] == {"namespace": "team", "name": "w-0", "labels": {"a": "b"}}


@pytest.mark.parametrize(
    ("least", "minimum"),
    [
        pytest.param({"minAvailable": 2}, "2", id="what it says"),
        pytest.param({}, "3", id="else all of its tasks"),
    ],
)
def test_a_volcano_job_becomes_a_gang(least, minimum):
    tasks = [replicas(1, name="ps"), replicas(2, name="worker")]
    document = an_object("Job", {**least, "tasks": tasks}, "batch.volcano.sh/v1alpha1")
    found = workloads.expand([document])
    assert [pod["metadata"]["name"] for pod in found.pods] == ["w-ps-0", *numbered("w-worker", 2)]
    for pod in found.pods:
        assert pod["metadata"]["annotations"] == {
            names.ANNOTATION_GANG_NAME: "w", names.ANNOTATION_GANG_MIN_AVAILABLE: minimum,
        }  # fmt: skip
        assert pod["metadata"]["labels"] == {"a": "b"}
    assert "annotations of its pods have to say so" in found.notes[0]


def test_groups_are_kept_apart_and_what_has_no_pods_is_named():
    group = an_object("PodGroup", {"minMember": 3}, "scheduling.sigs.k8s.io/v1alpha1")
    found = workloads.expand([group, an_object("Service", {"ports": []}), {"spec": 7}])
    assert (found.pods, found.groups) == ((), (group,))
    assert found.notes == ("Service w has no pods", "an object without a kind tried has no pods")


@pytest.mark.parametrize(
    ("document", "why"),
    [
        pytest.param(
            an_object("Job", a_job(parallelism="3")),
            "spec.parallelism: '3' is no number of pods; write 0 or more",
            id="a text",
        ),
        pytest.param(an_object("Job", a_job(parallelism=-1)), "'-1' is no number", id="negative"),
        pytest.param(an_object("Job", a_job(parallelism=True)), "is no number", id="a boolean"),
        pytest.param(
            an_object("StatefulSet", replicas(1 << 30)), "for more than 4096 pods", id="endless"
        ),
        pytest.param(
            an_object("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}),
            "the pod template of worker has no spec",
            id="no template",
        ),
        pytest.param(
            an_object("RayCluster", {"workerGroupSpecs": [replicas(1 << 31, numOfHosts=1 << 31)]}),
            "RayCluster w: ",
            id="products",
        ),
    ],
)
def test_what_cannot_be_told_is_refused_with_the_field(document, why):
    with pytest.raises(workloads.WorkloadError) as caught:
        workloads.expand([document])
    assert why in str(caught.value)


def test_many_workloads_share_one_bound():
    with pytest.raises(workloads.WorkloadError):
        workloads.expand([an_object("StatefulSet", replicas(3000))] * 2)
