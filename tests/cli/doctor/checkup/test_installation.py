"""Versions, custom resource definitions and workloads."""

import copy

import pytest

from api import resources
from api.kubernetes import crds
from cli.doctor.checkup import facts, findings, installation
from tests.planes.install import checkups

NAME = resources.RESERVATIONS.review_name()


@pytest.mark.parametrize(
    ("minor", "told"),
    [
        (27, {"version.too-old"}),
        (28, set()),
        (33, {"version.cgroup-v1"}),
        (36, set()),
        (37, set()),
        (38, {"version.untried"}),
    ],
)
def test_versions(found, minor, told):
    assert set(found(version=facts.Version(1, minor, f"v1.{minor}.0"))) == told


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ({"major": "1", "minor": "29+", "gitVersion": "v1.29.4-gke.1"}, (1, 29)),
        ({"major": "1", "minor": "30", "gitVersion": "v1.30.14"}, (1, 30)),
        ({"gitVersion": "v1.31.2"}, (1, 31)),
        ({}, (0, 0)),
    ],
)
def test_vendors_write_versions_their_own_way(answer, number):
    version = facts.version_of(answer)
    assert (version.major, version.minor) == number


def changed(healthy, change):
    crds = {name: copy.deepcopy(crd) for name, crd in healthy.crds.items()}
    change(crds[NAME])
    return crds


def schema(crd):
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def drop_a_field(crd):
    spec = schema(crd)["properties"]["spec"]
    del spec["properties"]["ttl"]
    spec.pop("x-kubernetes-preserve-unknown-fields", None)


def disown(crd):
    crd["metadata"]["labels"] = {}
    crd["metadata"]["annotations"] = {"meta.helm.sh/release-name": "koordinator"}


def both(*changes):
    def change(crd):
        for one in changes:
            one(crd)

    return change


def unserve(crd):
    crd["spec"]["versions"][0]["served"] = False


def refuse(crd):
    crd["status"] = {
        "conditions": [
            {"type": "Established", "status": "False"},
            {"type": "NamesAccepted", "status": "False", "message": "taken by another"},
        ]
    }


@pytest.mark.parametrize(
    ("change", "name", "says"),
    [
        (refuse, "crd.not-established", "taken by another"),
        (unserve, "crd.version-missing", "does not serve v1alpha1"),
        (
            lambda crd: crd["spec"]["versions"][0].update(storage=False),
            "crd.version-missing",
            "stores nothing",
        ),
        (drop_a_field, "crd.other-release", "lacks spec.ttl"),
        (disown, "crd.foreign", "Helm release koordinator"),
        (both(disown, drop_a_field), "crd.foreign-fields", "lacks spec.ttl"),
    ],
    ids=["refused", "unserved", "unstored", "older", "foreign", "foreign-and-older"],
)
def test_a_definition_that_is_not_ours_or_not_of_now(found, healthy, change, name, says):
    told = found(crds=changed(healthy, change))
    assert set(told) == {name}
    assert says in told[name].sentence
    assert told[name].object == NAME


def test_a_missing_definition(found, healthy):
    crds = {name: crd for name, crd in healthy.crds.items() if name != NAME}
    assert set(found(crds=crds)) == {"crd.missing"}


def test_who_installed_something_is_told_by_its_first_writer():
    managed = [{"manager": "helm"}, {"manager": "kubectl", "subresource": "status"}]
    assert installation.installer({"metadata": {"managedFields": managed}}) == "helm"
    assert installation.installer({"metadata": {}}) == "another client"


def test_free_form_schemas_drop_nothing():
    wanted = {"properties": {"a": {"properties": {"b": {"type": "string"}}}}}
    free = {"properties": {"a": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    assert installation.missing_fields(wanted, free) == []
    shut = {"properties": {"a": {"type": "object", "properties": {"c": {"type": "string"}}}}}
    assert installation.missing_fields(wanted, shut) == ["a.b"]
    assert installation.missing_fields(wanted, {"type": "object"}) == ["a"]
    assert installation.missing_fields(wanted, {"additionalProperties": {}}) == []
    open_ended = {"properties": {"c": {}}, crds.PRESERVE: True}
    assert installation.missing_fields(wanted, open_ended) == []
    items = {"properties": {"l": {"items": {"properties": {"x": {}}}}}}
    fewer = {"properties": {"l": {"items": {"properties": {"y": {}}}}}}
    assert installation.missing_fields(items, fewer) == ["l[].x"]


def parts(healthy, **changes):
    """The Deployments with one of them changed or left out."""
    kept = []
    for deployment in healthy.deployments:
        component = facts.component(deployment)
        if component not in changes:
            kept.append(deployment)
        elif changes[component] is not None:
            kept.append(changes[component])
    return kept


@pytest.mark.parametrize(
    ("changes", "name", "says"),
    [
        ({"manager": None}, "workload.missing", "component=manager"),
        (
            {"webhook": checkups.deployment("webhook", ready=0)},
            "workload.not-ready",
            "none of 2 pods",
        ),
        (
            {"webhook": checkups.deployment("webhook", ready=1)},
            "workload.partly-ready",
            "1 of 2 pods is ready",
        ),
        (
            {"webhook": checkups.deployment("webhook", updated=1)},
            "workload.partly-ready",
            "1 of 2 pods is updated",
        ),
        (
            {"manager": checkups.deployment("manager", replicas=0)},
            "workload.stopped",
            "scaled to 0",
        ),
        (
            {"manager": checkups.deployment("manager", "registry.example.com/koord:0.2.0")},
            "workload.mixed-images",
            "koord:0.2.0 in koord-manager",
        ),
    ],
    ids=["missing", "down", "partly", "rolling", "stopped", "mixed"],
)
def test_workloads(found, healthy, changes, name, says):
    told = found(deployments=parts(healthy, **changes))
    assert set(told) == {name}
    assert says in told[name].sentence


def test_agents_that_are_not_ready_or_not_there(found):
    assert set(found(daemon_sets=[checkups.daemon_set(ready=1)])) == {"workload.partly-ready"}
    assert set(found(daemon_sets=[])) == {"workload.missing"}


def test_a_scheduler_on_the_control_plane_needs_no_deployment(found, healthy):
    assert found(deployments=parts(healthy, scheduler=None)) == {}


def test_what_could_not_be_read_is_said_by_every_check_that_needs_it(found):
    unread = facts.Unknown("deployments", "403 Forbidden")
    told = found(deployments=unread)
    assert set(told) == {"workload", "scheduler", "neighbour"}
    for finding in told.values():
        assert finding.severity is findings.Severity.UNKNOWN
        assert finding.sentence == "could not be checked: deployments: 403 Forbidden"
