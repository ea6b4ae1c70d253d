"""Reading bodies as the Go types of the API: unknown fields, wrong types, absent values."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from api.wire import quantity
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import builtin_schemas, kinds

Object = dict[str, Any]
Type = builtin_schemas.Type

VALIDATIONS = ("Ignore", "Strict", "Warn")
"""What a request may wish to become of unknown fields."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")
_BITS = {"int32": 31, "int64": 63}


class WrongTypeError(ValueError):
    """A value that does not fit the type of its field."""

    def __init__(self, message: str, sort: str) -> None:
        super().__init__(message)
        self.sort = sort


class Decoder:
    """Reads one body; `unknown` collects the fields that its type does not have."""

    def __init__(self) -> None:
        self.unknown: list[str] = []

    def decoded(self, wanted: Type, value: Any, path: str = "") -> Any:
        """Return the value as the server would write it again."""
        reader = _READERS.get(wanted.sort)
        if reader is not None:
            return reader(self, wanted, value, path)
        if not _SCALARS[wanted.sort](wanted, value):
            raise _misfit(wanted, value, path)
        # A quantity is written as text, however it was said.
        return str(value) if wanted.sort == "quantity" else value

    def struct(self, wanted: Type, value: Any, path: str) -> Object:
        """Read the fields of a struct; null says nothing, and so do empty lists and maps."""
        if not isinstance(value, dict):
            raise _misfit(wanted, value, path)
        result = {}
        for name, inner in value.items():
            here = f"{path}.{name}" if path else str(name)
            field = wanted.fields.get(name)
            if field is None:
                self.unknown.append(here)
            elif inner is not None:
                read = self.decoded(field, inner, here)
                if read or name in wanted.required or field.sort not in ("list", "map"):
                    result[name] = read
        return result

    def entries(self, wanted: Type, value: Any, path: str) -> Object:
        """Read a map."""
        if not isinstance(value, dict):
            raise _misfit(wanted, value, path)
        return {
            key: self._element(wanted.element, inner, f"{path}.{key}")
            for key, inner in value.items()
        }

    def items(self, wanted: Type, value: Any, path: str) -> list[Any]:
        """Read a list."""
        if not isinstance(value, list):
            raise _misfit(wanted, value, path)
        return [
            self._element(wanted.element, inner, f"{path}[{index}]")
            for index, inner in enumerate(value)
        ]

    def _element(self, wanted: Type, value: Any, path: str) -> Any:
        if value is None:
            return _EMPTY.get(wanted.sort)
        return self.decoded(wanted, value, path)


_READERS: Mapping[str, Callable[[Decoder, Type, Any, str], Any]] = {
    "struct": Decoder.struct,
    "map": Decoder.entries,
    "list": Decoder.items,
}
# What a Go element is that nothing was written to.
_EMPTY: Mapping[str, Any] = {
    "struct": {},
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "quantity": "0",
    "int-or-string": 0,
}


def body(kind: kinds.Kind, given: Any, validation: str) -> tuple[Object, list[str]]:
    """Read the body of a write to a kind; also returns what its author should be warned of.

    Of a custom resource only the metadata is read here: its own schema speaks for the rest.
    """
    if not isinstance(given, dict):
        raise api_errors.bad_request("the body of the request must be an object")
    resource = kind.resource
    named(given, resource.api_version, kind.name)
    wanted = builtin_schemas.find(resource.api_version, kind.name)
    if kind.custom or wanted is None:
        return _custom(kind, given, validation)
    return _read(wanted, resource.version, kind.name, given, validation)


# What structured merge types tell apart; the rest is read when the result is.
_TYPED = ("struct", "map", "list", "string", "integer", "number", "boolean")


def untyped(wanted: Type, given: Object) -> str:
    """Return why a configuration has not the form that its type says, empty when it has."""
    decoder = Decoder()
    try:
        decoder.decoded(wanted, given)
    except WrongTypeError as error:
        if error.sort in _TYPED:
            return str(error)
    if decoder.unknown:
        return f".{decoder.unknown[0]}: field not declared in schema"
    found = next(_ambiguous(wanted, given, ""), None)
    if found is None:
        return ""
    path, key = found
    return f"{path}: duplicate entries for key {key}" if key else f"{path}: a key is omitted"


def duplicates(wanted: Type, value: Object) -> list[tuple[str, Any]]:
    """Return the elements of lists that cannot be told from others, with their paths."""
    return [found for found in _ambiguous(wanted, value, "") if found[1]]


