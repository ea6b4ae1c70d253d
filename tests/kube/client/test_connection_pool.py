"""Kept connections over real sockets: what is used again, what not, what is never repeated."""

import asyncio
import contextlib
import dataclasses
import gc
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from api import resources
from certs import issue
from kube.client import access, client, connection_pool, errors, http_response, transport
from process.runtime import clock as clocks
from process.runtime import supervise
from tests import patience

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Act = Callable[["Caller"], Awaitable[None]]


@dataclasses.dataclass
class Caller:
    """One connection as the server sees it, after a request was read from it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    over: asyncio.Event

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


@dataclasses.dataclass
class Server:
    """Answers requests one after another as a test says; the last way stays."""

    acts: list[Act]
    port: int = 0
    requests: list[tuple[int, bytes]] = dataclasses.field(default_factory=list)
    """Number of the connection and first line of each request."""
    connections: int = 0
    ended: int = 0
    names: list[str] = dataclasses.field(default_factory=list)
    """Who presented a certificate."""
    over: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        certificate = writer.get_extra_info("peercert")
        if certificate:
            self.names.append(dict(part[0] for part in certificate["subject"])["commonName"])
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(size or 0))
                self.requests.append((number, head.partition(b"\r\n")[0]))
                act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
                await act(Caller(reader, writer, self.over))
        self.ended += 1
        writer.close()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(patience.SECONDS):
            while not condition():  # noqa: ASYNC110 - sockets announce nothing to a test
                await asyncio.sleep(0.002)


@contextlib.asynccontextmanager
async def serving(*acts: Act, context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    made = Server(list(acts))
    listener = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=context)
    made.port = listener.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        made.over.set()
        listener.close()


async def ok(caller: Caller) -> None:
    await caller.say(OK)


async def hold(caller: Caller) -> None:
    await caller.over.wait()


async def leave(caller: Caller) -> None:
    caller.writer.close()


async def answer_and_leave(caller: Caller) -> None:
    await caller.say(OK)
    caller.writer.close()


async def answer_and_say_no_more(caller: Caller) -> None:
    """Close half of the connection, as a server does that still listens."""
    await caller.say(OK)
    caller.writer.write_eof()
    await caller.over.wait()


async def half_an_answer(caller: Caller) -> None:
    await caller.say(OK[:-1])
    caller.writer.close()


async def slowly(caller: Caller) -> None:
    for byte in OK:
        await caller.say(bytes((byte,)))
        await asyncio.sleep(0)


async def without_length(caller: Caller) -> None:
    await caller.say(b"HTTP/1.1 200 OK\r\n\r\n{}")
    caller.writer.close()


async def twice(caller: Caller) -> None:
    await caller.say(OK + OK)


async def farewell(caller: Caller) -> None:
    await caller.say(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    await caller.over.wait()


def question(
    method: str = "POST", seconds: float = 10.0, **options: Any
) -> connection_pool.Request:
    body = b"{}" if method == "POST" else b""
    head = f"{method} /x HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    return connection_pool.Request(
        head.encode() + body, seconds, 5.0, repeatable=method == "GET", **options
    )


@contextlib.asynccontextmanager
async def pooled(server: Server) -> AsyncIterator[connection_pool.Pool]:
    made = connection_pool.Pool(connection_pool.Address("127.0.0.1", server.port, None, ""))
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize(
    ("act", "connections"),
    [
        pytest.param(ok, 1, id="kept"),
        pytest.param(slowly, 1, id="byte by byte"),
        pytest.param(answer_and_leave, 3, id="server leaves"),
        pytest.param(answer_and_say_no_more, 3, id="server closes its half"),
        pytest.param(without_length, 3, id="no length"),
        pytest.param(twice, 3, id="an answer too many"),
        pytest.param(farewell, 3, id="server says that it leaves"),
    ],
)
async def test_what_is_used_again(act: Act, connections: int) -> None:
    async with serving(act) as server, pooled(server) as pool:
        for _ in range(3):
            assert (await pool.ask(question())).body == b"{}"
            if connections > 1:
                await server.until(lambda: len(pool) == 0)
        assert server.connections == connections
        assert len(server.requests) == 3


async def test_a_connection_that_rests_keeps_no_answer() -> None:
    async with serving(ok) as server, pooled(server) as pool:
        await pool.ask(question())
        gc.collect()
        assert len(pool) == 1
        assert not [one for one in gc.get_objects() if isinstance(one, http_response.Reader)]


async def test_questions_at_once_have_connections_of_their_own_which_are_kept() -> None:
    async with serving(ok) as server, pooled(server) as pool:
        for _ in range(3):
            await asyncio.gather(*(pool.ask(question()) for _ in range(4)))
        assert server.connections == 4
        await pool.ask(question())
        await pool.ask(question())
        assert len({number for number, _ in server.requests[-2:]}) == 1


async def test_a_write_is_never_repeated() -> None:
    async with serving(ok, leave, ok) as server, pooled(server) as pool:
        await pool.ask(question())
        with pytest.raises(connection_pool.LeftError):
            await pool.ask(question())
        await pool.ask(question())
        assert [line for _, line in server.requests] == [b"POST /x HTTP/1.1"] * 3


async def test_what_changes_nothing_is_asked_anew_where_a_kept_connection_was_left() -> None:
    async with serving(ok, leave, ok) as server, pooled(server) as pool:
        await pool.ask(question())
        assert (await pool.ask(question("GET"))).status == 200
        assert [number for number, _ in server.requests] == [1, 1, 2]


@pytest.mark.parametrize(
    ("act", "error"),
    [
        pytest.param(leave, http_response.BrokenError, id="no answer"),
        pytest.param(half_an_answer, http_response.BrokenError, id="half an answer"),
        pytest.param(hold, TimeoutError, id="silence"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_new_connection_without_an_answer_is_a_failure(
    act: Act, error: type[Exception], method: str
) -> None:
    async with serving(act) as server, pooled(server) as pool:
        with pytest.raises(error):
            await pool.ask(question(method, 0.2 if act is hold else 10.0))
        await server.until(lambda: len(server.requests) == 1)
        assert len(pool) == 0


async def test_a_rested_connection_is_looked_at_before_it_is_used(
    supervisor: supervise.Supervisor,
) -> None:
    """The server has left, but the loop was too busy to notice."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        address = connection_pool.Address("127.0.0.1", listener.getsockname()[1], None, "")
        pool = connection_pool.Pool(address, unseen_seconds=0)
        for _ in range(2):
            asking = supervisor.spawn("ask", pool.ask(question()))
            peer, _address = await loop.sock_accept(listener)
            with peer:
                assert await loop.sock_recv(peer, 1000)
                peer.send(OK)
                assert (await asking).status == 200
            # The peer is closed now, and nobody has let the loop find that out.
        pool.close()


