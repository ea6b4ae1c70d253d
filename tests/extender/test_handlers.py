"""Routes: lengths, limits and failures of our own."""

import json

import pytest
from aiohttp.test_utils import TestClient, TestServer

from extender import handlers
from process import clock, health, metrics


class Broken:
    """Fails at whatever it is asked."""

    def __getattr__(self, name):
        def fail(*_):
            raise RuntimeError(f"{name} is broken")

        return fail


class Trusting:
    def trusted(self):
        return True

    async def doubt(self):
        return ""


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt", "bind"])
async def test_an_internal_failure_is_logged_and_answered(verb, caplog):
    registry = metrics.Registry()
    made = handlers.Handlers(
        Broken(), Broken(), Trusting(), health.Health(), clock.ManualClock(), registry
    )
    body = {"PodName": "p", "PodNamespace": "n", "PodUID": "u", "Node": "n1"}
    async with TestClient(TestServer(made.application(1 << 20))) as client:
        answer = await client.post(f"/{verb}", data=json.dumps(body))
        assert answer.status == 200
        document = await answer.json()
        assert answer.headers["Content-Length"] == str(len(await answer.read()))
    if verb == "prioritize":
        assert document == []
    else:
        assert document["Error"] == f"{verb}: internal failure; see the extender's log"
    assert "is broken" in caplog.text
    exposed = registry.exposition("")[0].decode()
    assert f'koord_extender_failures_total{{verb="{verb}"}} 1.0' in exposed
