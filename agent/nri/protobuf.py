"""Protobuf messages by a schema in text, of which only the named fields are read and written. Pure.

A message behaves as those of the protobuf library: fields are attributes, a field that is absent
reads as its zero, and one inside an absent message may be set. It takes a small part of the memory
that the library takes, which counts on every node. A text that is not UTF-8 is read with
replacement characters, so that it does not cost the request.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

_FIELD: Final = re.compile(r"(\w+) (\w+)(\[\]|\{\})? (\d+)")
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NUMBERS: Final = frozenset({"bool", "int32", "int64", "uint32", "uint64"})
_ZEROS: Final[Mapping[str, Any]] = {
    "string": "",
    "bytes": b"",
    "bool": False,
    **dict.fromkeys(("int32", "int64", "uint32", "uint64"), 0),
}
_MASK: Final = (1 << 64) - 1
_MOST_SHIFT: Final = 63


class DecodeError(ValueError):
    """Bytes that are no message."""


class Field(NamedTuple):
    """One field of a message."""

    name: str
    kind: str
    shape: str
    """`[]` for a list, `{}` for a map by text, empty for one value."""
    number: int

    @property
    def is_plain(self) -> bool:
        """Whether a value is no message."""
        return self.kind in _ZEROS


class Message:
    """A message of one kind; `classes` makes a class for each."""

    __slots__ = ("content", "is_marked")
    FIELDS: ClassVar[Mapping[str, Field]] = {}
    BY_NUMBER: ClassVar[Mapping[int, Field]] = {}
    CLASSES: ClassVar[Mapping[str, "type[Message]"]] = {}
    content: dict[str, Any]
    """What is set, by the names of fields."""
    is_marked: bool
    """Whether the message is there though nothing in it is set."""

    def __init__(self, **values: Any) -> None:
        """Take the values of fields by name; None leaves one out."""
        unknown = values.keys() - self.FIELDS.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {min(unknown)}")
        given = {name: value for name, value in values.items() if value is not None}
        object.__setattr__(self, "content", given)
        object.__setattr__(self, "is_marked", True)

    def __getattr__(self, name: str) -> Any:
        """Return the value of a field, its zero where it is absent."""
        found = self.content.get(name)
        if found is not None:
            return found
        field = self.FIELDS.get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__} has no field {name}")
        if field.shape:
            made: Any = {} if field.shape == "{}" else Repeated(self.CLASSES.get(field.kind))
        elif field.is_plain:
            return _ZEROS[field.kind]
        else:
            made = self.CLASSES[field.kind]()
            object.__setattr__(made, "is_marked", False)
        self.content[name] = made
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        """Set the value of a field that is no message."""
        if name not in self.FIELDS:
            raise AttributeError(f"{type(self).__name__} has no field {name}")
        self.content[name] = value

    def has_field(self, name: str) -> bool:
        """Tell whether a field is there, be it its zero."""
        found = self.content.get(name)
        if isinstance(found, Message):
            return found.is_there()
        return found is not None

    def copy_from(self, other: "Message") -> None:
        """Become equal to another message of the same kind."""
        object.__setattr__(self, "content", dict(other.content))
        object.__setattr__(self, "is_marked", True)

    def byte_size(self) -> int:
        """Return the length of the encoded message."""
        return len(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Encode the message, fields in the order of the schema."""
        parts = bytearray()
        for name, field in self.FIELDS.items():
            value = self.content.get(name)
            if value is not None:
                for one in _listed(field, value):
                    parts += one
        return bytes(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Message":
        """Decode a message; raises DecodeError."""
        made = cls()
        made.merge(memoryview(data))
        return made

    def is_there(self) -> bool:
        """Tell whether the message is there, or anything in it."""
        return self.is_marked or bool(self.to_bytes())

    def merge(self, data: memoryview) -> None:
        """Take encoded fields; raises DecodeError."""
        values = self.content
        for number, wire, raw in _fields(data):
            field = self.BY_NUMBER.get(number)
            if field is None or (wire == _VARINT) is not (field.kind in _NUMBERS):
                continue
            if wire not in (_VARINT, _BYTES):
                continue
            if field.shape == "{}":
                entry = _Entry.from_bytes(bytes(raw))
                values.setdefault(field.name, {})[entry.key] = entry.value
            elif field.shape:
                getattr(self, field.name).append(self.value_of(field, raw))
            elif field.is_plain:
                values[field.name] = self.value_of(field, raw)
            else:
                inner = getattr(self, field.name)
                object.__setattr__(inner, "is_marked", True)
                inner.merge(raw)

    def value_of(self, field: Field, raw: Any) -> Any:
        """Return one value of a field from what stands in the encoded message."""
        match field.kind:
            case "string":
                return bytes(raw).decode("utf-8", "replace")
            case "bytes":
                return bytes(raw)
            case "bool":
                return raw != 0
            case "int32" | "int64":
                bits = 32 if field.kind == "int32" else 64
                low = raw & ((1 << bits) - 1)
                return low - (1 << bits) if low >> (bits - 1) else low
            case "uint32" | "uint64":
                return raw & ((1 << (32 if field.kind == "uint32" else 64)) - 1)
        made = self.CLASSES[field.kind]()
        made.merge(raw)
        return made


class Repeated(list[Any]):
    """A list of values; of messages new ones can be added by their fields."""

    def __init__(self, kind: type[Message] | None = None) -> None:
        super().__init__()
        self._kind = kind

    def add(self, **values: Any) -> Any:
        """Append a message and return it."""
        if self._kind is None:
            raise TypeError("a list of plain values has no message to add")
        made = self._kind(**values)
        self.append(made)
        return made


def classes(schema: Mapping[str, str]) -> Mapping[str, type[Message]]:
    """Return a class for each message: `name type number`, with `[]` or `{}` after the type."""
    made: dict[str, type[Message]] = {}
    for kind, text in schema.items():
        fields = {
            one[1]: Field(one[1], one[2], one[3] or "", int(one[4]))
            for one in _FIELD.finditer(text)
        }
        body = {
            "__slots__": (),
            "FIELDS": fields,
            "BY_NUMBER": {one.number: one for one in fields.values()},
            "CLASSES": made,
        }
        made[kind] = type(kind, (Message,), body)
    return made


def _listed(field: Field, value: Any) -> Iterator[bytes]:
    """Return each value of a field as it is written, with its number before it."""
    if field.shape == "{}":
        for key, one in value.items():
            entry = _plain(1, "string", key) + _plain(2, "string", one)
            yield _plain(field.number, "bytes", entry)
    elif field.is_plain:
        for one in value if field.shape else (value,):
            yield _plain(field.number, field.kind, one)
    else:
        for one in value if field.shape else (value,):
            data = one.to_bytes()
            if field.shape or one.is_marked or data:
                yield _plain(field.number, "bytes", data)


def _plain(number: int, kind: str, value: Any) -> bytes:
    if kind in _NUMBERS:
        return _varint(number << 3 | _VARINT) + _varint(int(value))
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    value &= _MASK
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and content of each field: a number, or bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _number(data, at)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise DecodeError(f"{number} is no number of a field")
        if wire == _VARINT:
            value, at = _number(data, at)
            yield number, wire, value
            continue
        if wire == _BYTES:
            length, at = _number(data, at)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise DecodeError(f"field {number} has wire type {wire}")
        if length > end - at:
            raise DecodeError(f"field {number} ends beyond its message")
        yield number, wire, data[at : at + length]
        at += length


def _number(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise DecodeError("a number ends beyond its message")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at
        shift += 7
        if shift > _MOST_SHIFT:
            raise DecodeError("a number is longer than ten bytes")


_Entry: Final[Any] = classes({"Entry": "key string 1, value string 2"})["Entry"]
