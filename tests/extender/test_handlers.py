"""Routes: lengths, limits and failures of our own."""

import json

import pytest
from aiohttp.test_utils import TestClient, TestServer

from extender import handlers
from process.http import health
from process.runtime import clock, metrics


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


class Doubting:
    """A view that cannot be proven current."""

    def trusted(self):
        return False

    async def doubt(self):
        return "nobody knows what was bound meanwhile"


class Answering:
    """Counts the calls that reach what decides."""

    def __init__(self):
        self.called = []

    def __getattr__(self, name):
        def answer(*_):
            self.called.append(name)
            return b"{}"

        return answer


def ready():
    checks = health.Health()
    checks.add("caches", lambda: None)
    return checks


def unready():
    checks = health.Health()
    checks.add("caches", lambda: "pods are not listed yet")
    return checks


@pytest.mark.parametrize("verb", ["filter", "preempt"])
@pytest.mark.parametrize(
    ("checks", "fresh", "reason"),
    [
        pytest.param(unready, Trusting, "caches: pods are not listed yet", id="not ready"),
        pytest.param(ready, Doubting, "nobody knows what was bound meanwhile", id="not fresh"),
    ],
)
async def test_nothing_is_decided_on_a_view_that_cannot_be_trusted(verb, checks, fresh, reason):
    answers = Answering()
    made = handlers.Handlers(
        answers, Broken(), fresh(), checks(), clock.ManualClock(), metrics.Registry()
    )
    async with TestClient(TestServer(made.application(1 << 20))) as client:
        answer = await client.post(f"/{verb}", data=b"{}")
        assert await answer.json() == {"Error": f"extender is not ready: {reason}"}
    assert answers.called == []


@pytest.mark.parametrize("verb", ["filter", "preempt"])
async def test_a_view_that_is_proven_current_is_answered_from(verb):
    answers = Answering()
    made = handlers.Handlers(
        answers, Broken(), Trusting(), ready(), clock.ManualClock(), metrics.Registry()
    )
    async with TestClient(TestServer(made.application(1 << 20))) as client:
        await client.post(f"/{verb}", data=b"{}")
    assert answers.called == [verb]


CALL = {"PodName": "p", "PodNamespace": "n", "PodUID": "u", "Node": "n1.example.com"}


@pytest.mark.parametrize(
    ("field", "written", "sentence"),
    [
        ("PodNamespace", "", "PodNamespace '' is no DNS-1123 label"),
        ("PodNamespace", "a/b", "PodNamespace 'a/b' is no DNS-1123 label"),
        ("PodNamespace", "a.b", "PodNamespace 'a.b' is no DNS-1123 label"),
        ("PodNamespace", "n" * 64, f"PodNamespace '{'n' * 64}' is no DNS-1123 label"),
        ("PodName", "../nodes/x", "PodName '../nodes/x' is no DNS-1123 subdomain"),
        ("PodName", "p?dryRun=All", "PodName 'p?dryRun=All' is no DNS-1123 subdomain"),
        ("PodName", "p\r\nX: y", "PodName 'p\\r\\nX: y' is no DNS-1123 subdomain"),
        ("PodName", "P", "PodName 'P' is no DNS-1123 subdomain"),
        ("PodName", "p..q", "PodName 'p..q' is no DNS-1123 subdomain"),
        ("PodName", "p" * 254, f"PodName '{'p' * 64}' is no DNS-1123 subdomain"),
        ("PodUID", "", "PodUID '' is no uid: letters, digits, '.', '_' and '-'"),
        ("PodUID", "u/v", "PodUID 'u/v' is no uid: letters, digits, '.', '_' and '-'"),
        ("Node", "n1/..", "Node 'n1/..' is no DNS-1123 subdomain"),
        ("Node", "", "Node '' is no DNS-1123 subdomain"),
        ("Node", "-n", "Node '-n' is no DNS-1123 subdomain"),
    ],
    ids=lambda value: str(value)[:24],
)
async def test_what_can_be_no_name_is_not_bound(field, written, sentence):
    made = handlers.Handlers(
        Broken(), Broken(), Trusting(), ready(), clock.ManualClock(), metrics.Registry()
    )
    async with TestClient(TestServer(made.application(1 << 20))) as client:
        answer = await client.post("/bind", data=json.dumps(CALL | {field: written}))
        assert await answer.json() == {"Error": f"bind: {sentence}"}
