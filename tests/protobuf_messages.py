"""Objects as API servers send them in protobuf, written without the library that reads them."""

import re
from collections.abc import Mapping
from typing import Any

from api.kubernetes import protobuf_fields
from api.wire import durations

_FIELD = re.compile(r"(\w+) (\w+)(\?|\[\]|\{\})? (\d+)")
_SCHEMA: Mapping[str, str] = {**protobuf_fields.EVENT, **protobuf_fields.POD_WITH_VOLUMES}
_TEXTS, _NUMBERS = {"string", "bytes"}, {"int32", "int64", "bool"}
_UNKNOWN_FIELD = 500


def varint(value: int) -> bytes:
    """Write an integer; negative ones take ten bytes."""
    value &= (1 << 64) - 1
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*parts, value))


def field(number: int, value: int | bytes) -> bytes:
    """Write one field: a number or what has a length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(kind: str, said: Mapping[str, Any]) -> bytes:
    """Write what JSON says of an object, with the zeros that Go writes, and an unknown field."""
    parts = [field(_UNKNOWN_FIELD, b"of a later release")]
    for written in _FIELD.finditer(_SCHEMA[kind]):
        name, inner, shape, number = written[1], written[2], written[3], int(written[4])
        value = said.get(name)
        if shape == "{}":
            for key, one in (value or {}).items():
                parts.append(field(number, field(1, key.encode()) + field(2, _value(inner, one))))
        elif shape == "[]":
            parts += [field(number, _value(inner, one)) for one in value or ()]
        elif value is not None:
            parts.append(field(number, _value(inner, value)))
        elif shape is None and inner in _TEXTS | _NUMBERS:
            parts.append(field(number, b"" if inner in _TEXTS else 0))
    return b"".join(parts)


def _value(kind: str, said: Any) -> int | bytes:
    if kind in _NUMBERS:
        return int(said)
    if kind in _TEXTS:
        return said if isinstance(said, bytes) else str(said).encode()
    if kind == "Time":
        return field(1, int(durations.timestamp(said))) + field(2, 0)
    if kind == "Quantity":
        return field(1, str(said).encode())
    return message(kind, said)


def envelope(change: str, kind: str, data: bytes) -> bytes:
    """Write a watch event around an object that is written already."""
    return field(1, change.encode()) + field(2, field(1, _unknown(kind, data)))


def body(said: Mapping[str, Any], kind: str) -> bytes:
    """Write the body of an answer."""
    return _unknown(kind, message(kind, said))


def _unknown(kind: str, data: bytes) -> bytes:
    about = field(1, field(1, b"v1") + field(2, kind.encode()))
    return b"k8s\x00" + about + field(2, data) + field(3, b"") + field(4, b"")


def event(change: str, said: Mapping[str, Any], kind: str = "Pod") -> bytes:
    """Write a watch event."""
    return envelope(change, kind, message(kind, said))


def frame(data: bytes) -> bytes:
    """Put the length before an event, as a watch does."""
    return len(data).to_bytes(4, "big") + data
