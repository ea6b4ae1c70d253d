"""Responses that come in parts for as long as they last, such as watches."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final, Protocol, cast

import aiohttp

from kube.client.connections import connection_pool, http_response

_MOST_HELD: Final = 1 << 20
"""Bytes that wait to be taken; nothing more is read from the connection then."""


class Parts(Protocol):
    """An answer that comes in parts for as long as it lasts."""

    @property
    def content_type(self) -> str:
        """The media type of the content."""

    async def readany(self) -> bytes:
        """Return what has arrived, waiting for it; nothing once the answer is over."""


class LibraryStream:
    """Such an answer that the HTTP library reads."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.content_type, self._content = answer.content_type, answer.content

    async def readany(self) -> bytes:
        """Return what has arrived, waiting for it; nothing once the answer is over."""
        return await self._content.readany()


class Stream(asyncio.Protocol):
    """One response that is taken part by part, on a connection that serves nothing else."""

    __slots__ = (
        "_alarm",
        "_failure",
        "_heard",
        "_is_paused",
        "_loop",
        "_reader",
        "_response",
        "_silence",
        "_transport",
        "_waiting",
    )

    def __init__(self, silence: float, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """`silence` is after how many seconds without a byte the response has failed."""
        self._loop = loop or asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = http_response.StreamReader()
        self._waiting: asyncio.Future[None] | None = None
        self._response: http_response.Response | None = None
        """What the response was as a whole, once it is over."""
        self._failure: Exception | None = None
        self._is_paused = False
        self._silence, self._heard = silence, self._loop.time()
        self._alarm: asyncio.TimerHandle | None = None
        """Looks when the last bytes came, since to move it with all of them would cost more."""

    # -- for callers -------------------------------------------------------------------------

    async def begin(self, request: bytes) -> http_response.Response | None:
        """Send the request and wait for the head; a refusal is returned, with its whole body."""
        if self._transport is not None:
            self._transport.write(request)
        reader = self._reader
        while not reader.status or (reader.status >= 300 and self._response is None):
            await self._more()
        return self._response if reader.status >= 300 else None

    @property
    def content_type(self) -> str:
        """The media type of the response."""
        return self._reader.content_type

    @property
    def begun(self) -> bool:
        """Whether any byte of the response has arrived."""
        return self._reader.begun

    @property
    def is_reusable(self) -> bool:
        """Whether the response is over and leaves the connection fit for another request."""
        response = self._response
        return response is not None and response.reusable and not self._is_paused

    async def readany(self) -> bytes:
        """Return what has arrived, waiting for it; nothing once the response is over.

        TimeoutError is silence; BrokenError or OSError is a response that cannot go on.
        """
        reader = self._reader
        while not reader.held:
            if self._response is not None:
                return b""
            await self._more()
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            # Silence counts from now on, for until now nothing could be heard.
            self._heard = self._loop.time()
            self._transport.resume_reading()
        return reader.take()

    def leave(self) -> None:
        """Let go of the connection, which others may use from now on."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._reader.close()
        self._transport = None

    # -- for the event loop ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        # Not every event loop derives its transports from the standard library's.
        self._transport = cast("asyncio.Transport", transport)
        self._heard = self._loop.time()
        self._alarm = self._loop.call_later(self._silence, self._look)

    def data_received(self, data: bytes) -> None:
        """Take in a part of the response."""
        reader = self._reader
        self._heard = self._loop.time()
        try:
            self._response = reader.feed(data)
        except http_response.BrokenError as error:
            self._fail(error)
            return
        waiting = self._waiting
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        elif reader.held > _MOST_HELD and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """Take in that the server says no more; the connection is closed then."""
        if self._response is None and self._failure is None:
            try:
                self._response = self._reader.end()
            except http_response.BrokenError as error:
                self._fail(error)
            else:
                self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take in that the connection has ended."""
        self._transport = None
        if self._response is None:
            self._fail(exc or ConnectionResetError("the connection was closed"))

    def _look(self) -> None:
        """Find silence; a server that waits for this reader is not silent."""
        left = self._heard + self._silence - self._loop.time()
        if left > 0 or self._is_paused:
            self._alarm = self._loop.call_later(max(left, self._silence / 2), self._look)
        elif self._response is None:
            self._fail(TimeoutError())

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        if self._transport is not None:
            self._transport.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def _more(self) -> None:
        """Wait until something has happened."""
        if self._failure is not None:
            raise self._failure
        self._waiting = self._loop.create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None


@contextlib.asynccontextmanager
async def opened(
    pool: connection_pool.Pool, request: bytes, silence: float, connect_seconds: float
) -> AsyncIterator[tuple[Stream, http_response.Response | None]]:
    """Yield the response to a request that changes nothing, and what refuses it, if it is refused.

    Its connection comes from the pool and goes back there where the response came to its end.
    """
    while True:
        connection = await pool.borrow(connect_seconds)
        stream = Stream(silence)
        try:
            connection.lend(stream)
            try:
                refusal = await stream.begin(request)
            except (OSError, http_response.BrokenError) as error:
                is_late = isinstance(error, TimeoutError)
                if is_late or stream.begun or not connection.used:
                    raise
                # The server had left a connection that it kept before, so it has answered nothing.
                continue
            yield stream, refusal
            return
        finally:
            if stream.is_reusable:
                connection.take_back()
            else:
                connection.close()
            stream.leave()
            pool.give_back(connection)
