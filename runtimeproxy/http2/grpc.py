"""Messages and refusals of gRPC over HTTP/2. Pure."""

from typing import Final

from runtimeproxy.http2 import frames

PREFIX_BYTES: Final = 5
MOST_MESSAGE: Final = 16 * 1024 * 1024
"""The largest request that kubelet and runtimes exchange."""
UNKNOWN: Final = 2
RESOURCE_EXHAUSTED: Final = 8
_STATUS_200: Final = b"\x88"
_PLAIN: Final = frozenset(range(0x20, 0x7F)) - {0x25}


def message_of(body: bytes) -> bytes | None:
    """Return the one message of a body, None where it is not exactly one, or is compressed."""
    if len(body) < PREFIX_BYTES or body[0]:
        return None
    if len(body) != PREFIX_BYTES + int.from_bytes(body[1:PREFIX_BYTES]):
        return None
    return body[PREFIX_BYTES:]


def body_of(message: bytes) -> bytes:
    """Return a message with its prefix."""
    return b"\0" + len(message).to_bytes(4) + message


def refusal(stream: int, code: int, text: str) -> bytes:
    """Return the frame that ends a call with a status.

    Its fields are literals that no table of HPACK remembers, so that the tables of the two ends of
    a relay stay equal.
    """
    fields = (
        (b"content-type", b"application/grpc"),
        (b"grpc-status", str(code).encode()),
        (b"grpc-message", _percent_encoded(text[:1000].encode())),
    )
    block = _STATUS_200 + b"".join(_literal(name, value) for name, value in fields)
    flags = frames.END_HEADERS | frames.END_STREAM
    return frames.written(frames.Kind.HEADERS, flags, stream, block)


def _percent_encoded(text: bytes) -> bytes:
    return b"".join(bytes((one,)) if one in _PLAIN else b"%%%02X" % one for one in text)


def _literal(name: bytes, value: bytes) -> bytes:
    return b"\x10" + _text(name) + _text(value)


def _text(value: bytes) -> bytes:
    """Return a string of HPACK: its length as an integer with a prefix of 7 bits, and its bytes."""
    size = len(value)
    if size < 127:
        return bytes((size,)) + value
    found, size = bytearray((127,)), size - 127
    while size >= 128:
        found.append(size % 128 + 128)
        size //= 128
    return bytes(found) + bytes((size,)) + value
