"""Defaults, quality of service and checks of pods."""

from typing import Any

import pytest

from simulator.apiserver.registry import pods


def made(**container: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i:1", **container}]},
    }


def test_defaults_are_filled_in() -> None:
    body = made(
        ports=[{"containerPort": 80}], resources={"limits": {"cpu": "1"}, "requests": {"x": "2"}}
    )
    spec = pods.defaulted(body)["spec"]
    container = spec.pop("containers")[0]
    assert spec == {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }
    assert container["ports"] == [{"protocol": "TCP", "containerPort": 80}]
    assert container["resources"]["requests"] == {"cpu": "1", "x": "2"}
    assert container["terminationMessagePolicy"] == "File"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.2", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:abc", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    spec = pods.defaulted(made(image=image))["spec"]
    assert spec["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        pytest.param({}, "BestEffort", id="nothing"),
        pytest.param({"requests": {"cpu": "0"}}, "BestEffort", id="zero"),
        pytest.param({"requests": {"kubernetes.io/batch-cpu": "1"}}, "BestEffort", id="batch"),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="requests"),
        pytest.param({"limits": {"cpu": "1"}}, "Burstable", id="one limit"),
        pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed", id="limits"),
        pytest.param(
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m"}},
            "Guaranteed",
            id="equal in other words",
        ),
        pytest.param(
            {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            "Burstable",
            id="below the limit",
        ),
    ],
)
def test_quality_of_service(resources: dict[str, Any], quality: str) -> None:
    assert pods.quality(pods.defaulted(made(resources=resources))["spec"]) == quality


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        pytest.param(
            {"metadata": {}, "spec": {}}, "spec.containers", "Required", id="no container"
        ),
        pytest.param(made(image=""), "spec.containers[0].image", "Required", id="no image"),
        pytest.param(made(name="A_b"), "spec.containers[0].name", "RFC 1123", id="name"),
        pytest.param(
            made(resources={"requests": {"cpu": "-1"}}),
            "spec.containers[0].resources.requests[cpu]",
            "greater than or equal to 0",
            id="negative",
        ),
        pytest.param(
            made(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            "spec.containers[0].resources.requests",
            "must be less than or equal to cpu limit of 1",
            id="above the limit",
        ),
        pytest.param(
            made(resources={"requests": {"example.com/gpu": "1"}}),
            "spec.containers[0].resources.limits",
            "Limit must be set",
            id="extended without limit",
        ),
        pytest.param(
            made(resources={"limits": {"example.com/gpu": "500m"}}),
            "spec.containers[0].resources.requests[example.com/gpu]",
            "must be an integer",
            id="half a device",
        ),
    ],
)
def test_problems_name_the_field(body: dict[str, Any], field: str, words: str) -> None:
    found = {cause.field: cause.message for cause in pods.problems(pods.defaulted(body))}
    assert words in found[field]


def test_a_good_pod_has_no_problem() -> None:
    body = made(resources={"requests": {"kubernetes.io/batch-cpu": "1k"}})
    assert pods.problems(pods.defaulted(body)) == []


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        pytest.param({}, {"activeDeadlineSeconds": 5}, [], id="deadline"),
        pytest.param({}, {"tolerations": [{"key": "a"}]}, [], id="more tolerations"),
        pytest.param({"tolerations": [{"key": "a"}]}, {}, ["spec.tolerations"], id="fewer"),
        pytest.param({}, {"nodeName": "n"}, ["spec"], id="node"),
        pytest.param({}, {"priority": 5}, ["spec"], id="priority"),
        pytest.param({"schedulingGates": [{"name": "g"}]}, {}, [], id="gate removed"),
        pytest.param({}, {"schedulingGates": [{"name": "g"}]}, ["spec.schedulingGates"], id="gate"),
        pytest.param(
            {"schedulingGates": [{"name": "g"}]},
            {"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}},
            [],
            id="narrowed while gated",
        ),
        pytest.param({}, {"nodeSelector": {"a": "b"}}, ["spec"], id="narrowed without a gate"),
    ],
)
def test_updates(before: dict[str, Any], after: dict[str, Any], fields: list[str]) -> None:
    old, new = made(), made(image="i:2")
    old["spec"] |= before
    new["spec"] |= after
    assert [cause.field for cause in pods.update_problems(old, new)] == fields
