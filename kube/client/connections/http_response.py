"""Reads one HTTP/1.1 response out of the bytes of a connection; no I/O.

llhttp, the parser of Node.js, reads the bytes, strictly. What it lets pass and API servers never
send ends the connection instead of being guessed.
"""

from collections.abc import Mapping
from typing import Final

import httptools
import msgspec

_PROTOCOL: Final = b"HTTP/"
_VERSIONS: Final = frozenset({"1.0", "1.1"})
_LONGEST_HEAD: Final = 65_536
_LARGEST_BODY: Final = 256 << 20
_LONGEST_CHUNK_LINE: Final = 64
_WITHOUT_BODY: Final = frozenset({204, 304})
_LENGTH: Final = "content-length"
_CODING: Final = "transfer-encoding"
_CONNECTION: Final = "connection"
_TYPE: Final = "content-type"
RETRY_AFTER: Final = "retry-after"
_READ: Final = {name.encode(): name for name in (_LENGTH, _CODING, _CONNECTION, RETRY_AFTER)}
"""Headers that say something to the client; API servers send many more with each answer."""


class BrokenError(Exception):
    """What arrived is not one complete, unambiguous answer."""


class Response(msgspec.Struct, frozen=True, gc=False):
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    """Those that the client reads, by their names in lower case."""
    body: bytes
    reusable: bool
    """Whether the connection may serve another request."""


class Reader:
    """Takes in the bytes of one response as they come."""

    # One is made for each question, so that what begins alike in all of them is of the class.
    _names: Mapping[bytes, str] = _READ
    _start = b""
    _head_read = False
    _keeps = False
    _lasts = False
    _status = 0
    _size = 0
    _around = 0
    _chunks = 0
    _surplus = False
    _answer: Response | None = None

    def __init__(self, *, without_body: bool = False, largest: int = _LARGEST_BODY) -> None:
        """Start; the answer to HEAD has no body whatever its headers say."""
        self._without_body = without_body
        self._largest = largest
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []

    @property
    def begun(self) -> bool:
        """Whether anything has arrived."""
        return bool(self._start)

    def feed(self, data: bytes) -> Response | None:
        """Take in what arrived; return the answer once it is complete."""
        parser = self._parser
        if parser is None:
            self._surplus = self._surplus or bool(data)
            return self._answered()
        if len(self._start) < len(_PROTOCOL):
            # The parser also knows other protocols, and passes over blank lines before a response.
            data = self._start + data
            self._start = data[: len(_PROTOCOL)]
            if not _PROTOCOL.startswith(self._start):
                raise BrokenError("the answer is not HTTP/1.1")
            if self._start != _PROTOCOL:
                return None
        before = self._size
        try:
            parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            broken = error.__context__
            if isinstance(broken, BrokenError):
                raise broken from None
            raise
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self._answer is None:
                raise BrokenError(f"the answer is not clear HTTP/1.1: {error}") from error
            # The response was complete, so this is about what the server says after it.
            self._surplus = True
        self._measure(len(data) - (self._size - before))
        if self._answer is None:
            return None
        self.close()
        return self._answered()

    def end(self) -> Response:
        """Take in that the connection has ended; an answer without a length is complete now."""
        if not self._lasts:
            raise BrokenError("the connection ended " + ("early" if self.begun else "unanswered"))
        answer = self._made(reusable=False)
        self.close()
        return answer

    def close(self) -> None:
        """Let go of the parser, which holds this reader as well."""
        self._parser = None

    def _measure(self, around: int) -> None:
        """Bound what is no body: headers, sizes of chunks, trailers."""
        self._around += around
        if self._around > _LONGEST_HEAD + _LONGEST_CHUNK_LINE * self._chunks:
            raise BrokenError("the head of the answer is too long")

    def _answered(self) -> Response | None:
        answer = self._answer
        if answer is None or not self._surplus:
            return answer
        return msgspec.structs.replace(answer, reusable=False)

    def _made(self, *, reusable: bool) -> Response:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        return Response(self._status, self._headers, body, reusable)

    def on_message_begin(self) -> None:
        """Take in the first byte of a response, which may be one too many."""
        if self._answer is not None:
            self._surplus = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in a header, or a trailer, which says nothing about the response."""
        key = self._names.get(name.lower())
        if key is None or self._head_read:
            return
        text = value.decode("latin-1").strip()
        if key == _CODING and key in self._headers:
            raise BrokenError("the answer says twice how it is coded")
        self._headers[key] = text

    def on_headers_complete(self) -> None:
        """Take in that the head of a response is complete."""
        if self._answer is not None:
            return
        parser, headers = self._parser, self._headers
        assert parser is not None
        version = parser.get_http_version()
        if version not in _VERSIONS:
            raise BrokenError("the answer is not HTTP/1.1")
        self._status = status = parser.get_status_code()
        if status < 200:
            self._announced(status)
            return
        self._head_read = True
        coding, length = headers.get(_CODING), headers.get(_LENGTH)
        if coding is not None and coding.lower() != "chunked":
            raise BrokenError("the answer does not say clearly how long it is")
        if length is not None and int(length) > self._largest:
            raise BrokenError("the answer is too large")
        self._keeps = version == "1.1" and parser.should_keep_alive()
        if self._without_body:
            kept = "close" not in headers.get(_CONNECTION, "").lower()
            self._answer = self._made(reusable=kept)
            return
        self._lasts = status not in _WITHOUT_BODY and coding is None and length is None

    def _announced(self, status: int) -> None:
        """Pass over a response that announces another one."""
        if status == 101:
            raise BrokenError("the server wants to talk another protocol")
        self._headers = {}

    def on_chunk_header(self) -> None:
        """Count chunks."""
        self._chunks += 1

    def on_body(self, body: bytes) -> None:
        """Take in a part of the body."""
        if self._answer is not None:
            self._surplus = True
            return
        self._size += len(body)
        if self._size > self._largest:
            raise BrokenError("the answer is too large")
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Take in that a response is complete."""
        if self._answer is None and self._head_read:
            self._answer = self._made(reusable=self._keeps)


class StreamReader(Reader):
    """Takes in a response that comes in parts for as long as it lasts, such as a watch.

    The body of a refusal is kept and bounded as that of any response.
    """

    _names = _READ | {_TYPE.encode(): _TYPE}

    def __init__(self) -> None:
        super().__init__()
        self.held = 0
        """Bytes of the body that arrived and were not taken yet."""

    @property
    def status(self) -> int:
        """The status, 0 before the head is complete."""
        return self._status if self._head_read else 0

    @property
    def content_type(self) -> str:
        """The media type of the body without its parameters."""
        return self._headers.get(_TYPE, "").partition(";")[0].strip().lower()

    def take(self) -> bytes:
        """Return what arrived of the body since the last call."""
        parts = self._body
        taken = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.held = 0
        return taken

    def on_body(self, body: bytes) -> None:
        """Take in a part of the body."""
        if self._status >= 300:
            super().on_body(body)
            return
        size = len(body)
        self._size += size
        self.held += size
        self._body.append(body)

    def _made(self, *, reusable: bool) -> Response:
        if self._status >= 300:
            return super()._made(reusable=reusable)
        # What was not taken yet comes before the end.
        return Response(self._status, self._headers, b"", reusable)
