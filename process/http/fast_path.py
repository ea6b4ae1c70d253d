"""A short way for requests that always come in the same shape, beside the long one of aiohttp.

A scheduler sends thousands of `POST /verb` a second over kept connections, with a handful of plain
headers and the length of the body. Exactly such requests are read here and answered without a
task or a router, and heads that are alike are parsed once; whatever differs in anything goes to
aiohttp, byte for byte, so that all limits and all of HTTP stay in one place.
"""

import asyncio
import email.utils
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Protocol

import httptools
import msgspec
from aiohttp import web

Caller = Callable[[], bool]
"""Says whether the caller is still there."""

Handler = Callable[[bytes, Caller], bytes | Awaitable[bytes]]
"""Takes a body; answers now or later, or raises Fallback."""

ROUTES: Final[web.AppKey[Mapping[str, Handler]]] = web.AppKey("express", Mapping[str, Handler])
"""By path: what an application offers on the short way as well."""

_PLAIN: Final = frozenset(
    {b"host", b"user-agent", b"content-type", b"accept-encoding", b"accept", b"content-length"}
)
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_METHOD: Final = b"POST "
_LINE: Final = b"\r\n"
_END: Final = _LINE + _LINE
_LENGTH: Final = b"\r\nContent-Length: "
_LENGTH_NAME: Final = b"content-length"
_MOST_KNOWN: Final = 64
_MOST_DIGITS: Final = 9


class Fallback(Exception):  # noqa: N818 - a way to go, not an error
    """Raised by a handler that leaves this request to the routes of the application."""


class Head(msgspec.Struct, frozen=True, gc=False):
    """What the head of a request says, and how long the whole request is."""

    handler: Handler
    start: int
    end: int


