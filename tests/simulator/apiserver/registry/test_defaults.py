"""Defaults and checks of the built-in kinds other than pods."""

from typing import Any

import pytest

from api import resources
from simulator.apiserver.registry import defaults, kinds

TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i:1"}]},
}


def kind(resource: resources.Resource) -> kinds.Kind:
    return next(found for found in kinds.BUILT_IN if found.resource == resource)


def prepared(resource: resources.Resource, **body: Any) -> dict[str, Any]:
    body = {"metadata": {"name": "x"}, **body}
    served = kind(resource)
    return defaults.begun(served, defaults.defaulted(served, body))


def test_workloads() -> None:
    spec = prepared(resources.DEPLOYMENTS, spec={"template": TEMPLATE})["spec"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "RollingUpdate")
    assert spec["template"]["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert prepared(resources.REPLICA_SETS, spec={"replicas": 0})["spec"]["replicas"] == 0
    job = prepared(resources.JOBS, spec={"template": TEMPLATE}, status={"active": 1})
    assert (job["spec"]["backoffLimit"], job["spec"]["parallelism"]) == (6, 1)
    assert job["spec"]["completions"] == 1
    queue = prepared(resources.JOBS, spec={"template": TEMPLATE, "parallelism": 4})
    assert (queue["spec"]["parallelism"], "completions" in queue["spec"]) == (4, False)
    assert "status" not in job


def test_namespaces_name_themselves() -> None:
    made = prepared(resources.NAMESPACES)
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert made["status"] == {"phase": "Active"}


def test_secrets_hide_their_text() -> None:
    made = prepared(resources.SECRETS, stringData={"a": "b"}, data={"c": "ZA=="})
    assert made["data"] == {"a": "Yg==", "c": "ZA=="}
    assert made["type"] == "Opaque"
    assert "stringData" not in made


def test_services_target_the_port_they_listen_on() -> None:
    (port,) = prepared(resources.SERVICES, spec={"ports": [{"port": 80}]})["spec"]["ports"]
    assert port == {"protocol": "TCP", "targetPort": 80, "port": 80}


def test_nodes_keep_the_status_they_register_with() -> None:
    made = prepared(resources.NODES, status={"capacity": {"cpu": "8"}})
    assert made["status"]["allocatable"] == {"cpu": "8"}


@pytest.mark.parametrize(
    ("resource", "body", "fields"),
    [
        pytest.param(
            resources.DEPLOYMENTS,
            {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}},
            [],
            id="good",
        ),
        pytest.param(
            resources.DEPLOYMENTS,
            {"spec": {"template": TEMPLATE}},
            ["spec.selector"],
            id="selector",
        ),
        pytest.param(
            resources.REPLICA_SETS,
            {"spec": {"selector": {"matchLabels": {"a": "c"}}, "template": TEMPLATE}},
            ["spec.template.metadata.labels"],
            id="labels",
        ),
        pytest.param(
            resources.JOBS,
            {"spec": {"template": TEMPLATE}},
            ["spec.template.spec.restartPolicy"],
            id="restarts",
        ),
        pytest.param(resources.CONFIG_MAPS, {"data": {"a b": "1"}}, ["data[a b]"], id="key"),
    ],
)
def test_problems(resource: resources.Resource, body: dict[str, Any], fields: list[str]) -> None:
    found = defaults.problems(kind(resource), None, prepared(resource, **body))
    assert [cause.field for cause in found] == fields


@pytest.mark.parametrize(
    ("meta", "fields"),
    [
        pytest.param({"name": "a.b-c1"}, [], id="good"),
        pytest.param({"generateName": "a-"}, [], id="generated"),
        pytest.param({}, ["metadata.name"], id="missing"),
        pytest.param({"name": "A"}, ["metadata.name"], id="capital"),
        pytest.param({"name": "a" * 254}, ["metadata.name"], id="long"),
        pytest.param({"generateName": "A-"}, ["metadata.name"], id="generated from a bad prefix"),
    ],
)
def test_names(meta: dict[str, Any], fields: list[str]) -> None:
    found = defaults.problems(kind(resources.CONFIG_MAPS), None, {"metadata": meta})
    assert [cause.field for cause in found] == fields


def test_identity_is_immutable() -> None:
    old = {"metadata": {"name": "a", "namespace": "x"}}
    new = {"metadata": {"name": "b", "namespace": "y"}}
    found = defaults.problems(kind(resources.CONFIG_MAPS), old, new)
    assert [cause.field for cause in found] == ["metadata.name", "metadata.namespace"]
