"""One connection of a listener: how slow its client may be, whether it is busy, when it ends."""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol, cast

from aiohttp import streams, web

from process.configuration import settings
from process.http import fast_path, framing
from process.limits import places


class Owner(Protocol):
    """What a connection needs of the listener that accepted it."""

    server: web.Server
    express: fast_path.FastPath | None
    places: "places.Places[Connection]"

    def lets_in(self, wire: asyncio.BaseTransport) -> bool:
        """Return whether the client's certificate carries a name that is let in."""

    def opened(self, connection: "Connection") -> None:
        """Note that a connection is ready for requests."""

    def closed(self, connection: "Connection") -> None:
        """Forget a connection."""

    def hold(self, connection: "Connection", size: int) -> None:
        """Note what a connection holds of requests that are not answered."""


class Connection(web.RequestHandler):
    """One HTTP connection that knows how long its client has kept it waiting.

    Where a site has a short way, the base class is set up by the first request that does not take
    it: most connections end before that.
    """

    __slots__ = (
        "_announced", "_body", "_body_since", "_framing", "_header_since", "_lane", "_last",
        "_listener", "_options", "_wire", "arrival", "awake", "held", "retired", "since", "source",
        "stranger", "used",
    )  # fmt: skip

    def __init__(self, listener: Owner, options: Mapping[str, Any], source: places.Source) -> None:
        # The base class follows when it is needed.
        self._listener = listener
        self._options = options
        self.awake = False
        """Whether the base class is set up."""
        self._wire: asyncio.Transport | None = None
        self.source = source
        self.held = 0
        self.arrival: asyncio.Task[None] | None = None
        """Accepts the connection and shakes hands."""
        self.since = self._last = asyncio.get_running_loop().time()
        """When it was accepted, and when something was heard last."""
        self._framing: framing.Framing | None = None
        self._announced = False
        self._header_since: float | None = None
        self._body_since = 0.0
        self._body: streams.StreamReader | None = None
        self._lane: fast_path.Connection | None = None
        self.retired = False
        """Whether it ends with the answer to all that was received."""
        self.used = False
        """Whether a byte has ever arrived."""
        self.stranger = False
        """Whether its certificate carries none of the names that are let in."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection in."""
        # Not every event loop derives its transports from the standard library's.
        self._wire = wire = cast("asyncio.Transport", transport)
        self.since = self._last = asyncio.get_running_loop().time()
        self.stranger = not self._listener.lets_in(wire)
        if self.stranger:
            wire.abort()
            return
        if self._listener.express is None:
            self._wake()
        else:
            self._lane = fast_path.Connection(self._listener.express, wire)
        self._listener.opened(self)

    def retire(self) -> None:
        """Close the connection after its next answer; until then it is served as before."""
        self.retired = True
        if self._lane is not None:
            self._lane.retired = True

    @property
    def opened(self) -> bool:
        """Whether it is ready for requests; before, hands are shaken."""
        return self._wire is not None

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
        if self._framing is not None:
            self._framing.close()
        self._listener.closed(self)

    def eof_received(self) -> Any:
        """Answer what was asked completely before the client closed its half, then close.

        A caller of the short way is gone then: it never closes one half alone.
        """
        is_read = self._body is None or self._body.is_eof()
        if not (self.awake and self.handling and is_read and self._is_between_requests()):
            return None
        self.close()
        # TLS has no halves, and closes all of it.
        return self._wire is not None and self._wire.get_extra_info("sslcontext") is None

    def cut(self) -> None:
        """End the connection without waiting for anything."""
        if self._wire is not None:
            self._wire.abort()
        elif self.arrival is not None:
            self.arrival.cancel()

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
        """Take in what the client sent."""
        if self.stranger:
            return
        self.used = True
        self._last = asyncio.get_running_loop().time()
        self._listener.places.touch(self)
        lane = self._lane
        if lane is not None and data and (lane.busy or not self.awake or self._is_between()):
            if self.awake:
                # The base class closes what it believes to be idle.
                self._next_keepalive_close_time = self._last + self.keepalive_timeout
            data = lane.take(data)
            if lane.held != self.held:
                self._listener.hold(self, lane.held)
            if not data:
                return
            if not self.awake:
                self._wake()
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        """Give the base class what it is to read; the header clock starts with its first byte."""
        # After a body the base class feeds itself with nothing, to look for a pipelined request.
        if data:
            if self._lane is not None:
                self._framing = self._framing or framing.Framing()
                self._framing.feed(data)
            if self._header_since is None and (self._body is None or self._body.is_eof()):
                self._header_since = self._loop.time()
        super().data_received(data)
        if data:
            self._listener.hold(self, 0 if self._is_read() else self.held + len(data))

    def settle(self) -> None:
        """Forget the bytes of a request that was answered meanwhile."""
        if self.awake and self.held and not (self._lane and self._lane.busy) and self._is_between():
            self._listener.hold(self, 0)

    def _is_read(self) -> bool:
        return self._header_since is None and not self.handling

    def reading(self, body: streams.StreamReader) -> None:
        """Note that headers are complete and the body is due."""
        self._header_since = None
        self._announced = True
        self._body = body
        self._body_since = self._loop.time()

    async def _handle_request(self, *arguments: Any) -> Any:
        self._announced = False
        try:
            return await super()._handle_request(*arguments)
        finally:
            # A body that was cut off keeps its error, whose frames keep all that was read of it.
            error = None if self._body is None else self._body.exception()
            if isinstance(error, BaseException):
                error.__traceback__ = None

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Keep quiet about clients that leave within a request; they can do so without end."""
        if not isinstance(kw.get("exc_info"), ConnectionError):
            super().log_exception(*args, **kw)

    @property
    def _is_answering(self) -> bool:
        # Between the announcement of a request and its handling others may run.
        return self._announced or self._request_in_progress or bool(self._messages)

    def _is_between(self) -> bool:
        """Whether the base class has read and answered all that it was given."""
        if self._is_answering or self._header_since is not None:
            return False
        if not self._is_between_requests():
            return False
        return not self.writing_paused and (self._body is None or self._body.is_eof())

    def _is_between_requests(self) -> bool:
        return self._framing is None or self._framing.is_between

    @property
    def ends(self) -> bool:
        """Whether the answer of the base class that is on its way is the last one."""
        if not self.retired or self._messages:
            return False
        if self._body is not None and not self._body.is_eof():
            return True
        return self._header_since is None and not (self._framing and self._framing.is_within)

    @property
    def handling(self) -> bool:
        """Whether a complete request waits for its answer."""
        lane = self._lane is not None and self._lane.answering
        return lane or (self.awake and self._is_answering)

    @property
    def busy(self) -> bool:
        """Whether a request is being received or answered."""
        lane = self._lane is not None and self._lane.busy
        return lane or self.handling or self._header_since is not None

    def check(self, now: float, limits: settings.ServerSettings) -> None:
        """Drop the client when it is late with its headers, answer 408 when with its body."""
        lane = self._lane
        header_seconds, body_seconds = limits.header_seconds, limits.body_seconds
        if limits.caller_blocks and not self.source.named and not self.busy:
            if now - self._last > limits.other_idle_seconds:
                self.cut()
            return
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