class Spawner(Protocol):
    """Starts a task that is looked after."""

    def __call__(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start it."""


class FastPath:
    """The short way of one site."""

    def __init__(
        self,
        routes: Mapping[str, Handler],
        limits: tuple[int, int],
        spawn: Spawner,
    ) -> None:
        """Take the routes and the largest head and body."""
        self._handlers = {path.encode(): each for path, each in routes.items()}
        self.head_limit, self._body_limit = limits
        self._known: dict[bytes, Handler] = {}
        self.spawn = spawn

    def head(self, data: bytes) -> Head | None:
        """Read the head of a request; None if it has to go the long way."""
        size = data.find(_END, 0, self.head_limit)
        if size < 0:
            return None
        # A caller's heads are alike but for the length, so they are read once.
        at = data.find(_LENGTH, 0, size)
        if at < 0:
            return None
        at += len(_LENGTH)
        start, end = size + len(_END), data.find(_LINE, at, size + len(_LINE))
        alike, value = data[:at] + data[end:size], data[at:end]
        handler = self._known.get(alike)
        if handler is None:
            handler = self._read(data[:start])
            if handler is None:
                return None
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[alike] = handler
        if not value.isdigit() or len(value) > _MOST_DIGITS:
            return None
        length = int(value)
        return Head(handler, start, start + length) if length <= self._body_limit else None

    def _read(self, head: bytes) -> Handler | None:
        """Read a head that no other was like; None if the long way has to judge it."""
        if not head.startswith(_METHOD):
            # llhttp skips line ends before the request line, and a known head holds every byte.
            return None
        found = _Reading(head)
        if not found.plain:
            return None
        return self._handlers.get(found.target)


class _Reading:
    """What llhttp makes of the head of a request."""

    def __init__(self, head: bytes) -> None:
        self.target = b""
        self._names: list[bytes] = []
        self._complete = False
        parser = httptools.HttpRequestParser(self)
        try:
            parser.feed_data(head)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._complete = False
        self.plain = (
            self._complete
            and parser.get_http_version() == "1.1"
            and self._names.count(_LENGTH_NAME) == 1
            and _PLAIN.issuperset(self._names)
        )

    def on_url(self, url: bytes) -> None:
        """Take in the target, which comes in one piece as the head does."""
        self.target += url

    def on_header(self, name: bytes, _value: bytes) -> None:
        """Take in a header."""
        self._names.append(name.lower())

    def on_headers_complete(self) -> None:
        """Take in the end of the head."""
        self._complete = True


class Connection:
    """The short way on one connection."""

    __slots__ = (
        "_express",
        "_head",
        "_later",
        "_later_size",
        "_parts",
        "_size",
        "_transport",
        "answering",
        "retired",
        "since",
    )

    def __init__(self, express: FastPath, transport: asyncio.Transport) -> None:
        self._express = express
        self._transport = transport
        self._head: Head | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._later: list[bytes] = []
        self._later_size = 0
        self.answering = False
        """Whether a request waits for its answer."""
        self.since: float | None = None
        """Since when the rest of a body is due."""
        self.retired = False
        """Whether the connection ends with the answer to all that was received of it."""

    @property
    def busy(self) -> bool:
        """Whether a request is being received or answered."""
        return self.answering or self.since is not None

    @property
    def held(self) -> int:
        """How many bytes wait for the rest of their request, or for the answer before them."""
        return self._size + self._later_size

    def take(self, data: bytes) -> bytes:
        """Take in what arrived while no other request is open; return what goes the long way."""
        while data:
            if self.answering:
                self._wait(data)
                return b""
            head = self._head or self._express.head(data)
            if head is None:
                return data
            whole = self._joined(head, data) if self._head or len(data) < head.end else data
            if whole is None:
                return b""
            try:
                data = self._serve(head, whole)
            except Fallback:
                return whole
        return b""

    def _joined(self, head: Head, data: bytes) -> bytes | None:
        """Put a request together that comes in pieces; None while some of it is due."""
        self._parts.append(data)
        self._size += len(data)
        if self._size < head.end:
            self._head = head
            self.since = self.since or asyncio.get_running_loop().time()
            return None
        whole = b"".join(self._parts)
        self._head, self._parts, self._size, self.since = None, [], 0, None
        return whole

    def _serve(self, head: Head, whole: bytes) -> bytes:
        """Answer a complete request; return what came after it."""
        answer = head.handler(whole[head.start : head.end], self._is_connected)
        rest = whole[head.end :]
        if isinstance(answer, bytes):
            self._write(answer, rest)
        else:
            self.answering = True
            self._express.spawn("answer", self._answer_later(answer))
        return rest

    def _wait(self, data: bytes) -> None:
        """Keep what was asked before the answer, and take no more than the head of one request."""
        self._later.append(data)
        self._later_size += len(data)
        if self._later_size > self._express.head_limit:
            self._transport.pause_reading()

    async def _answer_later(self, answer: Awaitable[bytes]) -> None:
        try:
            self._write(await answer, self._later)
        finally:
            self.answering = False
        waiting, self._later = b"".join(self._later), []
        if waiting and self._is_connected():
            if self._later_size > self._express.head_limit:
                self._transport.resume_reading()
            self._later_size = 0
            self._go_on(waiting)

    def _go_on(self, data: bytes) -> None:
        protocol = self._transport.get_protocol()
        assert isinstance(protocol, asyncio.Protocol)
        protocol.data_received(data)

    def refuse(self) -> None:
        """Give up on a body that comes too slowly."""
        self._transport.write(_TOO_SLOW)
        self._transport.close()

    def _is_connected(self) -> bool:
        return not self._transport.is_closing()

    def _write(self, answer: bytes, following: bytes | list[bytes]) -> None:
        """Answer a request; what follows it was received already and gets its answer too."""
        if not self._is_connected():
            return
        last = self.retired and not following
        self._transport.write(_head_of(len(answer), last) + answer)
        if last:
            self._transport.close()


def _head_of(length: int, last: bool) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n%b\r\n"
        % (
            _DATE.line(time.time()),
            length,
            b"Connection: close\r\n" if last else b"",
        )
    )


class _Date:
    """Spells the present moment out once a second."""

    def __init__(self) -> None:
        self._second = -1
        self._line = b""

    def line(self, now: float) -> bytes:
        second = int(now)
        if second != self._second:
            self._second = second
            moment = email.utils.formatdate(second, usegmt=True)
            self._line = f"Server: koord\r\nDate: {moment}\r\n".encode()
        return self._line


_DATE = _Date()
