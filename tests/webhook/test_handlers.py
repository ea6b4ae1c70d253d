"""Reviews over real HTTP."""

import base64
import dataclasses
import json
from typing import Any

import jsonpatch
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from pytest_aiohttp.plugin import AiohttpClient

from api import names
from api.koordinator import colocation
from process.configuration import switches
from process.runtime import metrics
from webhook import handlers, review

PROFILE = colocation.read_profile(
    {
        "metadata": {"name": "batch"},
        "spec": {
            "selector": {"matchLabels": {"colocate": "yes"}},
            "qosClass": "BE",
            "priorityClassName": "koord-batch",
        },
    }
)
BINDING = colocation.read_profile(
    {
        "metadata": {"name": "binding"},
        "spec": {"selector": {"matchLabels": {"bind": "yes"}}, "qosClass": "LSE"},
    }
)
PICTURE = review.Picture(
    profiles=(PROFILE, BINDING),
    namespaces={"default": {}},
    priority_classes={"koord-batch": review.PriorityClass("koord-batch", 5000)},
    draw=lambda _: 0,
)
POD = {
    "metadata": {"generateName": "p-", "labels": {"colocate": "yes"}},
    "spec": {
        "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
        ]
    },
}


def _review(pod: Any, **more: Any) -> dict[str, Any]:
    request = {
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "default",
        "operation": "CREATE",
        "object": pod,
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


class Server:
    """A webhook whose picture the test may take away."""

    def __init__(self) -> None:
        self.picture: review.Picture | None = PICTURE
        self.figures = metrics.Registry()
        self.client: Any = None

    async def ask(self, path: str, body: Any) -> dict[str, Any]:
        answer = await self.client.post(path, json=body)
        assert answer.status == 200, await answer.text()
        found = await answer.json()
        assert found["response"]["uid"] == "u-1"
        return dict(found["response"])


async def _serve(aiohttp_client: AiohttpClient, mode: str = "enforce") -> Server:
    server = Server()
    app = web.Application()
    reviews = handlers.Admission(
        lambda: server.picture, server.figures, switches.Switches("webhook", switches.Mode(mode))
    )
    app.add_routes(reviews.routes())
    client: TestClient[Any, Any] = await aiohttp_client(app)
    server.client = client
    return server


@pytest.fixture
async def server(aiohttp_client: AiohttpClient) -> Server:
    return await _serve(aiohttp_client)


async def test_a_batch_pod_is_rewritten(server: Server) -> None:
    answer = await server.ask("/mutate-pod", _review(POD))
    assert answer["allowed"] is True
    operations = json.loads(base64.b64decode(answer["patch"]))
    changed = jsonpatch.apply_patch(POD, operations)
    assert changed["metadata"]["labels"][names.LABEL_QOS] == "BE"
    assert changed["spec"]["priority"] == 5000
    assert changed["spec"]["containers"][0]["resources"] == {
        "requests": {names.BATCH_CPU: "500", names.BATCH_MEMORY: "1Gi"}
    }
    recorded = json.loads(
        changed["metadata"]["annotations"][names.ANNOTATION_EXTENDED_RESOURCE_SPEC]
    )
    assert recorded == {
        "containers": {"c": {"requests": {names.BATCH_CPU: "500", names.BATCH_MEMORY: "1Gi"}}}
    }
    again = await server.ask("/mutate-pod", _review(changed))
    assert "patch" not in again, "the second pass must change nothing"


async def test_a_pod_without_profile_is_left_alone(server: Server) -> None:
    pod = {**POD, "metadata": {"name": "plain"}}
    assert await server.ask("/mutate-pod", _review(pod)) == {"uid": "u-1", "allowed": True}


async def test_a_refusal_names_the_profile_that_caused_it(server: Server) -> None:
    pod = {**POD, "metadata": {"name": "p", "labels": {"bind": "yes"}}}
    answer = await server.ask("/mutate-pod", _review(pod))
    assert answer["allowed"] is False
    assert answer["status"]["code"] == 400
    assert "whole number" in answer["status"]["message"]
    assert "ClusterColocationProfile binding" in answer["status"]["message"]


async def test_illegal_combinations_are_refused(server: Server) -> None:
    pod = {**POD, "metadata": {"name": "p", "labels": {names.LABEL_QOS: "BE"}}}
    answer = await server.ask("/validate-pod", _review(pod))
    assert answer["allowed"] is False
    assert "koord-batch" in answer["status"]["message"], "the remedy is named"


@pytest.mark.parametrize(
    "more",
    [
        {"operation": "DELETE", "object": None},
        {"subResource": "status"},
        {"resource": {"group": "", "version": "v1", "resource": "services"}},
    ],
    ids=["deletion", "subresource", "other resource"],
)
async def test_what_is_not_ours_passes(server: Server, more: dict[str, Any]) -> None:
    assert await server.ask("/mutate-pod", _review(POD, **more)) == {"uid": "u-1", "allowed": True}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"request": null}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"request": {"uid": 1}}',
    ],
    ids=["empty", "cut off", "list", "no request", "not utf-8", "deep", "uid is a number"],
)
async def test_garbage_is_a_client_error(server: Server, body: bytes) -> None:
    answer = await server.client.post("/mutate-pod", data=body)
    assert answer.status == 400, await answer.text()
    assert "AdmissionReview" in await answer.text() or "recursion" in await answer.text()


