"""Reads one HTTP/1.1 answer out of the bytes of a connection; no I/O.

Only what API servers and what stands before them really send, and that strictly: whatever is
ambiguous ends the connection instead of being guessed.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

_END: Final = b"\r\n\r\n"
_LINE: Final = b"\r\n"
_LONGEST_HEAD: Final = 65_536
_LONGEST_SIZE: Final = 16
_LARGEST_BODY: Final = 256 << 20
_MOST_DIGITS: Final = 12
_WITHOUT_BODY: Final = frozenset({204, 304})
_ONCE: Final = frozenset({"content-length", "transfer-encoding"})


class BrokenError(Exception):
    """What arrived is not one complete, unambiguous answer."""


class Answer(NamedTuple):
    """A complete answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    reusable: bool
    """Whether the connection may serve another request."""


class _Head(NamedTuple):
    status: int
    headers: Mapping[str, str]
    length: int | None
    """None: the body is chunked, or lasts as long as the connection."""
    chunked: bool
    keeps: bool


class Reader:
    """Takes in the bytes of one answer as they come."""

    __slots__ = ("_body", "_head", "_rest", "_size", "_without_body")

    def __init__(self, *, without_body: bool = False) -> None:
        """Start; the answer to HEAD has no body whatever its headers say."""
        self._without_body = without_body
        self._head: _Head | None = None
        self._rest = b""
        self._body: list[bytes] = []
        self._size = 0

    @property
    def begun(self) -> bool:
        """Whether anything has arrived."""
        return bool(self._rest) or self._head is not None

    def feed(self, data: bytes) -> Answer | None:
        """Take in what arrived; return the answer once it is complete."""
        head = self._head
        if head is None:
            data = self._rest + data
            head, data = self._heads(data)
            if head is None:
                self._rest = data
                return None
            self._head, self._rest = head, b""
        if head.chunked:
            return self._feed_chunks(head, self._rest + data)
        self._add(data)
        if head.length is None or self._size < head.length:
            return None
        return self._answer(head, surplus=self._size > head.length)

    def end(self) -> Answer:
        """Take in that the connection has ended; an answer without a length is complete now."""
        head = self._head
        if head is None or head.chunked or head.length is not None:
            raise BrokenError("the connection ended " + ("early" if self.begun else "unanswered"))
        return self._answer(head, surplus=True)

    def _heads(self, data: bytes) -> tuple[_Head | None, bytes]:
        """Return the head of the answer and what follows; what is announced before is passed."""
        while True:
            size = data.find(_END)
            if size > _LONGEST_HEAD or (size < 0 and len(data) > _LONGEST_HEAD):
                raise BrokenError("the head of the answer is too long")
            if size < 0:
                return None, data
            head = _parse(data[:size], without_body=self._without_body)
            data = data[size + len(_END) :]
            if head.status == 101:
                raise BrokenError("the server wants to talk another protocol")
            if head.status >= 200:
                return head, data

    def _add(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > _LARGEST_BODY:
            raise BrokenError("the answer is too large")
        if data:
            self._body.append(data)

    def _feed_chunks(self, head: _Head, data: bytes) -> Answer | None:
        at = 0
        while True:
            end = data.find(_LINE, at)
            if end < 0:
                if len(data) - at > _LONGEST_HEAD:
                    raise BrokenError("a chunk does not say its size")
                break
            size = _chunk_size(data[at:end])
            start = end + len(_LINE)
            if size == 0:
                return self._feed_trailers(head, data, at, start)
            if len(data) < start + size + len(_LINE):
                break
            if data[start + size : start + size + len(_LINE)] != _LINE:
                raise BrokenError("a chunk does not end where it says")
            self._add(data[start : start + size])
            at = start + size + len(_LINE)
        self._rest = data[at:]
        return None

    def _feed_trailers(self, head: _Head, data: bytes, at: int, start: int) -> Answer | None:
        if data.startswith(_LINE, start):
            return self._answer(head, surplus=len(data) > start + len(_LINE))
        end = data.find(_END, start)
        if end < 0:
            if len(data) - start > _LONGEST_HEAD:
                raise BrokenError("the end of the answer is too long")
            self._rest = data[at:]
            return None
        return self._answer(head, surplus=len(data) > end + len(_END))

    def _answer(self, head: _Head, *, surplus: bool) -> Answer:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        if head.length is not None and len(body) > head.length:
            body = body[: head.length]
        return Answer(head.status, head.headers, body, head.keeps and not surplus)


def _parse(head: bytes, *, without_body: bool) -> _Head:
    first, *lines = head.decode("latin-1").split("\r\n")
    version, status = first[:9], first[9:12]
    if version not in ("HTTP/1.1 ", "HTTP/1.0 ") or not (status.isascii() and status.isdecimal()):
        raise BrokenError("the answer is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip():
            raise BrokenError("the answer has a header that is none")
        value = value.strip()
        if name in _ONCE and headers.get(name, value) != value:
            raise BrokenError("the answer says twice how long it is")
        headers[name] = value
    code = int(status)
    length, chunked = _extent(headers)
    if without_body or code in _WITHOUT_BODY or code < 200:
        length, chunked = 0, False
    kept = version == "HTTP/1.1 " and "close" not in headers.get("connection", "").lower()
    return _Head(code, headers, length, chunked, kept and (chunked or length is not None))


def _extent(headers: Mapping[str, str]) -> tuple[int | None, bool]:
    """Return how long the body is, and whether it comes in chunks."""
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if coding is not None:
        if coding.lower() != "chunked" or length is not None:
            raise BrokenError("the answer does not say clearly how long it is")
        return None, True
    if length is None:
        return None, False
    if not (length.isascii() and length.isdecimal() and len(length) <= _MOST_DIGITS):
        raise BrokenError("the answer has a length that is no number")
    return int(length), False


def _chunk_size(line: bytes) -> int:
    text = line.partition(b";")[0].strip()
    if not text or len(text) > _LONGEST_SIZE or text.strip(b"0123456789abcdefABCDEF"):
        raise BrokenError("a chunk has a size that is no number")
    size = int(text, 16)
    if size > _LARGEST_BODY:
        raise BrokenError("the answer is too large")
    return size
