"""Requests follow from limits as an API server completes a pod."""

import pytest

from api.kubernetes import pod_defaults

GPU = {"nvidia.com/gpu": "1"}


def container(**resources):
    return {"name": "c", "resources": resources}


def completed(container):
    (found,) = pod_defaults.with_requests({"containers": [container]})["containers"]
    return found["resources"].get("requests")


@pytest.mark.parametrize(
    ("written", "requests"),
    [
        pytest.param(container(limits=GPU), GPU, id="limits alone"),
        pytest.param(
            container(limits=GPU, requests={"cpu": "2"}), {**GPU, "cpu": "2"}, id="some requests"
        ),
        pytest.param(
            container(limits={"cpu": "2"}, requests={"cpu": 0}), {"cpu": 0}, id="a request of 0"
        ),
        pytest.param(
            container(limits={"cpu": "2"}, requests={"cpu": None}), {"cpu": "2"}, id="null"
        ),
        pytest.param(container(requests={"cpu": "2"}), {"cpu": "2"}, id="no limits"),
        pytest.param(container(), None, id="nothing"),
        pytest.param(container(limits=["cpu"]), None, id="limits of another type"),
    ],
)
def test_containers_request_what_they_limit(written, requests):
    assert completed(written) == requests


@pytest.mark.parametrize("spec", [{}, {"containers": None}, {"containers": ["x", None, 5]}])
def test_what_cannot_be_read_stays_as_it_is(spec):
    assert pod_defaults.with_requests(spec) == spec


def test_init_containers_are_completed_as_well():
    found = pod_defaults.with_requests({"initContainers": [container(limits={"cpu": "1"})]})
    assert found["initContainers"][0]["resources"]["requests"] == {"cpu": "1"}


@pytest.mark.parametrize(
    ("inside", "level", "requests"),
    [
        pytest.param({}, {"limits": {"cpu": "4"}}, {"cpu": "4"}, id="limits of the pod"),
        pytest.param(
            {"limits": {"cpu": "1"}}, {"limits": {"cpu": "4", "memory": "1Gi"}},
            {"memory": "1Gi"}, id="containers request it: their sum counts",
        ),
        pytest.param(
            {}, {"limits": {"cpu": "4"}, "requests": {"cpu": "3"}}, {"cpu": "3"}, id="requests"
        ),
        pytest.param({}, {"requests": {"cpu": "3"}}, {"cpu": "3"}, id="no limits"),
    ],
)  # fmt: skip
def test_a_pod_as_a_whole_requests_what_it_limits(inside, level, requests):
    spec = {"containers": [container(**inside)], "resources": level}
    assert pod_defaults.with_requests(spec)["resources"]["requests"] == requests


def test_what_is_given_is_not_changed():
    spec = {"containers": [container(limits=GPU)], "resources": {"limits": {"cpu": "1"}}}
    pod_defaults.with_requests(spec)
    assert spec == {"containers": [container(limits=GPU)], "resources": {"limits": {"cpu": "1"}}}
