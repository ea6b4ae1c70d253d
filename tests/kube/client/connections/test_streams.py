"""Responses that last, over real sockets: every part arrives, and every kind of end is reported."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import AsyncIterator, Callable

import pytest
import uvloop

from api import resources
from kube.client import access, client, errors, transport
from kube.client.connections import connection_pool, http_response, streams
from process.runtime import clock as clocks
from tests import patience
from tests.kube.client.connections.pooled_server import Act, Caller, Server, hold, serving

REQUEST = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/JSON; charset=utf-8\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"
SELECTION = client.Selection(resources.PODS)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def says(*parts: bytes, leaves: bool = False) -> Act:
    async def act(caller: Caller) -> None:
        for part in parts:
            await caller.say(part)
        if leaves:
            caller.writer.close()
        else:
            await caller.over.wait()

    return act


@contextlib.asynccontextmanager
async def pooled(server: Server) -> AsyncIterator[connection_pool.Pool]:
    made = connection_pool.Pool(connection_pool.Address("127.0.0.1", server.port, None, ""))
    try:
        yield made
    finally:
        made.close()


@contextlib.asynccontextmanager
async def begun(server: Server) -> AsyncIterator[streams.Stream]:
    async with (
        pooled(server) as pool,
        streams.opened(pool, REQUEST, 30.0, 5.0) as (stream, refusal),
    ):
        assert refusal is None
        yield stream


async def begun_and_read(server: Server) -> None:
    async with begun(server) as stream:
        await whole(stream)


async def whole(stream: streams.Stream) -> bytes:
    found = b""
    while part := await stream.readany():
        found += part
    return found


async def bytewise(caller: Caller) -> None:
    for byte in HEAD + chunk(b"one\n") + chunk(b"two\n") + END:
        await caller.say(bytes((byte,)))
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("act", "body"),
    [
        pytest.param(says(HEAD, chunk(b"one\n"), chunk(b"two\n"), END), b"one\ntwo\n", id="parts"),
        pytest.param(says(HEAD + chunk(b"one\n") + END), b"one\n", id="at once"),
        pytest.param(bytewise, b"one\ntwo\n", id="byte by byte"),
        pytest.param(says(HEAD, END), b"", id="nothing"),
        pytest.param(
            says(b"HTTP/1.1 200 OK\r\n\r\none\n", leaves=True),
            b"one\n",
            id="until the server leaves",
        ),
        pytest.param(
            says(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\none\n"), b"one\n", id="with a length"
        ),
        pytest.param(
            says(b"HTTP/1.1 103 Early\r\n\r\n", HEAD, chunk(b"one"), END), b"one", id="announced"
        ),
    ],
)
async def test_every_part_arrives_until_the_end(act: Act, body: bytes) -> None:
    async with serving(act) as server, begun(server) as stream:
        assert await whole(stream) == body
        assert await stream.readany() == b"", "the end stays the end"


async def test_parts_arrive_as_they_are_written_and_the_type_is_known() -> None:
    more = asyncio.Event()

    async def act(caller: Caller) -> None:
        await caller.say(HEAD + chunk(b"one\n"))
        await more.wait()
        await caller.say(chunk(b"two\n"))
        await caller.over.wait()

    async with serving(act) as server, begun(server) as stream:
        assert stream.content_type == "application/json"
        assert await stream.readany() == b"one\n"
        more.set()
        assert await stream.readany() == b"two\n"


async def test_a_refusal_comes_whole() -> None:
    head = b"HTTP/1.1 403 Forbidden\r\nRetry-After: 7\r\nContent-Length: 8\r\n\r\n"
    async with (
        serving(says(head + b"go ", b"away!")) as server,
        pooled(server) as pool,
        streams.opened(pool, REQUEST, 30.0, 5.0) as (_, refusal),
    ):
        assert refusal is not None
    assert (refusal.status, refusal.body) == (403, b"go away!")
    assert refusal.headers[http_response.RETRY_AFTER] == "7"


@pytest.mark.parametrize(
    ("act", "failure"),
    [
        pytest.param(says(leaves=True), http_response.BrokenError, id="no answer"),
        pytest.param(says(HEAD, chunk(b"one\n"), leaves=True), http_response.BrokenError, id="cut"),
        pytest.param(says(HEAD, b"zz\r\n"), http_response.BrokenError, id="no chunk"),
        pytest.param(says(b"SSH-2.0-OpenSSH\r\n"), http_response.BrokenError, id="not HTTP"),
    ],
)
async def test_an_answer_that_cannot_go_on_is_a_failure(act: Act, failure: type[Exception]) -> None:
    async with serving(act) as server:
        with pytest.raises(failure):
            await begun_and_read(server)


async def test_what_came_before_a_cut_is_taken_first() -> None:
    act = says(HEAD, chunk(b"one\n"), leaves=True)
    async with serving(act) as server, begun(server) as stream:
        assert await stream.readany() == b"one\n"
        with pytest.raises(http_response.BrokenError, match="early"):
            await stream.readany()


async def test_an_interrupted_reader_ends_the_connection() -> None:
    async with serving(says(HEAD)) as server:
        async with begun(server) as stream:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await stream.readany()
        server.over.set()
        await patience.arrives(lambda: server.ended == 1)


async def test_a_stream_that_was_left_leaves_nothing_behind() -> None:
    gc.collect()
    gc.disable()
    try:
        async with serving(says(HEAD, chunk(b"one\n"))) as server:
            async with begun(server) as stream:
                await stream.readany()
                kept = weakref.ref(stream._reader)
            del stream
            await patience.arrives(lambda: kept() is None)
    finally:
        gc.enable()


async def one_after_another(server: Server, count: int) -> list[bytes]:
    found = []
    async with pooled(server) as pool:
        for _ in range(count):
            async with streams.opened(pool, REQUEST, 30.0, 5.0) as (stream, _):
                found.append(await whole(stream))
    return found


async def answers(caller: Caller) -> None:
    await caller.say(HEAD + chunk(b"one\n") + END)


async def answers_and_leaves(caller: Caller) -> None:
    await answers(caller)
    caller.writer.close()


async def answers_with_surplus(caller: Caller) -> None:
    await caller.say(HEAD + chunk(b"one\n") + END + b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    ("act", "connections"),
    [
        pytest.param(answers, 1, id="kept"),
        pytest.param(answers_and_leaves, 3, id="server leaves"),
        pytest.param(answers_with_surplus, 3, id="more than was asked for"),
    ],
)
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_next_stream_has_the_connection_of_one_that_ended(
    act: Act, connections: int, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def used() -> tuple[list[bytes], int]:
        async with serving(act) as server:
            found = await one_after_another(server, 3)
            # The loop ends next, and no connection may outlive it.
            await server.until(lambda: server.ended == server.connections)
            return found, server.connections

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(used()) == ([b"one\n"] * 3, connections)


async def test_a_stream_that_is_left_before_its_end_gives_nothing_back() -> None:
    async with serving(says(HEAD, chunk(b"one\n"))) as server, pooled(server) as pool:
        for _ in range(2):
            async with streams.opened(pool, REQUEST, 30.0, 5.0) as (stream, _):
                assert await stream.readany() == b"one\n"
        assert server.connections == 2
        assert not len(pool)


async def test_a_server_that_leaves_before_it_answers_anew_is_asked_again() -> None:
    """It may have left while the request was under way, which changes nothing."""

    async def leaves(caller: Caller) -> None:
        caller.writer.close()

    async with serving(answers, leaves, answers) as server:
        assert await one_after_another(server, 2) == [b"one\n"] * 2
        assert len(server.requests) == 3
        assert server.connections == 2


async def test_short_questions_and_streams_share_what_rests() -> None:
    async with serving(answers) as server, pooled(server) as pool:
        for _ in range(2):
            async with streams.opened(pool, REQUEST, 30.0, 5.0) as (stream, _):
                await whole(stream)
            request = connection_pool.Request(REQUEST, 5.0, 5.0, repeatable=True)
            assert (await pool.ask(request)).body == b"one\n"
        assert server.connections == 1


async def test_the_end_of_the_pool_ends_a_stream() -> None:
    async with (
        serving(says(HEAD)) as server,
        pooled(server) as pool,
        streams.opened(pool, REQUEST, 30.0, 5.0) as (stream, _),
    ):
        pool.close()
        with pytest.raises(ConnectionError):
            await stream.readany()


class Tokens:
    """Credentials of which the first is refused."""

    def __init__(self) -> None:
        self.renewed = 0

    async def authorization(self) -> str:
        return f"Bearer {self.renewed}"

    async def renew(self) -> None:
        self.renewed += 1


UNAUTHORIZED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("refusals", [1, 2])
async def test_a_refused_credential_is_renewed_once(refusals: int) -> None:
    tokens = Tokens()
    acts = (*(says(UNAUTHORIZED) for _ in range(refusals)), says(HEAD, chunk(b"{}\n"), END))
    async with serving(*acts) as server:
        entry = access.Access(f"http://127.0.0.1:{server.port}", tokens=tokens)
        async with client.Client(entry, clock=clocks.SystemClock()) as api:
            refused = pytest.raises(errors.Unauthorized)
            with refused if refusals == 2 else contextlib.nullcontext():
                async with api.watch(SELECTION, {}) as batches:
                    assert [line async for lines in batches for line in lines] == [b"{}"]
        assert tokens.renewed == 1
        assert server.connections == 2


async def test_a_watch_whose_server_is_silent_before_its_head_has_not_begun() -> None:
    async with serving(hold) as server:
        entry = access.Access(f"http://127.0.0.1:{server.port}")
        limits = transport.Limits(stream_seconds=0.05)
        async with client.Client(entry, clock=clocks.SystemClock(), limits=limits) as api:
            with pytest.raises(errors.Unreachable, match="watch pods"):
                async with api.watch(SELECTION, {}):
                    raise AssertionError("it has begun")
