"""Reviews as an API server sends them are answered alike on the short and on the long way."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from api.koordinator import colocation
from process.configuration import settings, switches
from process.http import fast_path, server
from process.runtime import metrics
from webhook import handlers, review

PROFILE = colocation.read_profile(
    {
        "metadata": {"name": "batch"},
        "spec": {"selector": {"matchLabels": {"colocate": "yes"}}, "qosClass": "BE"},
    }
)
PICTURE = review.Picture(
    profiles=(PROFILE,), namespaces={"default": {}}, priority_classes={}, draw=lambda _: 0
)
POD = {"metadata": {"name": "p", "labels": {"colocate": "yes"}}, "spec": {"containers": []}}
USUAL = (
    "POST {target} HTTP/1.1\r\nHost: 127.0.0.1:9876\r\n"
    "User-Agent: kube-apiserver-admission\r\nContent-Length: {length}\r\n"
    "Accept: application/json, */*\r\nContent-Type: application/json\r\n{more}"
    "Accept-Encoding: gzip\r\n\r\n"
)
Routed = Callable[[web.Request], Awaitable[web.StreamResponse]]
MUTATE = "/mutate-pod?timeout=2s"


def _body(pod: object) -> bytes:
    request = {
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "default",
        "operation": "CREATE",
        "object": pod,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review).encode()


class Site:
    """A webhook over real HTTP whose picture may be missing, and which ways were gone."""

    def __init__(self) -> None:
        self.picture: review.Picture | None = PICTURE
        self.figures = metrics.Registry()
        live = switches.Switches("webhook", switches.Mode.ENFORCE)
        self.reviews = handlers.Admission(lambda: self.picture, self.figures, live)
        self.routed = 0
        self.port = 0

    async def ask(self, target: str, body: bytes, more: str = "") -> tuple[int, bytes]:
        """Send a review as Go's client does; return the status and the body of the answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = USUAL.format(target=target, length=len(body), more=more)
        writer.write(head.encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        answer = await reader.readexactly(int(fields["content-length"]))
        writer.close()
        await writer.wait_closed()
        return int(lines[0].split()[1]), answer


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()

    @web.middleware
    async def routed(request: web.Request, handler: Routed) -> web.StreamResponse:
        made.routed += 1
        return await handler(request)

    app = web.Application(middlewares=[routed])
    app.add_routes(made.reviews.routes())
    app[fast_path.ROUTES] = made.reviews.short_way()
    limits = settings.ServerSettings(port=0, host="127.0.0.1", linger_seconds=0)
    async with contextlib.AsyncExitStack() as stack:
        running = await stack.enter_async_context(server.running_site(app, limits))
        made.port = running.port
        yield made


@pytest.mark.parametrize("target", [MUTATE, "/validate-pod?timeout=1s"])
async def test_both_ways_say_the_same(site: Site, target: str) -> None:
    short = await site.ask(target, _body(POD))
    assert site.routed == 0
    long = await site.ask(target, _body(POD), "X-Other: yes\r\n")
    assert site.routed == 1
    assert short == long
    assert short[0] == 200
    path = target.partition("?")[0]
    assert site.figures.value("koord_webhook_review_seconds_count", {"path": path}) == 2


async def test_without_a_picture_there_is_no_answer(site: Site) -> None:
    site.picture = None
    status, text = await site.ask(MUTATE, _body(POD))
    assert (status, text.decode().strip()) == (503, handlers.INCOMPLETE)


@pytest.mark.parametrize("body", [b"{}", b"[" * 100_000], ids=["no-review", "deep"])
async def test_what_is_no_review_is_refused_as_ever(site: Site, body: bytes) -> None:
    status, text = await site.ask(MUTATE, body)
    assert status == 400
    assert text
