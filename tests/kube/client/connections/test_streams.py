"""Responses that last, over real sockets: every part arrives, and every kind of end is told."""

import asyncio
import contextlib
import gc
import socket
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest

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
async def dialled(server: Server, silence: float = 30.0) -> AsyncIterator[streams.Stream]:
    address = connection_pool.Address("127.0.0.1", server.port, None, "")
    made = await connection_pool.dial(address, lambda: streams.Stream(silence), 5.0)
    try:
        yield made
    finally:
        made.close()


async def begun_and_read(stream: streams.Stream) -> None:
    await stream.begin(REQUEST)
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
    async with serving(act) as server, dialled(server) as stream:
        assert await stream.begin(REQUEST) is None
        assert await whole(stream) == body
        assert await stream.readany() == b"", "the end stays the end"


async def test_parts_arrive_as_they_are_written_and_the_type_is_known() -> None:
    more = asyncio.Event()

    async def act(caller: Caller) -> None:
        await caller.say(HEAD + chunk(b"one\n"))
        await more.wait()
        await caller.say(chunk(b"two\n"))
        await caller.over.wait()

    async with serving(act) as server, dialled(server) as stream:
        assert await stream.begin(REQUEST) is None
        assert stream.content_type == "application/json"
        assert await stream.readany() == b"one\n"
        more.set()
        assert await stream.readany() == b"two\n"


async def test_a_refusal_comes_whole() -> None:
    head = b"HTTP/1.1 403 Forbidden\r\nRetry-After: 7\r\nContent-Length: 8\r\n\r\n"
    async with serving(says(head + b"go ", b"away!")) as server, dialled(server) as stream:
        refusal = await stream.begin(REQUEST)
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
    async with serving(act) as server, dialled(server) as stream:
        with pytest.raises(failure):
            await begun_and_read(stream)


async def test_what_came_before_a_cut_is_taken_first() -> None:
    act = says(HEAD, chunk(b"one\n"), leaves=True)
    async with serving(act) as server, dialled(server) as stream:
        assert await stream.begin(REQUEST) is None
        assert await stream.readany() == b"one\n"
        with pytest.raises(http_response.BrokenError, match="early"):
            await stream.readany()


class ManualLoop:
    """The clock and the alarms of an event loop, moved by a test."""

    def __init__(self) -> None:
        self.now = 0.0
        self.alarms: list[tuple[float, Callable[[], None]]] = []
        self.create_future = asyncio.get_running_loop().create_future

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, alarm: Callable[[], None]) -> "Alarm":
        entry = self.now + delay, alarm
        self.alarms.append(entry)
        return Alarm(self, entry)

    def pass_(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [entry for entry in self.alarms if entry[0] <= end]:
            first = min(due, key=lambda entry: entry[0])
            self.alarms.remove(first)
            self.now = first[0]
            first[1]()
        self.now = end


class Alarm:
    """One alarm that may be taken back."""

    def __init__(self, loop: ManualLoop, entry: tuple[float, Callable[[], None]]) -> None:
        self._loop, self._entry = loop, entry

    def cancel(self) -> None:
        if self._entry in self._loop.alarms:
            self._loop.alarms.remove(self._entry)


class Wire(asyncio.Transport):
    """A connection that only notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.socket = socket.socket()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.socket if name == "socket" else default

    def write(self, data: Any) -> None:
        self.asked.append("write")

    def pause_reading(self) -> None:
        self.asked.append("pause")

    def resume_reading(self) -> None:
        self.asked.append("resume")

    def abort(self) -> None:
        self.asked.append("abort")


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire()
    yield made
    made.socket.close()


async def opened(wire: Wire, silence: float) -> tuple[streams.Stream, ManualLoop]:
    loop = ManualLoop()
    stream = streams.Stream(silence, cast("asyncio.AbstractEventLoop", loop))
    stream.connection_made(wire)
    stream.data_received(HEAD)
    assert await stream.begin(REQUEST) is None
    return stream, loop


async def test_silence_is_an_error_and_every_byte_breaks_it(wire: Wire) -> None:
    stream, loop = await opened(wire, 10.0)
    for _ in range(4):
        loop.pass_(9.9)
        stream.data_received(chunk(b"one\n"))
        assert await stream.readany() == b"one\n"
    loop.pass_(9.9)
    assert wire.asked == ["write"]
    loop.pass_(0.2)
    assert wire.asked == ["write", "abort"]
    with pytest.raises(TimeoutError):
        await stream.readany()


async def test_who_does_not_read_lets_the_server_wait_and_finds_no_silence(wire: Wire) -> None:
    stream, loop = await opened(wire, 10.0)
    part = chunk(b"x" * (600 << 10))
    stream.data_received(part)
    assert "pause" not in wire.asked
    stream.data_received(part)
    stream.data_received(part)
    assert wire.asked.count("pause") == 1
    loop.pass_(100.0)
    assert len(await stream.readany()) == 3 * (600 << 10)
    assert wire.asked == ["write", "pause", "resume"]
    loop.pass_(9.9)
    assert "abort" not in wire.asked
    loop.pass_(20.0)
    with pytest.raises(TimeoutError):
        await stream.readany()


async def test_after_the_end_nothing_is_looked_for(wire: Wire) -> None:
    stream, loop = await opened(wire, 10.0)
    stream.data_received(chunk(b"one\n") + END)
    assert not loop.alarms
    assert await whole(stream) == b"one\n"


async def test_an_interrupted_reader_ends_the_connection() -> None:
    async with serving(says(HEAD)) as server:
        async with dialled(server) as stream:
            assert await stream.begin(REQUEST) is None
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
            async with dialled(server) as stream:
                assert await stream.begin(REQUEST) is None
                await stream.readany()
                kept = weakref.ref(stream._reader)
            del stream
            await patience.arrives(lambda: kept() is None)
    finally:
        gc.enable()


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
