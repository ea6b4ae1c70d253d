"""A scripted API server over real HTTP: it says exactly what a test tells it to."""

import asyncio
import collections
import contextlib
import dataclasses
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import orjson
import pytest
from aiohttp import web

from kube.client import access, client, transport
from kube.informers import informer_set, reflector
from process.runtime import clock as clocks
from process.runtime import supervise
from tests import patience

Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclasses.dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any


class Script:
    """Replies by method and path, in order; the last one stays."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[Seen] = []
        self._replies: dict[tuple[str, str], collections.deque[Reply]] = {}
        self._over = asyncio.Event()

    def on(self, method: str, path: str, *replies: Reply) -> None:
        self._replies[method, path] = collections.deque(replies)

    def calls(self, method: str, path: str = "", **query: str) -> list[Seen]:
        return [
            seen
            for seen in self.seen
            if seen.method == method
            and (not path or seen.path == path)
            and query.items() <= seen.query.items()
        ]

    def summary(self) -> list[str]:
        return [f"{seen.method} {seen.path} {seen.query}" for seen in self.seen]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait in real time for what follows from an exchange."""
        await self._wait(condition, None)

    async def go_on(self, clock: clocks.ManualClock, condition: Callable[[], bool]) -> None:
        """Let back-offs pass as well, until something is so."""
        await self._wait(condition, clock)

    async def _wait(self, condition: Callable[[], bool], clock: clocks.ManualClock | None) -> None:
        end = time.monotonic() + patience.SECONDS
        while not condition():
            assert time.monotonic() < end, f"it did not happen; requests: {self.summary()}"
            if clock is not None and clock.sleepers:
                await clock.advance(clock.next_wake or 0)
            await asyncio.sleep(0.002)

    def json(self, body: Any, status: int = 200, **headers: str) -> Reply:
        async def reply(_: web.Request) -> web.StreamResponse:
            return web.Response(
                body=orjson.dumps(body),
                status=status,
                content_type="application/json",
                headers={name.replace("_", "-"): value for name, value in headers.items()},
            )

        return reply

    def refuse(self, status: int, reason: str = "", message: str = "no", **headers: str) -> Reply:
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": status,
            "reason": reason,
            "message": message,
        }
        return self.json(body, status, **headers)

    def text(self, text: str, status: int = 200) -> Reply:
        async def reply(_: web.Request) -> web.StreamResponse:
            return web.Response(text=text, status=status)

        return reply

    def page(self, items: list[Any], version: int, more: str = "") -> Reply:
        metadata = {"resourceVersion": str(version), **({"continue": more} if more else {})}
        return self.json({"kind": "List", "metadata": metadata, "items": items})

    def watch(self, *events: Any, then: str = "hold", kind: str = "application/json") -> Reply:
        """Stream events; then hold the stream silently, end it well, or drop it half way.

        Events of another content type than JSON are bytes, which are sent as they are.
        """

        async def reply(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse(headers={"Content-Type": kind})
            await answer.prepare(request)
            for event in events:
                line = event if isinstance(event, bytes) else orjson.dumps(event)
                await answer.write(line + (b"\n" if kind == "application/json" else b""))
            if then == "hold":
                await self._over.wait()
            if then == "drop":
                await answer.write(b'{"type":"ADDED","obj')
                assert request.transport is not None
                request.transport.abort()
            return answer

        return reply

    def hold(self) -> Reply:
        """Never answer."""

        async def reply(_: web.Request) -> web.StreamResponse:
            await self._over.wait()
            return web.Response(status=503)

        return reply

    def drop(self) -> Reply:
        """Close the connection instead of answering."""

        async def reply(request: web.Request) -> web.StreamResponse:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()

        return reply

    async def handle(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        self.seen.append(
            Seen(
                request.method,
                request.path,
                dict(request.query),
                dict(request.headers),
                orjson.loads(data) if data else None,
            )
        )
        replies = self._replies.get((request.method, request.path))
        if replies is None:
            return await self.refuse(404, "NotFound", f"nothing at {request.path}")(request)
        reply = replies.popleft() if len(replies) > 1 else replies[0]
        return await reply(request)

    def end(self) -> None:
        self._over.set()


@contextlib.asynccontextmanager
async def _served(script: Script) -> AsyncIterator[Script]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", script.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    script.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield script
    finally:
        script.end()
        await runner.cleanup()


@pytest.fixture
async def server() -> AsyncIterator[Script]:
    """An API server that follows a script."""
    async with _served(Script()) as script:
        yield script


@pytest.fixture
def rng() -> random.Random:
    """Chance that is the same in every run."""
    return random.Random(20)


@pytest.fixture
def connect(
    server: Script, clock: clocks.ManualClock, rng: random.Random
) -> Callable[..., client.Client]:
    """Make a client of the scripted server, on virtual time unless told otherwise."""

    def make(*, tokens: access.TokenSource | None = None, **options: Any) -> client.Client:
        options.setdefault("clock", clock)
        limits = options.pop("limits", None) or transport.Limits(request_seconds=5.0)
        return client.Client(
            access.Access(server.url, tokens=tokens), rng=rng, limits=limits, **options
        )

    return make


@pytest.fixture
async def api(connect: Callable[..., client.Client]) -> AsyncIterator[client.Client]:
    """An open client of the scripted server."""
    async with connect() as opened:
        yield opened


@pytest.fixture
async def supervisor() -> AsyncIterator[supervise.Supervisor]:
    """A supervisor whose tasks must not have failed by the end of the test."""
    async with supervise.Supervisor("test") as running:
        yield running


@pytest.fixture
def pace() -> reflector.Pace:
    """A pace that notices silence quickly in real time and pages after two objects."""
    return reflector.Pace(silence_seconds=0.15, page=2, streaming_list=False)


@pytest.fixture
def watched(
    api: client.Client,
    clock: clocks.ManualClock,
    rng: random.Random,
    pace: reflector.Pace,
) -> Callable[..., informer_set.InformerSet]:
    """Make caches on the scripted server."""

    def make(**changes: Any) -> informer_set.InformerSet:
        return informer_set.InformerSet(
            api, clock, rng=rng, pace=dataclasses.replace(pace, **changes), stale_seconds=60
        )

    return make


@pytest.fixture
def pod() -> Callable[..., dict[str, Any]]:
    """Build a pod as the API server tells it."""

    def build(name: str, version: int, *, uid: str = "", node: str = "") -> dict[str, Any]:
        return {
            "metadata": {
                "name": name,
                "namespace": "shop",
                "uid": uid or f"uid-{name}",
                "resourceVersion": str(version),
            },
            "spec": {"nodeName": node, "containers": [{"name": "main"}]},
            "status": {"phase": "Running"},
        }

    return build
