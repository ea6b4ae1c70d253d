"""Kept connections for short questions: one question, one answer, then the next.

Nothing is pipelined and nothing that was written is written again, except a question that
changes nothing and met a connection which the server had already left. A question of which no
byte has left goes out on another connection, whatever it changes.
"""

import asyncio
import os
import select
import socket
import ssl
from collections.abc import Callable
from typing import NamedTuple, cast

import msgspec

from kube.client.connections import http_response


class LeftError(ConnectionError):
    """The server had left a kept connection before it answered anything."""


class UnsentError(ConnectionError):
    """No byte of the question has left, so it has changed nothing."""


class UnsentTimeoutError(UnsentError, TimeoutError):
    """There was no connection in time, so no byte of the question has left."""


def reason(error: OSError) -> str:
    """Say why there is no connection, in the words of the operating system where it knows."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return str(error)


class Address(NamedTuple):
    """Where connections lead to and how they are secured."""

    host: str
    port: int
    context: ssl.SSLContext | None
    server_name: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Request(msgspec.Struct, frozen=True, gc=False):
    """One request."""

    data: bytes
    seconds: float
    """How long its answer may take, dialling included."""
    connect_seconds: float
    check: Callable[[], None] = lambda: None
    """Called at the last moment before bytes leave; what it raises keeps them here."""
    repeatable: bool = False
    """Whether asking twice does no harm."""
    without_body: bool = False


class Connection(asyncio.Protocol):
    """One connection, on which at most one question waits for its answer."""

    __slots__ = ("_look", "_loop", "_reader", "_transport", "_used", "_waiting", "rested")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader: http_response.Reader | None = None
        self._waiting: asyncio.Future[http_response.Response] | None = None
        self._used = False
        self._look: select.poll | None = None
        self.rested = 0.0
        """Since when it rests, on the clock of the loop."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        # Not every event loop derives its transports from the standard library's.
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def lend(self, protocol: asyncio.Protocol) -> None:
        """Let another protocol have the connection until it is taken back."""
        if self._transport is None:
            raise UnsentError("the connection was closed by the server")
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)

    def take_back(self) -> None:
        """Be the protocol of the connection again."""
        self._used = True
        if self._transport is not None:
            self._transport.set_protocol(self)

    @property
    def used(self) -> bool:
        """Whether it has carried a response before, so that the server may have left it since."""
        return self._used

    @property
    def open(self) -> bool:
        """Whether another question can be asked."""
        return self._transport is not None and not self._transport.is_closing()

    def quiet(self) -> bool:
        """Whether nothing has arrived unasked, which could only be the server's farewell.

        The kernel is asked, since the loop may be behind.
        """
        if self._transport is None or self._transport.is_closing():
            return False
        if self._look is None:
            self._look = select.poll()
            self._look.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not self._look.poll(0)

    async def ask(self, question: Request, end: float) -> http_response.Response:
        """Send a question and wait for its answer until a moment of the loop's clock."""
        transport = self._transport
        question.check()
        if transport is None or transport.is_closing():
            raise UnsentError("the connection was closed by the server")
        reader = self._reader = http_response.Reader(without_body=question.without_body)
        waiting: asyncio.Future[http_response.Response] = self._loop.create_future()
        self._waiting = waiting
        alarm = self._loop.call_at(end, self._fail, TimeoutError())
        transport.write(question.data)
        try:
            return await waiting
        finally:
            alarm.cancel()
            reader.close()
            # A connection that rests keeps no answer.
            self._reader = None
            if self._waiting is not None:
                # No caller waits any more, so whatever arrives would be taken for another answer.
                self._waiting = None
                transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take in a part of the answer."""
        if self._waiting is None or self._reader is None:
            self.close()
            return
        try:
            answer = self._reader.feed(data)
        except http_response.BrokenError as error:
            self._fail(error)
            return
        if answer is not None:
            self._finish(answer)

    def eof_received(self) -> None:
        """Take in that the server says no more; the connection is closed then."""
        if self._waiting is None or self._reader is None:
            return
        try:
            self._finish(self._reader.end())
        except http_response.BrokenError as error:
            self._lose(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """Take in that the connection has ended."""
        if self._waiting is not None:
            self._lose(exc or ConnectionResetError("the connection was closed"))
        self._transport = None

    def close(self) -> None:
        """End the connection; a question that waits has failed."""
        if self._transport is not None:
            self._transport.abort()

    def _lose(self, error: Exception) -> None:
        begun = self._reader is not None and self._reader.begun
        if self._used and not begun:
            error = LeftError("the connection was closed by the server")
        self._fail(error)

    def _finish(self, answer: http_response.Response) -> None:
        waiting, self._waiting, self._used = self._waiting, None, True
        if not answer.reusable and self._transport is not None:
            self._transport.close()
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, None
        self.close()
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)


class Pool:
    """Connections to one server, the one that was used last first.

    They are closed when they rested for `idle_seconds`. Before one carries a write, or after it
    rested for `unseen_seconds`, the kernel is asked whether the server has left it.
    """

    def __init__(
        self, address: Address, *, idle_seconds: float = 30.0, unseen_seconds: float = 1.0
    ) -> None:
        self.address = address
        self._idle_seconds = idle_seconds
        self._unseen_seconds = unseen_seconds
        self._resting: list[Connection] = []
        self._busy: set[Connection] = set()
        self._pruning: asyncio.TimerHandle | None = None
        self._closed = False

    def __len__(self) -> int:
        """How many connections are open."""
        return sum(connection.open for connection in self.connections())

    def connections(self) -> tuple[Connection, ...]:
        """Return every connection, resting and busy."""
        return *self._resting, *self._busy

    async def ask(self, question: Request) -> http_response.Response:
        """Return the answer; TimeoutError, OSError or BrokenError when there is none."""
        end = asyncio.get_running_loop().time() + question.seconds
        while True:
            connection = kept = self._rested(is_write=not question.repeatable)
            if connection is None:
                left = end - asyncio.get_running_loop().time()
                connection = await self._dial(min(question.connect_seconds, left))
            self._busy.add(connection)
            try:
                return await connection.ask(question, end)
            except UnsentError:
                if kept is None:
                    raise
            except LeftError:
                # The server may have taken in a question, which does no harm if it changes nothing.
                if not question.repeatable:
                    raise
            finally:
                self._busy.discard(connection)
                self._rest(connection)

    async def borrow(self, seconds: float) -> Connection:
        """Return a connection that the caller gives back; dialling may take so long."""
        connection = self._rested(is_write=False) or await self._dial(seconds)
        self._busy.add(connection)
        return connection

    def give_back(self, connection: Connection) -> None:
        """Take a borrowed connection, which rests if it can be used again."""
        self._busy.discard(connection)
        self._rest(connection)

    def close(self) -> None:
        """End every connection."""
        self._closed = True
        if self._pruning is not None:
            self._pruning.cancel()
        for connection in self.connections():
            connection.close()
        self._resting.clear()

    async def _dial(self, seconds: float) -> Connection:
        loop, address = asyncio.get_running_loop(), self.address
        is_secured = address.context is not None
        try:
            async with asyncio.timeout(seconds):
                _, connection = await loop.create_connection(
                    Connection,
                    address.host,
                    address.port,
                    ssl=address.context,
                    server_hostname=(address.server_name or address.host) if is_secured else None,
                )
        except TimeoutError as error:
            raise UnsentTimeoutError(f"cannot connect to {address} in time") from error
        except OSError as error:
            raise UnsentError(f"cannot connect to {address}: {reason(error)}") from error
        if self._closed:
            connection.close()
        return connection

    def _rested(self, *, is_write: bool) -> Connection | None:
        """Return a connection that may be used, forgetting those that may not."""
        now = asyncio.get_running_loop().time()
        while self._resting:
            connection = self._resting.pop()
            rest = now - connection.rested
            if rest < self._unseen_seconds and not is_write:
                is_fit = connection.open
            else:
                is_fit = rest < self._idle_seconds and connection.quiet()
            if is_fit:
                return connection
            connection.close()
        return None

    def _rest(self, connection: Connection) -> None:
        if self._closed or not connection.open:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        connection.rested = loop.time()
        self._resting.append(connection)
        if self._pruning is None:
            self._pruning = loop.call_later(self._idle_seconds, self._prune)

    def _prune(self) -> None:
        """Close what has rested for too long."""
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._idle_seconds
        kept = []
        for connection in self._resting:
            if connection.open and connection.rested > oldest:
                kept.append(connection)
            else:
                connection.close()
        self._resting = kept
        self._pruning = loop.call_later(self._idle_seconds, self._prune) if kept else None