async def test_a_write_looks_at_its_connection_however_short_it_rested(
    supervisor: supervise.Supervisor,
) -> None:
    """No byte of it leaves on a connection that is closed, so its outcome is never in doubt."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        address = connection_pool.Address("127.0.0.1", listener.getsockname()[1], None, "")
        pool = connection_pool.Pool(address, unseen_seconds=3600)
        for _ in range(3):
            asking = supervisor.spawn("ask", pool.ask(question()))
            peer, _address = await loop.sock_accept(listener)
            with peer:
                assert await loop.sock_recv(peer, 1000)
                peer.send(OK)
                assert (await asking).status == 200
        pool.close()


async def test_a_write_whose_connection_ends_in_the_last_check_leaves_on_another() -> None:
    async with serving(ok) as server, pooled(server) as pool:
        await pool.ask(question())
        closed: list[bool] = []

        def close_first() -> None:
            if not closed:
                closed.append(True)
                for connection in pool.connections():
                    connection.close()

        assert (await pool.ask(question(check=close_first))).status == 200
        assert [number for number, _ in server.requests] == [1, 2]


async def test_rested_connections_are_closed() -> None:
    async with serving(ok) as server:
        pool = connection_pool.Pool(
            connection_pool.Address("127.0.0.1", server.port, None, ""), idle_seconds=0.05
        )
        await pool.ask(question())
        assert len(pool) == 1
        await server.until(lambda: len(pool) == 0 and server.ended == 1)
        pool.close()


async def test_an_interrupted_question_ends_its_connection(
    supervisor: supervise.Supervisor,
) -> None:
    async with serving(hold, ok) as server, pooled(server) as pool:
        asking = supervisor.spawn("ask", pool.ask(question()))
        await server.until(lambda: len(server.requests) == 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await pool.ask(question())).status == 200
        assert [number for number, _ in server.requests] == [1, 2]


async def test_nothing_leaves_when_the_last_check_forbids_it() -> None:
    def forbid() -> None:
        raise errors.Deposed("too late")

    async with serving(ok) as server, pooled(server) as pool:
        with pytest.raises(errors.Deposed):
            await pool.ask(question(check=forbid))
        await pool.ask(question())
        assert len(server.requests) == 1


async def test_the_end_of_the_pool_ends_what_waits(supervisor: supervise.Supervisor) -> None:
    async with serving(hold) as server, pooled(server) as pool:
        asking = supervisor.spawn("ask", pool.ask(question()))
        await server.until(lambda: len(server.requests) == 1)
        pool.close()
        with pytest.raises(ConnectionError):
            await asking
        await server.until(lambda: len(pool) == 0)


async def test_nobody_listens() -> None:
    pool = connection_pool.Pool(connection_pool.Address("127.0.0.1", 1, None, ""))
    with pytest.raises(connection_pool.UnsentError, match=r"cannot connect to 127\.0\.0\.1:1"):
        await pool.ask(question())
    pool.close()


# -- through the client, secured ---------------------------------------------------------------


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
