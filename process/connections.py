"""Connections of one listener: how many, how slow they may be, and which ones are busy."""

import asyncio
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, cast

from aiohttp import streams, tcp_helpers, web

from process import express, settings

# Clients dial in order to ask, so a connection this young has its first request on the way.
_ARRIVAL_SECONDS = 1.0


class Connection(web.RequestHandler):
    """One HTTP connection that knows how long its client has kept it waiting.

    Where a site has a short way, the base class is set up by the first request that does not take
    it: most connections end before that.
    """

    __slots__ = (
        "__weakref__", "_body", "_body_since", "_header_since", "_lane", "_last",
        "_listener", "_options", "_wire", "awake", "used",
    )  # fmt: skip

    def __init__(self, listener: "Connections", options: Mapping[str, Any]) -> None:
        # The base class follows when it is needed.
        self._listener = listener
        self._options = options
        self.awake = False
        """Whether the base class is set up."""
        self._wire: asyncio.Transport | None = None
        self._last = 0.0
        self._header_since: float | None = None
        self._body_since = 0.0
        self._body: streams.StreamReader | None = None
        self._lane: express.Lane | None = None
        self.used = False
        """Whether a byte has ever arrived."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection in."""
        # Not every event loop derives its transports from the standard library's.
        self._wire = wire = cast("asyncio.Transport", transport)
        if self._listener.express is None:
            self._wake()
        else:
            self._last = asyncio.get_running_loop().time()
            tcp_helpers.tcp_keepalive(wire)
            self._lane = express.Lane(self._listener.express, wire)
        self._listener.opened(self)

    def _wake(self) -> None:
        """Set the base class up."""
        assert self._wire is not None
        self.awake = True
        super().__init__(self._listener.server, loop=asyncio.get_running_loop(), **self._options)
        super().connection_made(self._wire)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Count the connection out."""
        if self.awake:
            super().connection_lost(exc)
        self._listener.closed(self)

    def pause_writing(self) -> None:
        """Take in that the client does not read its answers; then it may not ask the short way."""
        if not self.awake:
            self._wake()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Take in that the client reads again."""
        if self.awake:
            super().resume_writing()

    def force_close(self) -> None:
        """End the connection at once."""
        if self.awake:
            super().force_close()
        elif self._wire is not None:
            self._wire.close()

    def data_received(self, data: bytes) -> None:
        """Start the header clock with the first byte of a request."""
        self.used = True
        lane = self._lane
        if lane is not None and data and (lane.busy or not self.awake or self._is_between()):
            self._last = asyncio.get_running_loop().time()
            if self.awake:
                # The base class closes what it believes to be idle.
                self._next_keepalive_close_time = self._last + self.keepalive_timeout
            data = lane.take(data)
            if not data:
                return
            if not self.awake:
                self._wake()
        # After a body the base class feeds itself with nothing, to look for a pipelined request.
        if data and self._header_since is None and (self._body is None or self._body.is_eof()):
            self._header_since = self._loop.time()
        super().data_received(data)

    def reading(self, body: streams.StreamReader) -> None:
        """Note that headers are complete and the body is due."""
        self._header_since = None
        self._body = body
        self._body_since = self._loop.time()

    def _is_between(self) -> bool:
        """Whether the base class has read and answered all that it was given."""
        if self._request_in_progress or self._messages or self._header_since is not None:
            return False
        return not self.writing_paused and (self._body is None or self._body.is_eof())

    @property
    def handling(self) -> bool:
        """Whether a complete request waits for its answer."""
        lane = self._lane is not None and self._lane.answering
        return lane or (self.awake and (self._request_in_progress or bool(self._messages)))

    @property
    def busy(self) -> bool:
        """Whether a request is being received or answered."""
        lane = self._lane is not None and self._lane.busy
        return lane or self.handling or self._header_since is not None

    def check(self, now: float, header_seconds: float, body_seconds: float) -> None:
        """Drop the client when it is late with its headers, answer 408 when with its body."""
        lane = self._lane
        if lane is not None and lane.since is not None and now - lane.since > body_seconds:
            lane.refuse()
            return
        if not self.awake:
            if not self.busy and now - self._last > self._options["keepalive_timeout"]:
                self.force_close()
            return
        if not self.handling:
            if self._header_since is not None and now - self._header_since > header_seconds:
                self.force_close()
            return
        body = self._body
        if body is None or body.is_eof() or body.exception() is not None:
            return
        if now - self._body_since > body_seconds:
            body.set_exception(web.HTTPRequestTimeout(text="the request body came too slowly\n"))


