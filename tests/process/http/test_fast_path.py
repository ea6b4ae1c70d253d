"""The short way answers exactly as the long one, however bytes arrive, or leaves them alone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import hypothesis
import pytest
from aiohttp import web
from hypothesis import strategies as st

from process.configuration.settings import ServerSettings
from process.http import fast_path, server

LIMITS = (1024, 4096)
USUAL = (
    b"POST /now HTTP/1.1\r\nHost: 127.0.0.1:9211\r\nUser-Agent: Go-http-client/1.1\r\n"
    b"Content-Length: %d\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
)


class Sink(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self.protocol: asyncio.BaseProtocol = asyncio.Protocol()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol


def _short() -> fast_path.FastPath:
    routes = {"/now": lambda body, connected: body[::-1]}

    def spawn(name: str, work: object) -> asyncio.Task[None]:
        raise AssertionError(f"{name} needs no task")

    return fast_path.FastPath(routes, LIMITS, spawn)


def _bodies(written: bytes) -> list[bytes]:
    found = []
    while written:
        head, _, rest = written.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        size = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        found.append(rest[:size])
        written = rest[size:]
    return found


@hypothesis.given(
    bodies=st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    cuts=st.lists(st.integers(1, 700), max_size=12),
)
async def test_requests_are_answered_however_they_are_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    sent = [(USUAL % len(body), body) for body in bodies]
    transport = Sink()
    lane = fast_path.Connection(_short(), transport)
    # A head that does not come in one piece goes the long way, so cuts fall into bodies only.
    for head, body in sent:
        assert lane.take(head + body[:1]) == b""
        rest, at = body[1:], 0
        for cut in cuts:
            if at < len(rest):
                assert lane.take(rest[at : at + cut]) == b""
                at += cut
        if at < len(rest):
            assert lane.take(rest[at:]) == b""
    assert _bodies(transport.written) == [body[::-1] for body in bodies]
    assert not lane.busy


async def test_requests_in_one_piece_are_answered_in_order() -> None:
    transport = Sink()
    lane = fast_path.Connection(_short(), transport)
    pieces = b"".join(USUAL % len(body) + body for body in (b"ab", b"", b"cde"))
    assert lane.take(pieces + b"GET /metrics HTTP/1.1\r\n\r\n") == b"GET /metrics HTTP/1.1\r\n\r\n"
    assert _bodies(transport.written) == [b"ba", b"", b"edc"]


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(USUAL.replace(b"/now", b"/else") % 1, id="another path"),
        pytest.param(USUAL.replace(b"POST", b"PUT") % 1, id="another method"),
        pytest.param(USUAL.replace(b"1.1\r\n", b"1.0\r\n", 1) % 1, id="another version"),
        pytest.param(b"\r" + USUAL % 1, id="carriage return before it"),
        pytest.param(b"\r\n" + USUAL % 1, id="empty line before it"),
        pytest.param(USUAL % 5000, id="too large"),
        pytest.param(USUAL.replace(b"%d", b"-1"), id="negative length"),
        pytest.param(USUAL.replace(b"%d", b"+1"), id="signed length"),
        pytest.param(USUAL.replace(b"%d", b"1 "), id="length with a blank"),
        pytest.param(USUAL.replace(b"%d", b"1" * 40), id="endless length"),
        pytest.param(USUAL.replace(b"Content-Length: %d\r\n", b""), id="no length"),
        pytest.param(USUAL.replace(b"Host", b"Content-Length: 1\r\nHost") % 1, id="two lengths"),
        pytest.param(USUAL.replace(b"Accept-Enc", b"Transfer-Enc") % 1, id="chunked"),
        pytest.param(USUAL.replace(b"Accept-Enc", b"Content-Enc") % 1, id="packed"),
        pytest.param(USUAL.replace(b"Accept-Encoding", b"Expect") % 1, id="expects"),
        pytest.param(USUAL.replace(b"Accept-Encoding", b"Connection") % 1, id="connection"),
        pytest.param(USUAL.replace(b"Host: ", b" Host: ") % 1, id="folded line"),
        pytest.param(USUAL.replace(b"Host: ", b"Host : ") % 1, id="blank before the colon"),
        pytest.param(USUAL.replace(b"\r\nHost", b"\nHost") % 1, id="bare newline"),
        pytest.param(
            USUAL.replace(b": gzip", b": x\nTransfer-Encoding: chunked") % 1, id="newline"
        ),
        pytest.param(USUAL.replace(b": gzip", b": x\ry") % 1, id="carriage return"),
        pytest.param(USUAL.replace(b"Host: 127.0.0.1:9211", b"Host") % 1, id="no colon"),
        pytest.param(USUAL.replace(b"Host", b"content-length: 1\r\nHost") % 1, id="two spellings"),
        pytest.param(USUAL.replace(b"Content-L", b"content-l") % 1, id="small letters"),
        pytest.param(b"x" * 2000 + USUAL % 1, id="long head"),
        pytest.param(USUAL[:40], id="half a head"),
    ],
)
async def test_whatever_differs_goes_the_long_way(head: bytes) -> None:
    for known in ([], [USUAL % 1 + b"y"]):
        # Also where it follows one that is like it.
        transport = Sink()
        lane = fast_path.Connection(_short(), transport)
        for usual in known:
            assert lane.take(usual) == b""
        before = transport.written
        assert lane.take(head + b"x") == head + b"x"
        assert (transport.written, lane.busy) == (before, False)


@hypothesis.given(noise=st.binary(max_size=80), at=st.integers(0, 160))
async def test_noise_is_never_answered_wrongly(noise: bytes, at: int) -> None:
    """Whatever is put into a request, it is either left alone or answered with its own body."""
    whole = USUAL % 3 + b"abc"
    transport = Sink()
    lane = fast_path.Connection(_short(), transport)
    sent = whole[:at] + noise + whole[at:]
    rest = lane.take(sent)
    taken = sent[: len(sent) - len(rest)]
    if transport.written:
        head = taken.partition(b"\r\n\r\n")[0].lower()
        assert head.startswith(b"post /now http/1.1\r\n")
        assert b"transfer-encoding" not in head
    elif not lane.busy:
        assert rest == sent


async def test_a_retired_connection_closes_after_all_that_was_asked() -> None:
    transport = Sink()
    lane = fast_path.Connection(_short(), transport)
    lane.retired = True
    assert lane.take(USUAL % 2 + b"ab" + USUAL % 3 + b"c") == b""
    assert b"\r\nConnection: close\r\n" not in transport.written
    assert not transport.closed
    assert lane.take(b"de") == b""
    assert _bodies(transport.written) == [b"ba", b"edc"]
    assert transport.written.count(b"\r\nConnection: close\r\n") == 1
    assert transport.closed


@contextlib.asynccontextmanager
async def _site(
    release: asyncio.Event, gone: list[bool], **changes: float
) -> AsyncIterator[server.Site]:
    async def wait(body: bytes, connected: fast_path.Caller) -> bytes:
        await release.wait()
        gone.append(not connected())
        return body

    app = web.Application()
    app[fast_path.ROUTES] = {"/wait": wait, "/now": lambda body, connected: body}
    update = {"linger_seconds": 0.0, "body_seconds": 0.2, **changes}
    limits = ServerSettings().model_copy(update=update)
    async with server.running_site(app, limits) as site:
        yield site


async def test_answers_that_take_time_keep_their_order() -> None:
    release, gone = asyncio.Event(), list[bool]()
    async with _site(release, gone) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        slow = (USUAL % 4).replace(b"/now", b"/wait") + b"slow"
        writer.write(slow)
        await writer.drain()
        writer.write(USUAL % 5 + b"quick" + b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
        await writer.drain()
        release.set()
        text = await reader.readuntil(b"404 Not Found")
        assert text.index(b"slow") < text.index(b"quick")
        assert gone == [False]
        writer.close()


async def test_a_body_that_never_comes_costs_the_connection() -> None:
    async with _site(asyncio.Event(), []) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(USUAL % 10 + b"half")
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_an_idle_connection_is_closed_after_its_time_and_not_before() -> None:
    async with _site(asyncio.Event(), [], keep_alive_seconds=0.4) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        for _ in range(3):
            writer.write(USUAL % 2 + b"hi")
            await reader.readuntil(b"hi")
        assert await reader.read() == b""
        writer.close()


async def test_connections_end_with_the_site() -> None:
    async with _site(asyncio.Event(), []) as site:
        silent, first = await asyncio.open_connection("127.0.0.1", site.port)
        reader, second = await asyncio.open_connection("127.0.0.1", site.port)
        second.write(USUAL % 2 + b"hi")
        await reader.readuntil(b"hi")
    assert (await silent.read(), await reader.read()) == (b"", b"")
    first.close()
    second.close()


async def test_a_client_that_does_not_read_is_answered_all_the_same() -> None:
    """What it asks while its answers pile up goes the long way, which waits; nothing is torn."""
    async with _site(asyncio.Event(), []) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port, limit=1 << 16)
        body = b"x" * 900_000
        for _ in range(12):
            writer.write(USUAL % len(body) + body)
        for _ in range(12):
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(size)
            if head[9:12] != b"200":
                # The long way of this site does not know the path.
                assert head[9:12] == b"404"
                break
        writer.close()


async def test_a_caller_that_left_is_noticed() -> None:
    release, gone = asyncio.Event(), list[bool]()
    async with _site(release, gone) as site:
        _, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write((USUAL % 0).replace(b"/now", b"/wait"))
        await writer.drain()
        await asyncio.sleep(0)
        writer.close()
        await writer.wait_closed()
        # A request of somebody else shows that the loop has been around.
        reader, other = await asyncio.open_connection("127.0.0.1", site.port)
        other.write(USUAL % 2 + b"hi")
        await reader.readuntil(b"hi")
        release.set()
        while not gone:  # noqa: ASYNC110 - ends with the test's own time limit
            await asyncio.sleep(0)
        assert gone == [True]
        other.close()
