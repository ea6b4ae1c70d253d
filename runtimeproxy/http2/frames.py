"""Frames of HTTP/2 (RFC 9113): split from a stream of bytes, and written. Pure."""

import enum
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES: Final = 9
MOST_WINDOW: Final = (1 << 31) - 1


class Kind(enum.IntEnum):
    """Types of frames that a relay looks at; others pass."""

    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    WINDOW_UPDATE = 8
    CONTINUATION = 9


END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
PRIORITY: Final = 0x20
INITIAL_WINDOW_SIZE: Final = 4
MAX_FRAME_SIZE: Final = 5
CANCEL: Final = 8
NO_ERROR: Final = 0


class FrameError(ValueError):
    """A frame whose content contradicts its length."""


class Frame(NamedTuple):
    """One frame, with all of its bytes."""

    kind: int
    flags: int
    stream: int
    payload: bytes
    raw: bytes

    @property
    def ends_stream(self) -> bool:
        """Whether its sender sends no more on the stream."""
        return self.kind in (Kind.DATA, Kind.HEADERS) and bool(self.flags & END_STREAM)

    @property
    def content(self) -> bytes:
        """The payload without padding and priority."""
        start, end = 0, len(self.payload)
        if self.flags & PADDED:
            if not self.payload:
                raise FrameError("a padded frame without a length of its padding")
            start, end = 1, end - self.payload[0]
        if self.kind == Kind.HEADERS and self.flags & PRIORITY:
            start += 5
        if start > end:
            raise FrameError("padding is longer than its frame")
        return self.payload[start:end]

    @property
    def number(self) -> int:
        """The increment of a WINDOW_UPDATE."""
        if len(self.payload) != 4:
            raise FrameError("a WINDOW_UPDATE has four bytes")
        return int.from_bytes(self.payload) & MOST_WINDOW

    @property
    def settings(self) -> Iterable[tuple[int, int]]:
        """The pairs of a SETTINGS frame."""
        if len(self.payload) % 6:
            raise FrameError("SETTINGS are pairs of six bytes")
        return struct.iter_unpack(">HI", self.payload)


class Splitter:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Take more bytes and return the frames that are complete."""
        pending = self._pending
        pending += data
        found, at = [], 0
        while len(pending) - at >= HEADER_BYTES:
            end = at + HEADER_BYTES + int.from_bytes(pending[at : at + 3])
            if end > len(pending):
                break
            raw = bytes(pending[at:end])
            stream = int.from_bytes(raw[5:9]) & MOST_WINDOW
            found.append(Frame(raw[3], raw[4], stream, raw[HEADER_BYTES:], raw))
            at = end
        del pending[:at]
        return found

    def rest(self) -> bytes:
        """Take out the bytes of a frame that is not complete."""
        found = bytes(self._pending)
        self._pending.clear()
        return found


def written(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return the bytes of a frame."""
    head = struct.pack(">IBI", len(payload) << 8 | kind, flags, stream)
    return head + payload


def window_update(stream: int, size: int) -> bytes:
    """Return a WINDOW_UPDATE; stream 0 is the connection."""
    return written(Kind.WINDOW_UPDATE, 0, stream, struct.pack(">I", size))


def reset(stream: int, code: int) -> bytes:
    """Return an RST_STREAM."""
    return written(Kind.RST_STREAM, 0, stream, struct.pack(">I", code))
