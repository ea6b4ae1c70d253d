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
