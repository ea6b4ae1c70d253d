"""Protobuf messages from a schema in words, for protocols that carry more than we read.

A field is written as `name type number`; `[]` is a list, `{}` a map from string. Fields that are
not named are kept where a message is read, and written again as they came.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

DecodeError = message.DecodeError
_FIELD: Final = re.compile(r"(\w+) (\w+)(\[\]|\{\})? (\d+)")
_Proto = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final[Mapping[str, int]] = {
    "string": _Proto.TYPE_STRING,
    "bytes": _Proto.TYPE_BYTES,
    "bool": _Proto.TYPE_BOOL,
    "int32": _Proto.TYPE_INT32,
    "int64": _Proto.TYPE_INT64,
    "uint32": _Proto.TYPE_UINT32,
    "uint64": _Proto.TYPE_UINT64,
}


def classes(package: str, schema: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a class for each message of a package.

    Proto2, since a zero may be written there, and a text that is not UTF-8 does not keep the rest
    from being read.
    """
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package}.proto", package=package, syntax="proto2"
    )
    for name, fields in schema.items():
        made = file.message_type.add(name=name)
        for field in _FIELD.finditer(fields):
            _add_field(package, made, *field.groups())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
        for name in schema
    }


def text(value: str | bytes) -> str:
    """Return a text; one that is not UTF-8 comes as bytes."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def texts(pairs: Any) -> dict[str, str]:
    """Return a map of texts."""
    return {text(key): text(pairs[key]) for key in pairs}


def _add_field(
    package: str, made: Any, name: str, kind: str, shape: str | None, number: str
) -> None:
    label = _Proto.LABEL_REPEATED if shape else _Proto.LABEL_OPTIONAL
    field = made.field.add(name=name, number=int(number), label=label)
    if shape != "{}":
        _set_type(package, field, kind)
        return
    words = "".join(word.capitalize() for word in name.split("_"))
    entry = made.nested_type.add(name=f"{words}Entry")
    entry.options.map_entry = True
    for position, key in enumerate(("key", "value"), 1):
        inner = entry.field.add(name=key, number=position, label=_Proto.LABEL_OPTIONAL)
        inner.type = _Proto.TYPE_STRING
    field.type, field.type_name = _Proto.TYPE_MESSAGE, f".{package}.{made.name}.{entry.name}"


def _set_type(package: str, field: Any, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type, field.type_name = _Proto.TYPE_MESSAGE, f".{package}.{kind}"
