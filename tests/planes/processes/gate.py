"""A reverse proxy in front of one process: it holds, loses or cuts what passes through it."""

import asyncio
import contextlib
import dataclasses
import ssl
import time

import aiohttp
from aiohttp import web

HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})


@dataclasses.dataclass(frozen=True)
class Call:
    method: str
    path: str
    body: bytes
    query: str = ""
    kind: str = ""
    at: float = 0.0
    """On the monotonic clock."""
    status: int = 0
    """With which it was answered; 0 before that."""

    @property
    def is_watch(self):
        return "watch=true" in self.query

    @property
    def is_list(self):
        """Whether everything is asked for, in pages or as the first events of a watch."""
        if self.method != "GET" or "continue=" in self.query:
            return False
        if self.is_watch:
            return "sendInitialEvents" in self.query
        # A page of one is only asked for its version.
        return "limit=" in self.query and "limit=1&" not in f"{self.query}&"

    @property
    def is_binding(self):
        return self.method == "POST" and self.path.endswith("/binding")


async def _pass(call):
    """Do nothing."""


class Gate:
    """Forwards every call, and cutting it ends everything at once.

    A test may wait in `before` a call goes on, `after` it was answered, and each time a watch has
    `told` something; an aiohttp.ClientError there loses the connection, and an answer that
    `before` returns is sent instead of the call.
    """

    def __init__(self, session, target):
        self._session = session
        self.target = target
        self.url = ""
        self.calls = []
        self.flying = 0
        """How many calls are on their way, watches included."""
        self.runner = None
        self._cut = False
        self._flows = asyncio.Event()
        self.reset()

    def reset(self):
        self.before = self.after = self.told = _pass
        self._flows.set()

    def swallow(self):
        """Lose every packet from now on: connections stay open and tell nothing."""
        self._flows.clear()

    def flow(self):
        """Deliver again, first what was on its way."""
        self._flows.set()

    def cut(self):
        """Vanish for good: nothing that is on its way arrives, neither there nor back."""
        self._cut = True
        self.hang_up()

    def hang_up(self):
        """End every connection; new ones are served."""
        server = self.runner.server
        for connection in server.connections if server is not None else ():
            if connection.transport is not None:
                connection.transport.abort()

    @property
    def resting(self):
        """How many connections wait for another call, in front of the gate and behind it."""
        server = self.runner.server
        front = len(server.connections) - self.flying if server is not None else 0
        # There is no public word for what a connector of aiohttp keeps.
        return front + sum(map(len, self._session.connector._conns.values()))

    async def handle(self, request):
        if self._cut:
            return self._vanished(request)
        self.flying += 1
        try:
            return await self._forward(request)
        finally:
            self.flying -= 1

    async def _forward(self, request):
        body = await request.read()
        kind = request.headers.get("Content-Type", "")
        now = time.monotonic()
        call = Call(request.method, request.path, body, request.query_string, kind, now)
        self.calls.append(call)
        headers = {k: v for k, v in request.headers.items() if k.lower() not in HOP}
        url = self.target + request.path_qs
        try:
            await self._flows.wait()
            instead = await self.before(call)
            if instead is not None:
                return instead
            async with self._session.request(
                call.method, url, data=call.body or None, headers=headers
            ) as answer:
                return await self._back(request, call, answer)
        except aiohttp.ClientError:
            return self._vanished(request)

    async def _back(self, request, call, answer):
        headers = {k: v for k, v in answer.headers.items() if k.lower() not in HOP}
        if not call.is_watch:
            body = await answer.read()
            await self.after(dataclasses.replace(call, status=answer.status))
            await self._flows.wait()
            return web.Response(body=body, status=answer.status, headers=headers)
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        async for chunk in answer.content.iter_any():
            await self.told(call)
            await self._flows.wait()
            await response.write(chunk)
        return response

    @staticmethod
    def _vanished(request):
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


@contextlib.asynccontextmanager
async def opened(target="", ca=b""):
    """A gate on a port of its own that leads to a base URL."""
    context = ssl.create_default_context(cadata=ca.decode()) if ca else None
    connector = aiohttp.TCPConnector(limit=0, ssl=context or True)
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
    ) as session:
        gate = Gate(session, target)
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", gate.handle)
        gate.runner = web.AppRunner(
            app, handler_cancellation=True, shutdown_timeout=0.1, keepalive_timeout=3600.0
        )
        await gate.runner.setup()
        try:
            await web.TCPSite(gate.runner, "127.0.0.1", 0).start()
            gate.url = f"http://127.0.0.1:{gate.runner.addresses[0][1]}"
            yield gate
        finally:
            gate.cut()
            await gate.runner.cleanup()
