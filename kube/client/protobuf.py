"""Watch events in protobuf, of which only the fields that a schema names are read; no I/O.

An API server encodes an event once for all that watch in protobuf, as kube-scheduler does. Each
watch in JSON costs it another encoding of the whole object.
"""

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from api.kubernetes import protobuf_fields
from api.wire import durations
from kube.client import errors, wire

MAGIC: Final = b"k8s\x00"
"""What every object begins with; an event does not."""
_FIELD: Final = re.compile(r"(\w+) (\w+)(\?|\[\]|\{\})? (\d+)")
_Proto = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final[Mapping[str, int]] = {
    "string": _Proto.TYPE_STRING,
    "bytes": _Proto.TYPE_BYTES,
    "bool": _Proto.TYPE_BOOL,
    "int32": _Proto.TYPE_INT32,
    "int64": _Proto.TYPE_INT64,
}

_Read = Callable[[Any], Any]
_STRINGS: Final = frozenset({str})


class _Field(NamedTuple):
    """How one field is turned into what JSON says."""

    name: str
    read: _Read | None
    """None: as it is, and its zero is the same as its absence."""


class Codec:
    """Reads events of one kind.

    A text that is not UTF-8 is read as API servers write it in JSON: with replacement characters,
    so that no pod is left out for what its author wrote.
    """

    media_type: Final = wire.PROTOBUF

    def __init__(self, kind: str, schema: Mapping[str, str]) -> None:
        """`schema` says what is read: fields by message, as in `api.kubernetes.protobuf_fields`."""
        classes = _classes({**protobuf_fields.EVENT, **schema})
        self._event, self._unknown = classes["WatchEvent"], classes["Unknown"]
        self._kind, self._classes = kind, classes
        self._fields: dict[Any, _Field] = {}
        for name, text in (*protobuf_fields.EVENT.items(), *schema.items()):
            descriptor = classes[name].DESCRIPTOR
            for written in _FIELD.finditer(text):
                field = descriptor.fields_by_name[written[1]]
                read = self._reader(written[2], written[3])
                if read is None and written[3] == "?":
                    read = _same
                self._fields[field] = _Field(written[1], read)

    def event(self, frame: bytes) -> wire.Told:
        """Read the envelope of an event; what cannot be read is Malformed."""
        try:
            told = self._event.FromString(frame)
            data = told.object.raw
            if not data.startswith(MAGIC):
                raise errors.Malformed("a watch event in protobuf holds no object")
            unknown = self._unknown.FromString(data[len(MAGIC) :])
            kind = "Status" if told.type == "ERROR" else self._kind
            if unknown.typeMeta.kind != kind:
                raise errors.Malformed(
                    f"a watch event of type {told.type!r} holds a {unknown.typeMeta.kind!r}"
                )
            return wire.Told(told.type, self._classes[kind].FromString(unknown.raw))
        except message.DecodeError as error:
            raise errors.Malformed(f"a watch event is not protobuf: {error}") from error

    def status(self, body: bytes) -> dict[str, Any] | None:
        """Return the Status that a request was refused with; None where this is none."""
        try:
            unknown = self._unknown.FromString(body.removeprefix(MAGIC))
            if unknown.typeMeta.kind != "Status":
                return None
            return self.plain(self._classes["Status"].FromString(unknown.raw))
        except message.DecodeError:
            return None

    def plain(self, told: Any) -> dict[str, Any]:
        """Return an object as its JSON says it."""
        fields = self._fields
        found: dict[str, Any] = {}
        # Each pod has some hundred fields: those of the usual kinds take few steps.
        for descriptor, value in told.ListFields():
            name, read = fields[descriptor]
            if read is not None:
                found[name] = read(value)
            elif value:
                found[name] = value
        if bytes in map(type, found.values()):
            return {name: _decoded(value) for name, value in found.items()}
        return found

    def _reader(self, kind: str, shape: str | None) -> _Read | None:
        """Return how values of a type are read."""
        one: _Read | None
        match kind:
            case "Time":
                one = _time
            case "Quantity":
                one = _quantity
            case _ if kind in _SCALARS:
                one = _text if kind == "string" and shape in {"[]", "{}"} else None
            case _:
                one = self.plain
        if one is None or shape is None or shape == "?":
            return one
        if shape == "[]":
            return functools.partial(_listed, one)
        if one is _text:
            return _texts
        return _quantities if one is _quantity else functools.partial(_mapped, one)


def _same(value: Any) -> Any:
    """Return a value of which JSON shows the zero as well."""
    return value


def _decoded(value: Any) -> Any:
    """Return a field; a text that is not UTF-8 comes as bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def refusal(body: bytes) -> dict[str, Any] | None:
    """Return the Status that a request was refused with; None where this is none."""
    return _statuses().status(body)


@functools.cache
def _statuses() -> Codec:
    return Codec("Status", {})


def _text(value: str | bytes) -> str:
    """Return a text; one that is not UTF-8 comes as bytes."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _time(value: Any) -> str | None:
    """Return a moment in RFC 3339, None as in JSON for Go's zero time, of which nothing is sent."""
    return _moment(value.seconds) if value.HasField("seconds") else None


@functools.lru_cache(maxsize=4096)
def _moment(seconds: int) -> str | None:
    """Return a moment; one that no calendar has counts as absent, so that its pod is seen."""
    try:
        return durations.moment(seconds)
    except (OSError, ValueError, OverflowError):
        return None


def _quantity(value: Any) -> str:
    return _text(value.string)


def _listed(read: _Read, values: Any) -> list[Any]:
    return list(map(read, values))


def _mapped(read: _Read, values: Any) -> dict[str, Any]:
    return {_text(name): read(values[name]) for name in values}


# Maps come in the order of JSON, so that what is read of a pod in either is alike.


def _quantities(values: Any) -> dict[str, str]:
    return _all_texts({name: values[name].string for name in sorted(values)})


def _texts(values: Any) -> dict[str, str]:
    return _all_texts(dict(sorted(dict(values).items())))


def _all_texts(found: dict[str, Any]) -> dict[str, str]:
    # Seldom is any of them not UTF-8, and then its type tells.
    if _STRINGS.issuperset(map(type, found.values())):
        return found
    return {name: _text(value) for name, value in found.items()}


def _classes(schema: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a class for each message.

    Proto2, since it does not refuse a whole object for a text that is not UTF-8.
    """
    file = descriptor_pb2.FileDescriptorProto(name="koord.proto", package="k", syntax="proto2")
    for name, text in schema.items():
        made = file.message_type.add(name=name)
        for field in _FIELD.finditer(text):
            _add_field(made, field)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"k.{name}"))
        for name in schema
    }


def _add_field(made: Any, written: re.Match[str]) -> None:
    name, kind, shape, number = written.groups()
    is_repeated = shape in {"[]", "{}"}
    label = _Proto.LABEL_REPEATED if is_repeated else _Proto.LABEL_OPTIONAL
    field = made.field.add(name=name, number=int(number), label=label)
    if shape == "{}":
        entry = made.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
        entry.options.map_entry = True
        optional = _Proto.LABEL_OPTIONAL
        entry.field.add(name="key", number=1, label=optional, type=_Proto.TYPE_STRING)
        _set_type(entry.field.add(name="value", number=2, label=optional), kind)
        field.type, field.type_name = _Proto.TYPE_MESSAGE, f".k.{made.name}.{entry.name}"
        return
    _set_type(field, kind)


def _set_type(field: Any, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type, field.type_name = _Proto.TYPE_MESSAGE, f".k.{kind}"
