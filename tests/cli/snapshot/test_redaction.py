"""What a snapshot keeps of objects, and what renaming leaves of names."""

import json

import pytest

from api import names, resources
from cli.snapshot import format as formats
from cli.snapshot import projection, renaming
from tests import builders

SECRET = "hunter2-hunter2"
WORDS = ("acme", "billing", "rocket", "berlin")


def a_pod():
    pod = builders.a_pod(
        "billing-1", "acme", node="berlin-7", cpu="2", priority=9,
        labels={"app": "rocket", names.LABEL_QUOTA_NAME: "acme-quota"},
        annotations={"acme.example/note": SECRET, names.PLACEMENT: json.dumps({"n": "berlin-7"})},
        owner={"kind": "Job", "name": "rocket-job", "uid": "u-acme", "apiVersion": "batch/v1"},
    )  # fmt: skip
    container = pod["spec"]["containers"][0]
    container |= {
        "name": "billing", "image": f"acme/{SECRET}", "args": [SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}],
    }  # fmt: skip
    pod["spec"] |= {
        "activeDeadlineSeconds": 60,
        "serviceAccountName": SECRET,
        "nodeSelector": {"site": "berlin"},
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "rocket"}}, "namespaces": ["acme"],
             "topologyKey": "site"},
        ]}},
    }  # fmt: skip
    pod["status"] |= {
        "podIP": "10.1.2.3",
        "conditions": [{"type": "PodScheduled", "status": "False", "message": SECRET}],
        "containerStatuses": [{"name": "billing", "state": {"terminated": {
            "finishedAt": "2026-07-01T12:00:00Z", "message": SECRET}}}],
    }  # fmt: skip
    return pod


def test_environments_commands_images_and_foreign_annotations_are_left_out():
    found = projection.kept(resources.PODS, a_pod())
    text = json.dumps(found)
    assert SECRET not in text
    assert "10.1.2.3" not in text
    assert found["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    assert found["spec"]["activeDeadlineSeconds"] == 60
    assert found["metadata"]["labels"][names.LABEL_QUOTA_NAME] == "acme-quota"
    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended == {"finishedAt": "2026-07-01T12:00:00Z"}


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        pytest.param("quota.scheduling.koordinator.sh/name", True, id="koordinator"),
        pytest.param("koord.sh/plan", True, id="koord"),
        pytest.param("koordinator.sh.example.com/x", False, id="another domain"),
        pytest.param("notkoord.sh/x", False, id="a longer domain"),
        pytest.param("koord", False, id="no domain"),
    ],
)
def test_annotations_of_our_domains_stay(key, kept):
    assert projection.ours(key) is kept
    node = builders.a_node("n", annotations={key: "1"})
    assert (
        key in projection.kept(resources.NODES, node)["metadata"].get("annotations", {})
    ) is kept


def a_quota():
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {
            "name": "acme-quota", "namespace": "acme", "uid": "q-acme",
            "labels": {names.LABEL_QUOTA_PARENT: "acme-parent"},
            "annotations": {names.ANNOTATION_QUOTA_NAMESPACES: '["acme"]'},
        },
        "spec": {"min": {"cpu": 2}, "max": {"cpu": 4}},
    }  # fmt: skip


def test_renaming_leaves_no_name_and_the_same_relations():
    kept = {
        "pods": (projection.kept(resources.PODS, a_pod()),),
        "nodes": (projection.kept(
            resources.NODES,
            builders.a_node(
                "berlin-7", labels={"site": "berlin", "kubernetes.io/hostname": "berlin-7"}
            ),
        ),),
        resources.ELASTIC_QUOTAS.review_name(): (
            projection.kept(resources.ELASTIC_QUOTAS, a_quota()),
        ),
    }  # fmt: skip
    before = formats.Snapshot("2026-07-01T12:00:00Z", kept)
    original = formats.encode(before)
    found = renaming.renamed(before)
    text = json.dumps(found.objects)
    assert not [word for word in WORDS if word in text]
    assert formats.encode(before) == original
    pod, node = found.objects["pods"][0], found.objects["nodes"][0]
    quota = found.of(resources.ELASTIC_QUOTAS)[0]
    assert pod["spec"]["nodeName"] == node["metadata"]["name"]
    assert pod["spec"]["nodeSelector"]["site"] == node["metadata"]["labels"]["site"]
    assert pod["metadata"]["labels"][names.LABEL_QUOTA_NAME] == quota["metadata"]["name"]
    assert json.loads(quota["metadata"]["annotations"][names.ANNOTATION_QUOTA_NAMESPACES]) == [
        pod["metadata"]["namespace"]
    ]
    term = pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        0
    ]
    assert term["labelSelector"]["matchLabels"]["app"] == pod["metadata"]["labels"]["app"]
    assert term["namespaces"] == [pod["metadata"]["namespace"]]
    assert (quota["spec"], found.redaction) == ({"min": {"cpu": 2}, "max": {"cpu": 4}}, "names")


