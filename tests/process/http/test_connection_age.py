"""Busy connections end at an age, so that clients dial again and reach replicas that came later."""

import asyncio
import collections
import contextlib
import itertools
import socket

import aiohttp
import pytest
from aiohttp import abc, web

from process.configuration.settings import ServerSettings
from process.http import connection_age, connections, fast_path, server
from process.runtime import metrics
from process.runtime.clock import ManualClock
from process.runtime.supervise import Supervisor
from tests.process.http.sites import Serve, dialled, echo

MOST = 60.0
POST = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
CLOSE = "Connection: close"


async def echoed(reader: asyncio.StreamReader, body: bytes) -> str:
    """Read one answer, which repeats the body, and return its head."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    assert await reader.readexactly(len(body)) == body
    assert head.startswith("HTTP/1.1 200 ")
    return head


async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    writer.write(POST % 2 + b"hi")
    return await echoed(reader, b"hi")


async def test_the_first_answer_after_the_age_is_the_last_one(
    serve: Serve, clock: ManualClock
) -> None:
    async with (
        serve(max_connection_age_seconds=MOST) as site,
        dialled(site) as (reader, writer),
    ):
        for _ in range(29):
            assert CLOSE not in await post(reader, writer)
            await clock.advance(1)
        # It is not closed while it is idle: a client may be about to ask.
        await clock.advance(600)
        assert CLOSE in await post(reader, writer)
        assert await reader.read() == b""


async def test_without_a_greatest_age_a_busy_connection_is_kept(
    serve: Serve, clock: ManualClock
) -> None:
    assert ServerSettings().max_connection_age_seconds == 0
    async with serve() as site, dialled(site) as (reader, writer):
        for _ in range(3):
            assert CLOSE not in await post(reader, writer)
            await clock.advance(86_400)


async def test_what_was_sent_before_the_last_answer_is_answered(
    serve: Serve, clock: ManualClock
) -> None:
    async with (
        serve(max_connection_age_seconds=MOST) as site,
        dialled(site) as (reader, writer),
    ):
        await post(reader, writer)
        # The age is reached within a request; two follow, of which one is not complete.
        writer.write(POST % 3 + b"o")
        await writer.drain()
        await clock.advance(MOST + 1)
        writer.write(b"ne" + POST % 3 + b"two" + POST % 5 + b"th")
        assert CLOSE not in await echoed(reader, b"one")
        assert CLOSE not in await echoed(reader, b"two")
        writer.write(b"ree")
        assert CLOSE in await echoed(reader, b"three")
        assert await reader.read() == b""


async def test_half_a_head_before_the_last_answer_is_no_loss(clock: ManualClock) -> None:
    app = web.Application()
    app[fast_path.ROUTES] = {"/echo": lambda body, connected: body}
    app.router.add_post("/long", echo)
    limits = ServerSettings(linger_seconds=0, max_connection_age_seconds=MOST)
    long = (POST % 4).replace(b"/echo", b"/long")
    async with (
        server.running_site(app, limits, clock=clock) as site,
        dialled(site) as (reader, writer),
    ):
        await post(reader, writer)
        await clock.advance(MOST + 1)
        # From the short way to the long one, with half a head at each turn.
        writer.write(POST % 3 + b"one" + long[:30])
        assert CLOSE not in await echoed(reader, b"one")
        writer.write(long[30:] + b"long" + (POST % 3)[:30])
        assert CLOSE not in await echoed(reader, b"long")
        # Its head came in two pieces, so the long way answers it, which does not know the path.
        writer.write((POST % 3)[30:] + b"two")
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert head.startswith("HTTP/1.1 404 ")
        assert CLOSE in head
        assert (await reader.read()).endswith(b"404: Not Found")


async def test_an_answer_that_takes_time_is_the_last_one_too(clock: ManualClock) -> None:
    asked, release = asyncio.Event(), asyncio.Event()

    async def wait(body: bytes, _connected: fast_path.Caller) -> bytes:
        asked.set()
        await release.wait()
        return body

    app = web.Application()
    app[fast_path.ROUTES] = {"/echo": wait}
    limits = ServerSettings(linger_seconds=0, max_connection_age_seconds=MOST)
    async with (
        server.running_site(app, limits, clock=clock) as site,
        dialled(site) as (reader, writer),
    ):
        writer.write(POST % 3 + b"one")
        await asked.wait()
        await clock.advance(MOST + 1)
        release.set()
        assert CLOSE in await echoed(reader, b"one")
        assert await reader.read() == b""


async def test_half_a_request_that_comes_during_an_answer_is_no_loss(clock: ManualClock) -> None:
    asked, release = asyncio.Event(), asyncio.Event()

    async def wait(request: web.Request) -> web.Response:
        asked.set()
        await release.wait()
        return await echo(request)

    app = web.Application()
    app.router.add_post("/echo", wait)
    limits = ServerSettings(linger_seconds=0, max_connection_age_seconds=MOST)
    async with (
        server.running_site(app, limits, clock=clock) as site,
        dialled(site) as (reader, writer),
    ):
        writer.write(POST % 3 + b"one")
        await asked.wait()
        writer.write((POST % 3)[:30])
        await writer.drain()
        await clock.advance(MOST + 1)
        release.set()
        assert CLOSE not in await echoed(reader, b"one")
        writer.write((POST % 3)[30:] + b"two")
        assert CLOSE in await echoed(reader, b"two")


async def test_an_unread_body_does_not_keep_a_connection(clock: ManualClock) -> None:
    async def hasty(_request: web.Request) -> web.Response:
        return web.Response(status=409)

    app = web.Application()
    app[fast_path.ROUTES] = {}
    app.router.add_post("/echo", hasty)
    limits = ServerSettings(linger_seconds=0, max_connection_age_seconds=MOST)
    async with (
        server.running_site(app, limits, clock=clock) as site,
        dialled(site) as (reader, writer),
    ):
        writer.write(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"404: Not Found")
        await clock.advance(MOST + 1)
        writer.write(POST % 4 + b"ha")
        assert CLOSE in (await reader.readuntil(b"\r\n\r\n")).decode()
        writer.write(b"lf")
        assert await reader.read() == b""


class Balancer(abc.AbstractResolver):
    """Leads every new connection to the next replica, as a Service does."""

    def __init__(self) -> None:
        self.replicas: list[server.Site] = []
        self.dialled = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[abc.ResolveResult]:
        site = self.replicas[self.dialled % len(self.replicas)]
        self.dialled += 1
        found = abc.ResolveResult(
            hostname=host, host="127.0.0.1", port=site.port, family=family, proto=0, flags=0
        )
        return [found]

    async def close(self) -> None:
        """Keep nothing."""


async def test_a_replica_that_came_later_gets_its_share(clock: ManualClock) -> None:
    """Twenty callers share a pool as that of an API server, of 25 connections for 90 s."""
    served: collections.Counter[str] = collections.Counter()
    limits = ServerSettings(linger_seconds=0, max_connection_age_seconds=MOST)
    balancer, dials = Balancer(), list[int]()

    async def start(name: str) -> None:
        def handle(body: bytes, _connected: fast_path.Caller) -> bytes:
            served[name] += 1
            return body

        app = web.Application()
        app[fast_path.ROUTES] = {"/echo": handle}
        balancer.replicas.append(
            await stack.enter_async_context(server.running_site(app, limits, clock=clock))
        )

    async def ask(seconds: int) -> None:
        """Let all callers ask every five seconds."""
        for _ in range(seconds // 5):
            before = balancer.dialled
            async with asyncio.TaskGroup() as group:
                for _ in range(20):
                    group.create_task(call())
            dials.append(balancer.dialled - before)
            await clock.advance(5)

    async def call() -> None:
        async with session.post("http://webhook.test/echo", data=b"{}") as answer:
            assert (answer.status, await answer.read()) == (200, b"{}")

    async with contextlib.AsyncExitStack() as stack:
        connector = aiohttp.TCPConnector(
            resolver=balancer, use_dns_cache=False, limit=25, keepalive_timeout=90
        )
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        await start("first")
        await ask(15)
        assert (served["first"], dials) == (60, [20, 0, 0])
        await start("second")
        await ask(60)
        del dials[:3]
        # Each connection lasts half a minute at least, and few of them end at the same time.
        assert 20 <= sum(dials) <= 40, dials
        assert max(dials) <= 8, dials
        served.clear()
        await ask(30)
        assert sum(served.values()) == 120
        assert 40 <= served["second"] <= 80, served


@pytest.mark.parametrize("together", [5, 25, 100])
def test_connections_that_were_dialled_together_end_one_by_one(together: int) -> None:
    ages = sorted(connection_age.age(MOST, number) for number in range(together))
    assert MOST / 2 < ages[0] <= ages[-1] <= MOST
    gaps = [later - earlier for earlier, later in itertools.pairwise(ages)]
    even = MOST / 2 / together
    assert all(even / 3 < gap < even * 3 for gap in gaps), gaps


async def test_a_connection_that_has_ended_is_forgotten(clock: ManualClock) -> None:
    refused = metrics.Registry().counter("koord_test_refusals_total", "Refusals.")
    accepted = connections.Connections(web.Server(echo), ServerSettings(), refused, refused)
    accepted.ages = ages = connection_age.Ages(MOST, clock)
    connection = accepted.admit("127.0.0.1")
    assert connection is not None
    accepted.opened(connection)
    accepted.closed(connection)
    async with Supervisor("test") as supervisor:
        supervisor.start("age", ages.run)
        await clock.advance(2 * MOST)
    assert not connection.retired


class Line:
    """A connection that notes when it is retired."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.retired_at: float | None = None

    def retire(self) -> None:
        assert self.retired_at is None
        self.retired_at = self._clock.monotonic()


async def test_connections_are_retired_within_a_second_of_their_age(clock: ManualClock) -> None:
    ages = connection_age.Ages(MOST, clock)
    lines = [Line(clock) for _ in range(50)]
    async with Supervisor("test") as supervisor:
        supervisor.start("age", ages.run)
        await clock.advance(7.5)
        for line in lines:
            ages.add(line)
        ages.drop(lines[3])
        await clock.advance(2 * MOST)
    for number, line in enumerate(lines):
        if number == 3:
            assert line.retired_at is None
            continue
        assert line.retired_at is not None
        late = line.retired_at - 7.5 - connection_age.age(MOST, number)
        assert -1e-6 < late < 1.001
