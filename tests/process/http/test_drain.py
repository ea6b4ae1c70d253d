"""Stopping under load: no reset, no lost answer, the listener gone at the end."""

import asyncio
import collections
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web

from process.configuration.settings import ServerSettings
from process.http import health, server
from process.runtime import metrics

Eventually = Callable[[Callable[[], bool]], Awaitable[None]]


@pytest.fixture
def checks() -> health.Health:
    return health.Health()


@pytest.fixture
def app(checks: health.Health) -> web.Application:
    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    app = server.health_routes(web.Application(), checks, metrics.Registry())
    app.router.add_post("/echo", echo)
    return app


async def _post_until_refused(url: str, seen: collections.Counter[str]) -> None:
    # A POST whose bytes were written is never repeated by a client, so every cut shows.
    async with aiohttp.ClientSession(url) as session:
        while True:
            try:
                async with session.post("/echo", data=b"x" * 300) as answer:
                    assert await answer.read() == b"x" * 300
            except aiohttp.ClientConnectorError:
                seen["refused"] += 1
                return
            except (aiohttp.ClientError, OSError) as error:
                seen[f"broken {error!r}"] += 1
                return
            closing = answer.headers.get("Connection") == "close"
            seen["asked to leave" if closing else "kept"] += 1


async def test_drain_under_load_breaks_no_request(
    app: web.Application, eventually: Eventually
) -> None:
    seen: collections.Counter[str] = collections.Counter()
    limits = ServerSettings(linger_seconds=0.3)
    async with asyncio.TaskGroup() as group, server.running_site(app, limits) as site:
        for _ in range(16):
            group.create_task(_post_until_refused(site.url, seen))
        await eventually(lambda: seen["kept"] >= 500)
    assert {key for key in seen if key.startswith("broken")} == set(), seen
    assert seen["asked to leave"] >= 16
    assert seen["refused"] == 16


@pytest.mark.parametrize("round_", range(5))
async def test_closing_at_once_under_load_breaks_no_request(
    app: web.Application, round_: int, eventually: Eventually
) -> None:
    seen: collections.Counter[str] = collections.Counter()
    limits = ServerSettings(linger_seconds=0.02)
    async with asyncio.TaskGroup() as group, server.running_site(app, limits) as site:
        for _ in range(32):
            group.create_task(_post_until_refused(site.url, seen))
        await eventually(lambda: seen["kept"] >= 50 * round_ + 32)
    assert {key for key in seen if key.startswith("broken")} == set(), seen
    assert seen["refused"] == 32


async def test_request_in_flight_is_answered_before_the_end(app: web.Application) -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def hold(_request: web.Request) -> web.Response:
        arrived.set()
        await go_on.wait()
        return web.Response(text="held")

    app.router.add_post("/hold", hold)
    stop = asyncio.Event()

    async def host(ready: asyncio.Future[server.Site]) -> None:
        async with server.running_site(app, ServerSettings(linger_seconds=0.1)) as site:
            ready.set_result(site)
            await stop.wait()

    loop = asyncio.get_running_loop()
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        ready: asyncio.Future[server.Site] = loop.create_future()
        running = group.create_task(host(ready))
        site = await ready
        request = group.create_task(_text(session, f"{site.url}/hold"))
        await arrived.wait()
        stop.set()
        for _ in range(1000):
            if await _refused(session, site.url):
                break
        assert not running.done()
        go_on.set()
        assert await request == ("held", "close")


async def _text(session: aiohttp.ClientSession, url: str) -> tuple[str, str | None]:
    async with session.post(url) as answer:
        return await answer.text(), answer.headers.get("Connection")


async def _refused(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/healthz"):
            return False
    except aiohttp.ClientConnectorError:
        return True


async def test_request_that_never_ends_is_cut_off_by_the_limit(
    app: web.Application, caplog: pytest.LogCaptureFixture
) -> None:
    arrived = asyncio.Event()

    async def hold(_request: web.Request) -> web.Response:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    app.router.add_post("/hold", hold)
    limits = ServerSettings(linger_seconds=0, drain_seconds=0.2)
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        async with server.running_site(app, limits) as site:
            request = group.create_task(_outcome(session, f"{site.url}/hold"))
            await arrived.wait()
        assert isinstance(await request, aiohttp.ClientError)
    assert "requests cut off by the end of the drain n=1" in caplog.text


async def _outcome(session: aiohttp.ClientSession, url: str) -> object:
    try:
        return await _text(session, url)
    except aiohttp.ClientError as error:
        return error


async def test_idle_connection_is_still_answered_while_lingering(
    app: web.Application, checks: health.Health, eventually: Eventually
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[server.Site] = loop.create_future()

    async def host() -> None:
        limits = ServerSettings(linger_seconds=5)
        async with server.running_site(app, limits, checks=checks) as site:
            ready.set_result(site)
            await stop.wait()

    async with asyncio.TaskGroup() as group, aiohttp.ClientSession() as session:
        group.create_task(host())
        site = await ready
        async with session.get(f"{site.url}/readyz") as answer:
            assert answer.status == 200
        began = loop.time()
        stop.set()
        await eventually(lambda: not checks.ready)
        async with session.get(f"{site.url}/readyz") as answer:
            assert answer.status == 503
            assert (await answer.json())["failing"] == {"server-open": "stopping"}
            assert answer.headers["Connection"] == "close"
    # With the last connection gone there is nothing to linger for.
    assert loop.time() - began < 3


async def test_announcing_says_not_ready_before_it_asks_to_leave(
    app: web.Application, checks: health.Health, eventually: Eventually
) -> None:
    stop = asyncio.Event()
    ready: asyncio.Future[server.Site] = asyncio.get_running_loop().create_future()

    async def host() -> None:
        limits = ServerSettings(announce_seconds=0.3, linger_seconds=0.1)
        async with server.running_site(app, limits, checks=checks) as site:
            ready.set_result(site)
            await stop.wait()

    async with asyncio.TaskGroup() as group, aiohttp.ClientSession() as session:
        group.create_task(host())
        site = await ready
        stop.set()
        await eventually(lambda: not checks.ready)
        async with session.get(f"{site.url}/readyz") as answer:
            assert answer.status == 503
            assert "Connection" not in answer.headers


async def test_a_connection_is_idle_again_after_a_body(
    app: web.Application, caplog: pytest.LogCaptureFixture
) -> None:
    limits = ServerSettings(header_seconds=300.0, linger_seconds=0.0, drain_seconds=2.0)
    async with server.running_site(app, limits) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        for _ in range(2):
            # The body comes after the headers, as from a client that writes them apart.
            writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n")
            await writer.drain()
            writer.write(b"body")
            answer = await reader.readuntil(b"body")
            assert answer.startswith(b"HTTP/1.1 200")
    # Were it still taken for busy, the end would have waited for it, or cut it off.
    assert not [record for record in caplog.records if "cut off" in record.message]
    writer.close()
