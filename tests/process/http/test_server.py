"""Health, limits of requests, ports and the end of a site, over real sockets."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from process.configuration.settings import ServerSettings
from process.http import fast_path, health, server
from process.runtime import metrics
from tests import patience
from tests.process.http.sites import Serve, ask, dialled


async def test_health_readiness_and_metrics(
    serve: Serve, checks: health.Health, registry: metrics.Registry
) -> None:
    registry.counter("koord_test_calls_total", "Calls.").inc(3)
    state: list[str | None] = ["caches have not synced"]
    checks.add("caches", lambda: state[0])
    checks.warn("age", lambda: "a little old")
    async with serve() as site, aiohttp.ClientSession(site.url) as session:
        async with session.get("/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok\n")
        async with session.get("/readyz") as answer:
            assert answer.status == 503
            assert await answer.json() == {
                "ready": False,
                "failing": {"caches": "caches have not synced"},
                "warnings": {"age": "a little old"},
            }
        state[0] = None
        async with session.get("/readyz") as answer:
            assert answer.status == 200
            assert json.loads(await answer.text())["ready"] is True
        async with session.get("/metrics") as answer:
            text = await answer.text()
            assert answer.headers["Content-Type"].startswith("text/plain; version=")
        assert "koord_test_calls_total 3.0" in text
        assert 'koord_server_connections{server="server"} 1.0' in text
        assert answer.headers["Server"] == "koord"


async def test_idle_connections_outlive_every_caller() -> None:
    assert ServerSettings().keep_alive_seconds == 3600
    with pytest.raises(ValueError, match="greater than 90"):
        ServerSettings(keep_alive_seconds=90)


async def test_configured_keep_alive_is_the_one_in_force(serve: Serve) -> None:
    # Long enough for a busy machine to ask again in time.
    async with serve(keep_alive_seconds=1.5) as site, dialled(site) as (reader, writer):
        for _ in range(3):
            assert "Connection: close" not in await ask(reader, writer)
        assert await asyncio.wait_for(reader.read(), patience.SECONDS) == b""
    async with serve(keep_alive_seconds=30.0) as site, dialled(site) as (reader, writer):
        await ask(reader, writer)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.4)
        await ask(reader, writer)


async def test_untouched_connection_is_not_closed_by_the_header_limit(serve: Serve) -> None:
    async with serve(header_seconds=0.1) as site, dialled(site) as (reader, writer):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.4)
        assert "200 OK" in await ask(reader, writer)


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 4 * 1024 * 1024])
async def test_body_up_to_the_limit_is_read(serve: Serve, size: int) -> None:
    async with (
        serve() as site,
        aiohttp.ClientSession(site.url) as session,
        session.post("/echo", data=_chunks(size, size)) as answer,
    ):
        assert answer.status == 200
        assert len(await answer.read()) == size


@pytest.mark.parametrize("declared", [True, False], ids=["declared length", "chunked"])
async def test_body_over_the_limit_is_413(serve: Serve, declared: bool) -> None:
    headers = {"Content-Length": str(65_537)} if declared else {}
    async with serve(max_body_bytes=65_536) as site, aiohttp.ClientSession(site.url) as session:
        async with session.post("/echo", data=_chunks(65_537, 4096), headers=headers) as answer:
            assert answer.status == 413
        async with session.post("/echo", data=_chunks(65_536, 4096)) as answer:
            assert answer.status == 200


async def _chunks(size: int, step: int) -> AsyncIterator[bytes]:
    while size > 0:
        yield b"x" * min(size, step)
        size -= step


async def test_endless_body_is_cut_off(serve: Serve) -> None:
    limits = {"max_body_bytes": 65_536, "body_seconds": 0.3}
    async with serve(**limits) as site, dialled(site) as (reader, writer):
        writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        answer = asyncio.get_running_loop().create_task(reader.readline())
        while not answer.done():
            writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
            await asyncio.wait([answer], timeout=0.005)
        assert b"413" in answer.result()


async def test_header_over_the_limit_is_400(serve: Serve) -> None:
    async with serve() as site, dialled(site) as (reader, writer):
        writer.write(
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Big: " + b"x" * 1_000_000 + b"\r\n\r\n"
        )
        assert b"400" in await reader.readline()


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", id="without a body"),
        pytest.param(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 2\r\n\r\nab", id="a length"
        ),
        pytest.param(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2\r\nab\r\n0\r\n\r\n",
            id="chunks",
        ),
    ],
)
async def test_what_belongs_to_a_header_is_never_taken_for_a_request(
    serve: Serve, first: bytes
) -> None:
    """The rest of a header looks like a request; it came after the answer to the one before."""
    async with serve() as site, dialled(site) as (reader, writer):
        writer.write(first + b"POST /echo HTTP/1.1\r\nHost: a\r\nX-A: ")
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(size)
        writer.write(b"POST /echo HTTP/1.1\r\nX-B: b\r\nContent-Length: 7\r\n\r\nsmuggle")
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), patience.SECONDS)
        # By HTTP that is: a header value, a header, a body of seven bytes for /echo.
        assert b"200" in answer
        assert await reader.readexactly(7) == b"smuggle"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.1)


async def test_after_a_long_request_the_short_way_is_open_again(
    checks: health.Health, registry: metrics.Registry
) -> None:
    app = server.health_routes(web.Application(), checks, registry)
    app[fast_path.ROUTES] = {"/short": lambda body, connected: body}
    limits = ServerSettings().model_copy(update={"linger_seconds": 0.0})
    async with (
        server.running_site(app, limits, registry=registry) as site,
        dialled(site) as (reader, writer),
    ):
        for _ in range(3):
            await ask(reader, writer)
            writer.write(b"POST /short HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
            assert (await reader.readuntil(b"hi")).startswith(b"HTTP/1.1 200")


async def test_port_in_use_names_the_port_and_the_setting() -> None:
    app = web.Application()
    async with server.running_site(app, ServerSettings(), name="metrics") as site:
        with pytest.raises(server.ServerError) as caught:
            async with server.running_site(
                web.Application(), ServerSettings(port=site.port), name="metrics"
            ):
                raise AssertionError("two listeners on one port")
    assert str(caught.value) == (
        f"metrics.port {site.port} on 127.0.0.1: already in use; stop the program that has it"
        " or set metrics.port to a free one (0 lets the system choose)"
    )


@pytest.mark.parametrize(
    ("host", "message"),
    [
        pytest.param("192.0.2.1", "server.host to 127.0.0.1", id="not ours"),
        pytest.param("no such host", "no such address", id="nonsense"),
    ],
)
async def test_unusable_host_is_named(host: str, message: str) -> None:
    with pytest.raises(server.ServerError, match=message):
        async with server.running_site(web.Application(), ServerSettings(host=host)):
            raise AssertionError("listening on a foreign address")


async def test_every_interface_is_reached_through_loopback(serve: Serve) -> None:
    async with serve(host="0.0.0.0") as site, aiohttp.ClientSession() as session:
        assert site.url == f"http://127.0.0.1:{site.port}"
        async with session.get(f"{site.url}/healthz") as answer:
            assert answer.status == 200


async def test_port_is_free_again_after_the_stop(serve: Serve) -> None:
    async with serve() as site, dialled(site) as connection:
        await ask(*connection)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", site.port)) != 0
    async with serve(port=site.port) as again:
        assert again.port == site.port


async def test_checks_of_a_site_go_with_it(serve: Serve, checks: health.Health) -> None:
    async with serve():
        assert checks.names == ("server-open",)
        assert checks.ready
    assert checks.names == ()


async def test_readiness_and_warnings_are_figures_too(
    serve: Serve, checks: health.Health, registry: metrics.Registry
) -> None:
    async with serve():
        assert registry.value("koord_process_ready") == 1
        checks.add("caches", lambda: "not synced")
        checks.warn("files", lambda: "old")
        assert registry.value("koord_process_ready") == 0
        assert registry.value("koord_process_warnings") == 1