def a_moving_pod():
    pod = a_pod()
    pod["metadata"]["annotations"] |= {
        names.ANNOTATION_FORCE_EVICT: "true",
        names.ANNOTATION_POD_DELETION_COST: "-5",
        names.ANNOTATION_PREFER_NO_EVICTION: "acme",
    }
    pod["spec"] |= {
        "volumes": [
            {"name": SECRET, "hostPath": {"path": f"/{SECRET}"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "rocket-claim"}},
            {"name": "hidden", "secret": {"secretName": SECRET}},
        ],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"app": "rocket"}}},
        ],
    }  # fmt: skip
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": SECRET}}
    pod["status"]["containerStatuses"] = [{"name": "billing", "restartCount": 7, "state": waiting}]
    return pod


def a_job():
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "PodMigrationJob",
        "metadata": {"name": "acme-job", "uid": "j-acme"},
        "spec": {
            "mode": "ReservationFirst", "ttl": "5m",
            "podRef": {"namespace": "acme", "name": "billing-1", "uid": "u-billing"},
            "reservationOptions": {
                "reservationRef": {"name": "rocket-r", "uid": "r-rocket"},
                "template": {"spec": {"template": {"spec": {"containers": [{"env": SECRET}]}}}},
            },
        },
        "status": {
            "phase": "Running", "nodeName": "berlin-7", "message": SECRET,
            "podRef": {"namespace": "acme", "name": "billing-2"},
            "conditions": [{"type": "Eviction", "status": "False", "message": SECRET}],
        },
    }  # fmt: skip


def a_workload():
    template = {"spec": {"containers": [{"image": SECRET}]}}
    return {
        "metadata": {
            "name": "rocket-job", "namespace": "acme", "uid": "u-acme",
            "annotations": {"acme.example/note": SECRET, names.ANNOTATION_EXEMPT: "true"},
        },
        "spec": {"replicas": 3, "template": template, "updateStrategy": {"type": "OnDelete"}},
        "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1},
    }  # fmt: skip


def test_of_moves_is_kept_what_decides_them():
    pod = projection.kept(resources.PODS, a_moving_pod())
    job = projection.kept(resources.POD_MIGRATION_JOBS, a_job())
    workload = projection.kept(resources.STATEFUL_SETS, a_workload())
    assert SECRET not in json.dumps([pod, job, workload])
    volumes = [{"hostPath": {}}, {"persistentVolumeClaim": {"claimName": "rocket-claim"}}]
    assert list(pod["spec"]["volumes"]) == volumes
    status = pod["status"]["containerStatuses"][0]
    assert status["restartCount"] == 7
    assert status["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
    assert names.ANNOTATION_FORCE_EVICT in pod["metadata"]["annotations"]
    assert set(job["spec"]) == {"mode", "ttl", "podRef", "reservationOptions"}
    assert list(job["status"]["conditions"]) == [{"type": "Eviction", "status": "False"}]
    assert workload["spec"] == {"replicas": 3, "updateStrategy": {"type": "OnDelete"}}
    assert workload["metadata"]["annotations"] == {names.ANNOTATION_EXEMPT: "true"}


def test_renamed_moves_keep_their_relations():
    kept = {
        one.review_name(): (projection.kept(one, raw),)
        for one, raw in (
            (resources.PODS, a_moving_pod()),
            (resources.POD_MIGRATION_JOBS, a_job()),
            (resources.REPLICA_SETS, a_workload()),
        )
    }
    found = renaming.renamed(formats.Snapshot("2026-07-01T12:00:00Z", kept))
    assert not [word for word in WORDS if word in json.dumps(found.objects)]
    (pod,) = found.of(resources.PODS)
    (job,) = found.of(resources.POD_MIGRATION_JOBS)
    (workload,) = found.of(resources.REPLICA_SETS)
    assert job["spec"]["podRef"]["name"] == pod["metadata"]["name"]
    assert job["status"]["nodeName"] == pod["spec"]["nodeName"]
    owner = pod["metadata"]["ownerReferences"][0]
    assert (owner["uid"], owner["name"]) == (
        workload["metadata"]["uid"],
        workload["metadata"]["name"],
    )
    spread = pod["spec"]["topologySpreadConstraints"][0]
    assert spread["labelSelector"]["matchLabels"]["app"] == pod["metadata"]["labels"]["app"]
    notes = pod["metadata"]["annotations"]
    assert notes[names.ANNOTATION_FORCE_EVICT] == "true"
    assert notes[names.ANNOTATION_POD_DELETION_COST] == "-5"
