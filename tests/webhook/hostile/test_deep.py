"""A tenant cannot keep an object from being reviewed by nesting something in it."""

import base64
import json

import pytest
from aiohttp import web

from api import names
from api.koordinator import colocation
from api.kubernetes.webhooks import admission
from process.configuration import switches
from process.runtime import metrics
from tests import processor_time
from webhook import handlers, review

PROFILE = colocation.read_profile(
    {
        "metadata": {"name": "all"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "qosClass": "LS"},
    }
)
PICTURE = review.Picture((PROFILE,), {"default": {}}, {}, draw=lambda _: 0)
LEVELS = (50, 150, 300, 700, 950, 1200, 3000, 9990)


def nested(levels, opening='{"f:a":', closing="}"):
    return opening * levels + "{}" + closing * levels


def pod(levels=0, *, labels=None):
    """A pod whose managed fields are nested, as an API server stores and sends it."""
    metadata = {
        "name": "p",
        "labels": {"app": "web", **(labels or {})},
        "managedFields": [{"fieldsV1": "DEEP"}],
    }
    body = {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}}
    return json.dumps(body).replace('"DEEP"', nested(levels))


def review_of(object_text, *, old="null", operation="CREATE", plural="pods", group=""):
    request = {
        "uid": "u-1",
        "resource": {"group": group, "version": "v1", "resource": plural},
        "namespace": "default",
        "operation": operation,
        "object": "NEW",
        "oldObject": "OLD",
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(body).replace('"NEW"', object_text).replace('"OLD"', old).encode()


@pytest.fixture
async def client(aiohttp_client):
    reviews = handlers.Admission(lambda: PICTURE, metrics.Registry(), switches.Switches("webhook"))
    app = web.Application(client_max_size=8 << 20)
    app.add_routes(reviews.routes())
    return await aiohttp_client(app)


async def asked(client, path, body):
    answer = await client.post(path, data=body)
    assert answer.status == 200, await answer.text()
    return (await answer.json())["response"]


@pytest.mark.parametrize("levels", LEVELS)
async def test_a_pod_with_nested_managed_fields_is_changed_as_any_other(client, levels):
    response = await asked(client, "/mutate-pod", review_of(pod(levels)))
    assert "patch" in response, response
    patch = json.loads(base64.b64decode(response["patch"]))
    assert {one["path"] for one in patch} >= {f"/metadata/labels/{escaped(names.LABEL_QOS)}"}
    assert not any("managedFields" in one["path"] for one in patch)
    assert "warnings" not in response


def escaped(key):
    return key.replace("~", "~0").replace("/", "~1")


@pytest.mark.parametrize("levels", LEVELS)
async def test_a_pod_with_nested_managed_fields_is_refused_as_any_other(client, levels):
    old, new = pod(levels), pod(levels, labels={names.LABEL_QOS: "LSE"})
    response = await asked(client, "/validate-pod", review_of(new, old=old, operation="UPDATE"))
    assert response["allowed"] is False
    assert "immutable" in response["status"]["message"]


@pytest.mark.parametrize("levels", LEVELS)
async def test_an_object_of_ours_with_a_nested_unknown_field_is_refused_as_any_other(
    client, levels
):
    spec = {"min": {"cpu": "3"}, "max": {"cpu": "2"}, "unknown": "DEEP"}
    quota = json.dumps({"metadata": {"name": "q"}, "spec": spec})
    body = review_of(
        quota.replace('"DEEP"', nested(levels, "[", "]")),
        plural="elasticquotas",
        group="scheduling.sigs.k8s.io",
    )
    response = await asked(client, "/validate-elasticquota", body)
    assert response["allowed"] is False
    assert "spec.min[cpu]" in response["status"]["message"]


def test_only_what_lies_deep_is_left_out():
    text = f'{{"a": "}}]\\"{{[", "b": [1, {nested(200)}, 2], "c": {nested(3)}}}'.encode()
    found = json.loads(admission.trimmed(text))
    assert (found["a"], found["b"][0], found["b"][2]) == ('}]"{[', 1, 2)
    assert found["c"] == json.loads(nested(3))


@pytest.mark.parametrize("text", [b"[" * 30_000, b"]" * 200, b'"' * 9, b'{"a": "' + b"\\" * 9])
def test_what_is_no_json_stays_none(text):
    with pytest.raises((admission.ReviewError, RecursionError)):
        admission.decode(admission.trimmed(text))


def test_leaving_out_takes_no_longer_than_reading_twice():
    body = review_of(pod(9000), old="[" + ",".join(["{}"] * 200_000) + "]")
    with processor_time.below(1.0):
        admission.trimmed(body)


def test_a_string_that_never_ends_takes_no_longer():
    with processor_time.below(1.0):
        admission.trimmed(b"[" * 200 + b'"' + b'\\"' * 100_000 + b"\\")