@pytest.mark.parametrize(
    "pod",
    [
        {"spec": {"containers": [{"name": 1}]}},
        {"spec": {"containers": "none"}},
        {"metadata": None},
        {"metadata": {"labels": []}, "spec": {}},
        {"metadata": {"name": "p"}, "spec": None},
        {
            "metadata": {"labels": {"colocate": "yes"}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "much"}}}]},
        },
    ],
    ids=[
        "name is a number",
        "containers is a text",
        "no metadata",
        "labels are a list",
        "no spec",
        "quantity is no quantity",
    ],
)
@pytest.mark.parametrize("path", ["/validate-pod", "/mutate-pod"])
async def test_an_unreadable_pod_is_refused_with_its_field(
    server: Server, path: str, pod: Any
) -> None:
    answer = await server.ask(path, _review(pod))
    assert answer["allowed"] is False
    assert "pod: " in answer["status"]["message"] or "spec." in answer["status"]["message"]


PATCHES: dict[str, Any] = {
    "no metadata": {"metadata": "x"},
    "labels are a text": {"metadata": {"labels": "x"}},
    "spec is a list": {"spec": []},
    "containers are a text": {"spec": {"containers": "x"}},
    "a container is null": {"spec": {"containers": [None]}},
    "amounts are a list": {"spec": {"containers": [{"name": "c", "resources": {"requests": []}}]}},
    "unknown directive": {"spec": {"$patch": "sideways"}},
    "retained keys are a number": {"spec": {"$retainKeys": 1}},
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES.keys())
async def test_a_profile_that_breaks_pods_is_named(server: Server, patch: Any) -> None:
    raw = {"metadata": {"name": "evil"}, "spec": {"selector": {}, "patch": patch}}
    later = {"metadata": {"name": "later"}, "spec": {"selector": {}, "labels": {"a": "b"}}}
    profiles = (colocation.read_profile(raw), colocation.read_profile(later))
    server.picture = dataclasses.replace(PICTURE, profiles=profiles)
    answer = await server.ask("/mutate-pod", _review(POD))
    assert answer["allowed"] is False
    assert answer["status"]["message"].startswith("ClusterColocationProfile evil: spec.patch: ")


async def test_without_a_picture_failure_policy_decides(server: Server) -> None:
    server.picture = None
    answer = await server.client.post("/mutate-pod", json=_review(POD))
    assert answer.status == 503


async def test_observing_changes_and_refuses_nothing(aiohttp_client: AiohttpClient) -> None:
    server = await _serve(aiohttp_client, mode="observe")
    assert await server.ask("/mutate-pod", _review(POD)) == {"uid": "u-1", "allowed": True}
    labels = {"path": "/mutate-pod", "operation": "CREATE", "result": "would_change"}
    assert server.figures.value("koord_webhook_reviews_total", labels) == 1
