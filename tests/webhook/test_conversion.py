"""Conversion reviews over real HTTP."""

import pytest
from aiohttp import web

from api import resources
from process.runtime import metrics
from webhook import conversion

KIND = resources.NODE_SLOS


def review(version, desired, kind=KIND.kind):
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {
            "uid": "u-1",
            "desiredAPIVersion": desired,
            "objects": [{"apiVersion": version, "kind": kind, "metadata": {"name": "n"}}],
        },
    }


@pytest.fixture
async def client(aiohttp_client):
    app = web.Application(client_max_size=4096)
    figures = metrics.Registry()
    app.add_routes(conversion.Conversion(figures).routes())
    made = await aiohttp_client(app)
    made.figures = figures
    return made


@pytest.mark.parametrize("resource", resources.CUSTOM, ids=lambda one: one.review_name())
async def test_every_kind_of_ours_moves_between_versions(client, resource):
    new = f"{resource.group}/v2"
    answer = await client.post(
        "/convert", json=review(resource.api_version, new, kind=resource.kind)
    )
    found = (await answer.json())["response"]
    assert found["uid"] == "u-1"
    assert found["result"] == {"status": "Success"}
    assert [one["apiVersion"] for one in found["convertedObjects"]] == [new]


async def test_another_kind_is_a_clear_failure(client):
    answer = await client.post("/convert", json=review("apps/v1", "apps/v2", kind="Deployment"))
    assert answer.status == 200
    found = (await answer.json())["response"]
    assert found["result"]["status"] == "Failed"
    assert "Deployment of apps" in found["result"]["message"]
    labels = {"result": "failed"}
    assert client.figures.value("koord_webhook_conversions_total", labels) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b"{", 400, id="cut off"),
        pytest.param(b"[" * 3000, 400, id="deep"),
        pytest.param(b" " * 5000, 413, id="too large"),
    ],
)
async def test_garbage_is_a_client_error(client, body, status):
    answer = await client.post("/convert", data=body)
    assert answer.status == status
