"""What a snapshot keeps of gangs, and what renaming leaves of their names."""

import json

from api import names, resources
from cli.snapshot import projection, renaming
from tests import builders
from tests.cli.placement import clusters

TOPOLOGY = '{"gatherStrategy": [{"layer": "SpineLayer", "strategy": "PreferGather"}]}'
SPEC = {"minMember": 2, "scheduleTimeoutSeconds": 30}


def a_pod_group():
    kind = resources.POD_GROUPS
    return {
        "apiVersion": kind.api_version, "kind": kind.kind,
        "metadata": {
            "name": "acme-train", "namespace": "acme", "uid": "g-acme",
            "annotations": {
                names.ANNOTATION_GANG_GROUPS: '["acme/acme-train", "acme/acme-eval"]',
                names.ANNOTATION_POD_GROUP_MATCH_POLICY: "only-waiting",
                names.ANNOTATION_GANG_NETWORK_TOPOLOGY: TOPOLOGY,
                "acme.example/note": "acme",
            },
        },
        "spec": SPEC,
        "status": {"phase": "Pending", "occupiedBy": "acme/job", "conditions": [
            {"type": "QuorumLost", "status": "False", "message": "acme"}]},
    }  # fmt: skip


def a_network():
    kind = resources.CLUSTER_NETWORK_TOPOLOGIES
    layers = [{"topologyLayer": "SpineLayer", "labelKey": ["site"]}]
    return {
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "default"},
        "spec": {"networkTopologySpec": layers},
        "status": {"detailStatus": [{"topologyInfo": {"topologyName": "acme-berlin"}}]},
    }  # fmt: skip


OBJECTS = (
    a_pod_group(),
    a_network(),
    builders.a_pod("acme-0", "acme", labels={names.LABEL_POD_GROUP: "acme-train"}),
    builders.a_pod("acme-1", "acme", annotations={
        names.ANNOTATION_GANG_NAME: "acme-eval", names.ANNOTATION_GANG_MIN_AVAILABLE: "3",
        names.ANNOTATION_GANG_GROUPS: "[acme", "gang.scheduling.koordinator.sh/x": "acme"}),
)  # fmt: skip


def test_how_gangs_are_declared_is_kept():
    group, network = (
        projection.kept(kind, raw)
        for kind, raw in (
            (resources.POD_GROUPS, a_pod_group()),
            (resources.CLUSTER_NETWORK_TOPOLOGIES, a_network()),
        )
    )
    assert group["spec"] == SPEC
    assert group["status"]["phase"] == "Pending"
    notes = group["metadata"]["annotations"]
    assert notes[names.ANNOTATION_POD_GROUP_MATCH_POLICY] == "only-waiting"
    assert notes[names.ANNOTATION_GANG_NETWORK_TOPOLOGY] == TOPOLOGY
    assert "acme.example/note" not in notes
    assert network["spec"] == a_network()["spec"]


def test_renaming_leaves_no_name_and_the_members_of_a_gang_together():
    found = renaming.renamed(clusters.snapshot(*OBJECTS))
    assert "acme" not in json.dumps(found.objects)
    (group,) = found.of(resources.POD_GROUPS)
    (network,) = found.of(resources.CLUSTER_NETWORK_TOPOLOGIES)
    of_group, annotated = found.of(resources.PODS)
    namespace, name = group["metadata"]["namespace"], group["metadata"]["name"]
    assert of_group["metadata"]["labels"][names.LABEL_POD_GROUP] == name
    other = annotated["metadata"]["annotations"]
    assert json.loads(group["metadata"]["annotations"][names.ANNOTATION_GANG_GROUPS]) == [
        f"{namespace}/{name}", f"{namespace}/{other[names.ANNOTATION_GANG_NAME]}",
    ]  # fmt: skip
    assert other[names.ANNOTATION_GANG_MIN_AVAILABLE] == "3"
    assert names.ANNOTATION_GANG_GROUPS not in other
    assert (group["spec"], group["status"]) == (SPEC, {"phase": "Pending"})
    assert network["metadata"]["name"] == "default", "the only one that is read"