class _Refusal(asyncio.Protocol):
    """Closes a connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class Tally(Protocol):
    """A counter."""

    def inc(self) -> None:
        """Count one more."""


class Connections:
    """Makes the connections of a listener and keeps them within their limits."""

    def __init__(self, server: web.Server, limits: settings.ServerSettings, refused: Tally) -> None:
        self.express: express.Express | None = None
        """The short way of this site, if it has one."""
        self.server = server
        """Serves whatever does not take the short way."""
        self._limits = limits
        self._refused = refused
        self._open: dict[Connection, float] = {}
        # Accepted, but not open yet: mostly TLS handshakes. One that fails just vanishes.
        self._young: weakref.WeakKeyDictionary[Connection, float] = weakref.WeakKeyDictionary()
        self._options: dict[str, Any] = {
            "keepalive_timeout": limits.keep_alive_seconds,
            "max_line_size": limits.max_header_bytes,
            "max_field_size": limits.max_header_bytes,
            "lingering_time": min(2.0, limits.body_seconds),
            "access_log": None,
        }
        request_of = server.request_factory

        def announce(*arguments: Any) -> web.BaseRequest:
            request = request_of(*arguments)
            connection = request.protocol
            if isinstance(connection, Connection):
                connection.reading(request.content)
            if request.client_max_size != limits.max_body_bytes:
                return request.clone(client_max_size=limits.max_body_bytes)
            return request

        server.request_factory = announce

    def __call__(self) -> asyncio.Protocol:
        """Make the protocol of a new connection."""
        if len(self._open) >= self._limits.max_connections and not self._make_room():
            self._refused.inc()
            return _Refusal()
        connection = Connection(self, self._options)
        self._young[connection] = asyncio.get_running_loop().time()
        return connection

    def __len__(self) -> int:
        """How many connections are open."""
        return len(self._open)

    @property
    def empty(self) -> bool:
        """Whether no client is here or about to be."""
        return not self._open and not self._arriving(self._young)

    @property
    def busy(self) -> int:
        """How many connections have a request in flight or, just dialled, on its way."""
        silent = {one: since for one, since in self._open.items() if not one.used}
        return (
            sum(connection.busy for connection in self._open)
            + self._arriving(silent)
            + self._arriving(self._young)
        )

    def opened(self, connection: Connection) -> None:
        """Note a connection that is ready for requests."""
        self._young.pop(connection, None)
        self._open[connection] = asyncio.get_running_loop().time()

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        self._open.pop(connection, None)

    def end(self) -> None:
        """Close what took the short way only; the server ends its own connections."""
        for connection in list(self._open):
            if not connection.awake:
                connection.force_close()

    def sweep(self) -> None:
        """Drop clients that keep a request open for too long."""
        now = asyncio.get_running_loop().time()
        for connection in list(self._open):
            connection.check(now, self._limits.header_seconds, self._limits.body_seconds)

    @staticmethod
    def _arriving(connections: Mapping[Connection, float]) -> int:
        now = asyncio.get_running_loop().time()
        return sum(now - since < _ARRIVAL_SECONDS for since in connections.values())

    def _make_room(self) -> bool:
        """Close one connection that never said a word, if there is one."""
        for connection in self._silent():
            connection.force_close()
            self._open.pop(connection, None)
            return True
        return False

    def _silent(self) -> Iterator[Connection]:
        now = asyncio.get_running_loop().time()
        for connection, since in self._open.items():
            if not connection.used and now - since > self._limits.header_seconds:
                yield connection
