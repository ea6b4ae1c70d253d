"""Odd bodies: an answer to the same question or a client's error, never an error of ours."""

import json

import pytest
from aiohttp import web

from api.koordinator import colocation
from api.kubernetes.webhooks import admission
from process.configuration import switches
from process.runtime import metrics
from webhook import handlers, registry, review

PROFILE = colocation.read_profile(
    {
        "metadata": {"name": "all"},
        "spec": {
            "qosClass": "BE",
            "priorityClassName": "koord-batch",
            "labelSuffixes": {"app": "-x"},
            "labelKeysMapping": {"app": "copy"},
            "patch": {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}},
        },
    }
)
PICTURE = review.Picture(
    profiles=(PROFILE,),
    namespaces={"default": {}},
    priority_classes={"koord-batch": review.PriorityClass("koord-batch", 5000)},
    draw=lambda _: 0,
)
POD = {
    "metadata": {"name": "p", "labels": {"app": "web"}, "annotations": {"a": "b"}},
    "spec": {
        "priority": 5000,
        "overhead": {"cpu": "1m"},
        "initContainers": [{"name": "i", "resources": {"limits": {"cpu": "1"}}}],
        "containers": [
            {"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
            {"name": "d", "resources": {"limits": {"kubernetes.io/batch-cpu": "5"}}},
        ],
    },
}


def asking(pod, *, operation="CREATE", old=None):
    request = {
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "default",
        "operation": operation,
        "object": pod,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def made(**options):
    return handlers.Admission(
        lambda: PICTURE, metrics.Registry(), switches.Switches("webhook"), **options
    )


ADMISSION = made()


@pytest.fixture
async def client(aiohttp_client):
    app = web.Application(client_max_size=64 * 1024)
    app.add_routes(ADMISSION.routes())
    return await aiohttp_client(app)


def text(pod_text):
    return json.dumps(asking("POD")).replace('"POD"', pod_text).encode()


ODD = {
    "not a number": (text('{"spec": {"priority": NaN}}'), 400),
    "infinity": (text('{"spec": {"priority": -Infinity}}'), 400),
    "a huge number": (text('{"spec": {"priority": ' + "9" * 5000 + "}}"), (200, 400)),
    "a huge exponent": (text('{"spec": {"priority": 1e999999}}'), (200, 400)),
    "a key twice": (text('{"metadata": {"name": "a"}, "metadata": {"name": "b"}}'), 200),
    "nested deeply": (text("[" * 20_000 + "]" * 20_000), 400),
    "an object nested deeply": (text('{"a":' * 9000 + "1" + "}" * 9000), (200, 400)),
    "no utf-8": (text('"') + b"\xff", 400),
    "half a surrogate": (text('{"metadata": {"name": "\\ud800"}}'), (200, 400)),
    "no request": (b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}', 400),
    "another kind": (text("{}").replace(b"AdmissionReview", b"ConversionReview"), 400),
    "another version": (text("{}").replace(b"k8s.io/v1", b"k8s.io/v1beta1"), 400),
    "old object null": (text("{}"), 200),
    "object null": (text("null"), 200),
    "too large": (text('{"a": "' + "x" * 70_000 + '"}'), 413),
    "nothing": (b"", 400),
}


@pytest.mark.parametrize(("body", "status"), ODD.values(), ids=ODD)
@pytest.mark.parametrize("path", registry.ROUTES)
async def test_odd_bodies_are_a_client_error_or_answered(client, path, body, status):
    answer = await client.post(path, data=body)
    assert answer.status in (status if isinstance(status, tuple) else (status,))
    if answer.status == 200:
        assert (await answer.json())["response"]["uid"] == "u-1"


@pytest.mark.parametrize(("lenient", "allowed"), [(True, True), (False, False)])
def test_a_fault_of_ours_follows_the_failure_policy(lenient, allowed):
    def fault(_asked, _picture):
        raise ZeroDivisionError

    route = registry.Route(fault, "x", ("CREATE",))
    asked = admission.decode(json.dumps(asking(POD)).encode())
    answer, result = made(lenient=lenient).answer(route, asked, PICTURE)
    response = json.loads(answer)["response"]
    assert (response["uid"], response["allowed"], result) == ("u-1", allowed, "failed")
    assert "ZeroDivisionError" in response["warnings" if lenient else "status"].__repr__()
