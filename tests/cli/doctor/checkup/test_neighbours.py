"""Who else is in the cluster."""

import pytest

from api import names
from cli.doctor.checkup import findings, neighbours
from manager.model import projections
from tests.planes.install import checkups


@pytest.mark.parametrize(
    ("image", "kind", "name"),
    [
        ("ghcr.io/koordinator-sh/koord-manager:v1.8.0", "Deployment", "koordinator"),
        ("registry/koordlet:v1.8.0", "DaemonSet", "koordinator"),
        ("kubewharf/katalyst-agent:v0.5", "DaemonSet", "agent"),
        ("volcanosh/vc-agent:v1.10", "DaemonSet", "agent"),
        ("gocrane/crane-agent:v0.11", "DaemonSet", "agent"),
        (
            "registry.k8s.io/autoscaling/cluster-autoscaler:v1.30",
            "Deployment",
            "cluster-autoscaler",
        ),
        ("public.ecr.aws/karpenter/controller:1.0", "Deployment", "cluster-autoscaler"),
        ("registry.k8s.io/descheduler/descheduler:v0.30", "Deployment", "descheduler"),
    ],
)
def test_neighbours_are_known_by_their_images(found, healthy, image, kind, name):
    other = checkups.stranger("theirs", image, kind)
    part = "deployments" if kind == "Deployment" else "daemon_sets"
    told = found(**{part: [*getattr(healthy, part), other]})
    assert set(told) == {f"neighbour.{name}"}
    assert "other/theirs" in told[f"neighbour.{name}"].sentence


def test_our_own_workloads_are_no_neighbours(found, healthy):
    ours = checkups.deployment("manager", "registry.example.com/koord-manager:1")
    assert "neighbour.koordinator" not in found(deployments=[*healthy.deployments[:1], ours])


@pytest.mark.parametrize(
    ("name", "hook", "told"),
    [
        ("koordinator-mutating-webhook-configuration", "mpod.kb.io", True),
        ("other", "mpod.koordinator.sh", True),
        ("other", "mpod.example.com", False),
    ],
)
def test_another_webhook_that_applies_profiles(found, healthy, name, hook, told):
    theirs = {
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{"name": hook}],
    }
    found_names = found(webhooks=[*healthy.webhooks, theirs])
    assert set(found_names) == ({"neighbour.webhook"} if told else set())


@pytest.mark.parametrize(
    ("owners", "told"),
    [
        ({"koord-manager": [names.BATCH_CPU], "kubelet": [names.BATCH_CPU]}, set()),
        ({"rival": [names.MID_CPU]}, {"neighbour.second-writer"}),
        ({"rival": ["example.com/gpu"]}, set()),
        ({}, set()),
    ],
    ids=["ours", "rival", "other-resource", "nobody"],
)
def test_writers_of_lent_resources(found, healthy, owners, told):
    assert set(found(nodes=[checkups.node("a", owners=owners), healthy.nodes[1]])) == told


def test_owned_fields_are_read_from_both_parts_of_a_status():
    entry = {
        "manager": "m",
        "fieldsV1": {
            "f:status": {
                "f:capacity": {f"f:{names.BATCH_CPU}": {}},
                "f:allocatable": {f"f:{names.MID_CPU}": {}, "f:cpu": {}},
            }
        },
    }
    node = {"metadata": {"managedFields": [entry, {"manager": "m"}]}}
    assert neighbours.lent_fields(node) == {"m": {names.BATCH_CPU, names.MID_CPU}}


def test_everything_that_the_manager_writes_of_nodes_is_looked_at():
    assert {f"f:{name}" for name in projections.MANAGED} == neighbours.LENT


def test_many_nodes_are_summed_up(found):
    many = [checkups.node(f"n{n}", owners={"rival": [names.MID_CPU]}) for n in range(8)]
    told = neighbours._writers(many)
    (finding,) = list(told)
    assert finding.sentence.endswith("n0, n1, n2, n3, n4 and 3 more")
    assert finding.severity is findings.Severity.ERROR
