"""Connections over TLS: kept, or refused with a reason, and never told as sent when not."""

import asyncio
import dataclasses
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from api import resources
from certs import issue
from kube.client import access, client, errors, transport
from process.runtime import clock as clocks
from tests.kube.client.connections.pooled_server import Caller, Server, hold, leave, ok, serving


def _write(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


@dataclasses.dataclass(frozen=True)
class Secured:
    """A server's context, and what a client needs to be let in."""

    context: ssl.SSLContext
    authority: issue.Pair
    pair: tuple[Path, Path]


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    now = clocks.SystemClock().now()
    authority = issue.authority("test", now)
    serving_pair = issue.leaf(authority, issue.Subject("api", ips=("127.0.0.1",)), now)
    mine = issue.leaf(authority, issue.Subject("me", dns=("me",), client=True), now)
    context = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cadata=authority.certificate.decode()
    )
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(
        _write(tmp_path, "api.crt", serving_pair.certificate),
        _write(tmp_path, "api.key", serving_pair.key),
    )
    pair = (
        _write(tmp_path, "me.crt", mine.certificate),
        _write(tmp_path, "me.key", mine.key),
    )
    return Secured(context, authority, pair)


def _client(server: Server, **options: Any) -> client.Client:
    return client.Client(
        access.Access(f"https://127.0.0.1:{server.port}", **options),
        clock=clocks.SystemClock(),
        limits=transport.Limits(attempts=1, request_seconds=10.0),
    )


async def _three_calls(secured: Secured, *, mutual: bool) -> tuple[int, list[str], int]:
    async with serving(ok, context=secured.context) as server:
        trust = secured.authority.certificate
        certificate = secured.pair if mutual else None
        async with _client(server, ca_data=trust, client_certificate=certificate) as api:
            for _ in range(3):
                await api.bind("shop", "a", uid="u", node="n", annotations={})
        return server.connections, server.names, len(server.requests)


@pytest.mark.parametrize("mutual", [False, True], ids=["TLS", "mutual TLS"])
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_secured_connections_are_kept(
    secured: Secured, loop: Callable[[], asyncio.AbstractEventLoop], mutual: bool
) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        found = runner.run(_three_calls(secured, mutual=mutual))
    assert found == (1, ["me"] if mutual else [], 3)


async def _two_events(caller: Caller) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    await caller.say(head + b"3\r\n{}\n\r\n")
    await caller.say(b"3\r\n{}\n\r\n0\r\n\r\n")


async def _watched(secured: Secured) -> tuple[int, list[str], list[bytes]]:
    found = []
    async with serving(_two_events, ok, _two_events, context=secured.context) as server:
        trust, pair = secured.authority.certificate, secured.pair
        async with _client(server, ca_data=trust, client_certificate=pair) as api:
            for _ in range(2):
                async with api.watch(client.Selection(resources.PODS), {}) as batches:
                    found += [line async for lines in batches for line in lines]
                if len(server.requests) == 1:
                    await api.bind("shop", "a", uid="u", node="n", annotations={})
        return server.connections, server.names, found


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_watches_and_calls_use_one_secured_connection_after_the_other(
    secured: Secured, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        found = runner.run(_watched(secured))
    assert found == (1, ["me"], [b"{}"] * 4)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_an_unknown_authority_is_refused(
    secured: Secured, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    foreign = issue.authority("foreign", clocks.SystemClock().now()).certificate

    async def call() -> int:
        async with serving(ok, context=secured.context) as server:
            async with _client(server, ca_data=foreign) as api:
                with pytest.raises(errors.Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
                    await api.get(resources.PODS, "a", "shop")
            return len(server.requests)

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(call()) == 0


async def test_a_name_that_the_certificate_lacks_is_refused(secured: Secured) -> None:
    trust = secured.authority.certificate
    async with serving(ok, context=secured.context) as server:
        async with _client(server, ca_data=trust, server_name="other") as api:
            with pytest.raises(errors.Unreachable, match="other"):
                await api.get(resources.PODS, "a", "shop")
        async with _client(server, insecure=True) as api:
            assert await api.get(resources.PODS, "a", "shop") == {}
        assert len(server.requests) == 1


async def test_a_handshake_that_never_ends_is_cut_off() -> None:
    async with serving(hold) as server:
        limits = transport.Limits(attempts=1, connect_seconds=0.1)
        entry = access.Access(f"https://127.0.0.1:{server.port}", insecure=True)
        async with client.Client(entry, clock=clocks.SystemClock(), limits=limits) as api:
            with pytest.raises(errors.NotSent, match="in time"):
                await api.get(resources.PODS, "a", "shop")


async def test_a_request_that_was_written_is_never_told_as_not_sent() -> None:
    async with serving(ok, leave) as server:
        entry = access.Access(f"http://127.0.0.1:{server.port}")
        async with client.Client(entry, clock=clocks.SystemClock()) as api:
            await api.create(resources.PODS, {}, "shop")
            with pytest.raises(errors.Unreachable) as caught:
                await api.create(resources.PODS, {}, "shop")
        assert not isinstance(caught.value, errors.NotSent)


async def test_a_request_without_a_listener_is_told_as_not_sent() -> None:
    limits = transport.Limits(attempts=1)
    entry = access.Access("http://127.0.0.1:1")
    async with client.Client(entry, clock=clocks.SystemClock(), limits=limits) as api:
        why = r": cannot connect to 127\.0\.0\.1:1: Connection refused$"
        with pytest.raises(errors.NotSent, match=f"^create pods{why}"):
            await api.create(resources.PODS, {}, "shop")
        with pytest.raises(errors.NotSent, match=f"^watch pods{why}"):
            async with api.watch(client.Selection(resources.PODS), {}):
                raise AssertionError("there is a listener")
