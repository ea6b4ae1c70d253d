"""Frames of an NRI socket: a multiplexer, and messages of ttrpc on each of its connections. Pure.

A multiplexer frame is a connection number and a length, both of four bytes with the highest first,
and the payload; payloads of one connection are one stream of bytes. A ttrpc message is a length, a
stream number, a type, flags, and protobuf.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

PLUGIN_SERVICE, RUNTIME_SERVICE = 1, 2
"""Connections on which the runtime calls the plug-in, and the plug-in the runtime."""
REQUEST, RESPONSE = 1, 2
MOST_DATA: Final = 4 << 20
"""Bytes of one message of ttrpc."""
_MULTIPLEXED: Final = struct.Struct(">II")
_MESSAGE: Final = struct.Struct(">IIBB")
MOST_PAYLOAD: Final = MOST_DATA + _MESSAGE.size


class FrameError(ValueError):
    """Bytes that are no frame; the connection cannot go on."""


class Message(NamedTuple):
    """One message of ttrpc on one connection."""

    connection: int
    stream: int
    type: int
    data: bytes


def encoded(message: Message) -> bytes:
    """Return a message as the socket carries it; raises FrameError for one that is too long."""
    if len(message.data) > MOST_DATA:
        raise FrameError(f"a message of {len(message.data)} bytes is longer than {MOST_DATA}")
    head = _MESSAGE.pack(len(message.data), message.stream, message.type, 0)
    payload = head + message.data
    return _MULTIPLEXED.pack(message.connection, len(payload)) + payload


class Decoder:
    """Takes bytes as they arrive and returns whole messages."""

    def __init__(self) -> None:
        self._arrived = bytearray()
        self._streams: dict[int, bytearray] = {}

    def feed(self, data: bytes) -> Iterator[Message]:
        """Return the messages that these bytes complete; raises FrameError."""
        self._arrived += data
        while len(self._arrived) >= _MULTIPLEXED.size:
            connection, length = _MULTIPLEXED.unpack_from(self._arrived)
            if length > MOST_PAYLOAD:
                raise FrameError(f"a frame of {length} bytes is longer than {MOST_PAYLOAD}")
            if connection not in (PLUGIN_SERVICE, RUNTIME_SERVICE):
                raise FrameError(f"connection {connection} is neither 1 nor 2")
            end = _MULTIPLEXED.size + length
            if len(self._arrived) < end:
                return
            stream = self._streams.setdefault(connection, bytearray())
            stream += self._arrived[_MULTIPLEXED.size : end]
            del self._arrived[:end]
            yield from _messages(connection, stream)


def _messages(connection: int, stream: bytearray) -> Iterator[Message]:
    while len(stream) >= _MESSAGE.size:
        length, number, kind, _ = _MESSAGE.unpack_from(stream)
        if length > MOST_DATA:
            raise FrameError(f"a message of {length} bytes is longer than {MOST_DATA}")
        end = _MESSAGE.size + length
        if len(stream) < end:
            return
        data = bytes(stream[_MESSAGE.size : end])
        del stream[:end]
        yield Message(connection, number, kind, data)
