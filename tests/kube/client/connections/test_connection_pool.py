"""Kept connections over real sockets: what is used again, what not, what is never repeated."""

import asyncio
import contextlib
import gc
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kube.client import errors
from kube.client.connections import connection_pool, http_response
from process.runtime import supervise
from tests.kube.client.connections.pooled_server import (
    OK,
    Act,
    Caller,
    Server,
    hold,
    leave,
    ok,
    serving,
)


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
