"""Clients that are slow, silent, gone or too many, and good ones beside them."""

import asyncio
import socket
import struct

import pytest
from aiohttp import web

from process.configuration.settings import ServerSettings
from process.http import connections, health, listener, server
from process.runtime import metrics, supervise
from tests import patience
from tests.process.http.sites import Serve, ask, dialled, echo


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"GET /heal", id="cut in the request line"),
        pytest.param(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ", id="cut in a header"),
    ],
)
async def test_slow_headers_are_dropped(serve: Serve, start: bytes) -> None:
    async with serve(header_seconds=0.2) as site, dialled(site) as (reader, writer):
        writer.write(start)
        dropped = asyncio.get_running_loop().create_task(_end(reader))
        while not dropped.done():
            # One byte at a time keeps the socket alive but not the request.
            writer.write(b"a")
            await asyncio.wait([dropped], timeout=0.05)
        assert dropped.result() == "closed"


async def _end(reader: asyncio.StreamReader) -> str:
    # Bytes that were on their way when the server closed turn the end into a reset.
    try:
        data = await reader.read()
    except ConnectionResetError:
        return "closed"
    return "closed" if not data else repr(data)


async def test_slow_headers_after_a_good_request_are_dropped(serve: Serve) -> None:
    async with serve(header_seconds=0.2) as site, dialled(site) as (reader, writer):
        await ask(reader, writer)
        writer.write(b"GET /heal")
        assert await asyncio.wait_for(reader.read(), patience.SECONDS) == b""


async def test_slow_body_is_answered_408(serve: Serve) -> None:
    async with serve(body_seconds=0.2) as site, dialled(site) as (reader, writer):
        writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
        assert b"408" in await asyncio.wait_for(reader.readline(), patience.SECONDS)


async def test_good_clients_are_served_beside_slow_ones(serve: Serve) -> None:
    async with serve(header_seconds=1.0) as site:
        slow = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(50)]
        for _, writer in slow:
            writer.write(b"GET /")
        async with dialled(site) as (reader, writer):
            for _ in range(20):
                assert "200 OK" in await asyncio.wait_for(ask(reader, writer), patience.SECONDS)
        for reader, writer in slow:
            assert await asyncio.wait_for(reader.read(), patience.SECONDS) == b""
            writer.close()


async def test_the_longest_silent_connection_gives_way_at_the_cap_and_is_counted(
    serve: Serve, registry: metrics.Registry
) -> None:
    async with serve(max_connections=2) as site, dialled(site) as one, dialled(site) as two:
        await ask(*two)
        await ask(*one)
        async with dialled(site) as three:
            assert "200 OK" in await ask(*three)
            assert await asyncio.wait_for(two[0].read(), patience.SECONDS) == b""
            await ask(*one)
    cut = registry.value("koord_server_cut_connections_total", {"server": "server"})
    refused = registry.value("koord_server_refused_connections_total", {"server": "server"})
    assert (cut, refused) == (1.0, 0.0)


@pytest.mark.parametrize("backlog", [3, 200])
async def test_as_many_connections_wait_in_the_kernel_as_are_set(backlog: int) -> None:
    chosen = ServerSettings(backlog=backlog)
    sockets = await listener.bind(chosen, "server")
    door = listener.Listener(
        sockets,
        connections.Connections(web.Server(echo), chosen, Tally(), Tally()),
        chosen,
        None,
    )
    async with supervise.Supervisor("test") as supervisor:
        door.open(supervisor.spawn)
        # Of a listening socket the kernel tells its queue's length where others have SACKs.
        told = sockets[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        assert struct.unpack_from("I", told, 28)[0] == backlog
        door.end()


async def test_connections_answer_at_once_and_notice_clients_that_are_gone() -> None:
    (sock,) = await listener.bind(ServerSettings(), "server")
    with sock:
        sock.listen()
        with socket.create_connection(sock.getsockname()), sock.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


class Tally:
    """A counter that nobody reads."""

    def inc(self) -> None:
        """Count."""


async def test_a_client_that_waits_for_an_answer_is_not_cut_off(registry: metrics.Registry) -> None:
    release = asyncio.Event()

    async def wait(_request: web.Request) -> web.Response:
        await release.wait()
        return web.Response(text="done")

    app = server.health_routes(web.Application(), health.Health(), registry)
    app.router.add_get("/wait", wait)
    limits = ServerSettings().model_copy(update={"linger_seconds": 0.0, "max_connections": 1})
    async with server.running_site(app, limits, registry=registry) as site, dialled(site) as one:
        one[1].write(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        async with dialled(site) as two:
            assert await asyncio.wait_for(two[0].read(), patience.SECONDS) == b""
        release.set()
        assert b"200" in await one[0].readline()
    assert registry.value("koord_server_refused_connections_total", {"server": "server"}) == 1.0


async def test_a_client_that_closed_its_half_is_answered(serve: Serve) -> None:
    async with serve() as site, dialled(site) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), patience.SECONDS)
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert answer.endswith(b"ok\n")


async def test_a_client_that_closed_its_half_too_early_is_not(serve: Serve) -> None:
    async with serve() as site, dialled(site) as (reader, writer):
        writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab")
        writer.write_eof()
        assert b"200" not in await asyncio.wait_for(reader.read(), patience.SECONDS)


async def test_silent_connections_give_way_at_the_cap(serve: Serve) -> None:
    limits = {"max_connections": 2, "header_seconds": 0.3}
    async with serve(**limits) as site, dialled(site) as silent, dialled(site) as used:
        await ask(*used)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(silent[0].read(1), 0.6)
        async with dialled(site) as newcomer:
            assert "200 OK" in await ask(*newcomer)
            assert await asyncio.wait_for(silent[0].read(), patience.SECONDS) == b""
            await ask(*used)