def _ambiguous(wanted: Type, value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the lists whose elements cannot be told apart, and the key that is there twice."""
    if isinstance(value, dict):
        for name, inner in value.items():
            field = wanted.fields.get(name) if wanted.sort == "struct" else None
            if field is not None:
                yield from _ambiguous(field, inner, f"{path}.{name}")
    elif isinstance(value, list) and (wanted.keys or wanted.is_set):
        seen = []
        for item in value:
            identity = item
            if wanted.keys:
                fields = wanted.element.fields
                given = {k: item.get(k, fields[k].default) for k in wanted.keys if k in fields}
                if any(inner is None for inner in given.values()):
                    yield path, None
                identity = given
                yield from _ambiguous(wanted.element, item, path)
            if identity in seen:
                yield path, identity
            seen.append(identity)


def unsupported(kind: kinds.Kind, value: Object) -> list[api_errors.Cause]:
    """Return the fields of an object that hold none of the words that their types list."""
    wanted = builtin_schemas.find(kind.resource.api_version, kind.name)
    if kind.custom or wanted is None:
        return []
    return list(_strange(wanted, value, ""))


def _strange(wanted: Type, value: Any, path: str) -> Iterator[api_errors.Cause]:
    words = wanted.raw.get("enum")
    if words is not None and value not in ("", *words):
        listed = ", ".join(f'"{word}"' for word in words)
        message = f'Unsupported value: "{value}": supported values: {listed}'
        yield api_errors.Cause(path, message, "FieldValueNotSupported")
    if wanted.sort == "struct":
        for name, inner in value.items():
            if (field := wanted.fields.get(name)) is not None and inner is not None:
                yield from _strange(field, inner, f"{path}.{name}" if path else name)
    elif wanted.sort == "list" and wanted.element.sort in ("struct", "string"):
        for index, inner in enumerate(value):
            yield from _strange(wanted.element, inner, f"{path}[{index}]")


def action(place: tuple[str, str, str], given: Any, validation: str) -> tuple[Object, list[str]]:
    """Read the body of an action, which has a kind but no resource of its own."""
    if not isinstance(given, dict):
        raise api_errors.bad_request("the body of the request must be an object")
    group, version, name = place
    api_version = f"{group}/{version}" if group else version
    named(given, api_version, name)
    wanted = builtin_schemas.find(api_version, name)
    assert wanted is not None, "every action has a type"
    return _read(wanted, version, name, given, validation)


def options(given: Any) -> Object:
    """Read DeleteOptions; an empty body is none."""
    if given is None:
        return {}
    return action(("", "v1", "DeleteOptions"), given, "Ignore")[0]


def named(given: Object, api_version: str, kind: str) -> None:
    """Refuse a body that says it is of another kind or version."""
    for field, expected, title in (
        ("apiVersion", api_version, "API version"),
        ("kind", kind, "kind"),
    ):
        said = given.get(field)
        if said not in (None, "", expected):
            raise api_errors.bad_request(
                f"the {title} in the data ({said}) does not match the expected {title} ({expected})"
            )


def _read(
    wanted: Type, version: str, kind: str, given: Object, validation: str
) -> tuple[Object, list[str]]:
    decoder = Decoder()
    try:
        value: Object = decoder.decoded(wanted, given)
    except WrongTypeError as error:
        raise api_errors.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
        ) from error
    value.setdefault("metadata", {})
    unknown = [f'unknown field "{path}"' for path in decoder.unknown]
    return value, judged(kind, version, unknown, validation)


def _custom(kind: kinds.Kind, given: Object, validation: str) -> tuple[Object, list[str]]:
    holder = Decoder()
    version = kind.resource.version
    try:
        meta = holder.decoded(builtin_schemas.metadata(), given.get("metadata") or {}, "metadata")
    except WrongTypeError as error:
        raise api_errors.bad_request(
            f'{kind.name} in version "{version}" cannot be handled as a {kind.name}: {error}'
        ) from error
    unknown = [f'unknown field "{path}"' for path in holder.unknown]
    if kind.schema is not None:
        unknown += [f'unknown field "{path}"' for path in kind.schema.unknown(given)]
    return {**given, "metadata": meta}, judged(kind.name, version, unknown, validation)


def judged(kind: str, version: str, unknown: list[str], validation: str) -> list[str]:
    """Judge unknown fields as the request wishes; returns warnings."""
    if unknown and validation == "Strict":
        raise api_errors.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: '
            f"strict decoding error: {', '.join(unknown)}"
        )
    return [] if validation == "Ignore" else unknown


def _misfit(wanted: Type, value: Any, path: str) -> WrongTypeError:
    return WrongTypeError(
        f"json: cannot unmarshal {_said(value)} into field {path or 'of the body'} "
        f"of type {wanted.sort}",
        wanted.sort,
    )


def _said(value: Any) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")


def _is_text(_: Type, value: Any) -> bool:
    return isinstance(value, str)


def _is_integer(wanted: Type, value: Any) -> bool:
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    limit = 1 << _BITS.get(wanted.raw.get("format", ""), 63)
    return -limit <= value < limit


def _is_number(_: Type, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_truth(_: Type, value: Any) -> bool:
    return isinstance(value, bool)


def _is_quantity(_: Type, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        quantity.milli(value)
    except quantity.QuantityError:
        return False
    return True


def _is_amount(_: Type, value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31
    return whole or isinstance(value, str)


def _is_time(_: Type, value: Any) -> bool:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_base64(_: Type, value: Any) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        return False
    return isinstance(value, str)


def _is_anything(_: Type, value: Any) -> bool:
    del value
    return True


_SCALARS: Mapping[str, Callable[[Type, Any], bool]] = {
    "string": _is_text,
    "integer": _is_integer,
    "number": _is_number,
    "boolean": _is_truth,
    "quantity": _is_quantity,
    "int-or-string": _is_amount,
    "time": _is_time,
    "bytes": _is_base64,
    "any": _is_anything,
}
