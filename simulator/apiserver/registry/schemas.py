"""Structural schemas of custom resources: unknown fields, pruning, defaults and validation."""

import functools
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import jsonschema
import orjson

from simulator.apiserver.http import api_errors
from simulator.apiserver.storage import lifecycle

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
IDENTITY = ("apiVersion", "kind", "metadata")
_KEPT = (
    "type", "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties",
    "maxProperties", "multipleOf", "required", "format",
)  # fmt: skip
_LISTED = ("allOf", "anyOf", "oneOf")
_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks("date-time")
def _is_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


@_FORMATS.checks("int32")
def _is_int32(value: object) -> bool:
    return not isinstance(value, int) or -(2**31) <= value < 2**31


@_FORMATS.checks("int64")
def _is_int64(value: object) -> bool:
    return not isinstance(value, int) or -(2**63) <= value < 2**63


class Schema:
    """The schema of one version of a custom resource."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self._root = {**raw, EMBEDDED: True}

    @functools.cached_property
    def _validator(self) -> jsonschema.Draft4Validator:
        return jsonschema.Draft4Validator(_translated(self._root), format_checker=_FORMATS)

    def unknown(self, value: Mapping[str, Any]) -> list[str]:
        """Return the paths of fields that the schema does not know, in order."""
        return list(_unknown(self._root, value, ""))

    def pruned(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the object without what the schema does not know."""
        result: dict[str, Any] = _pruned(self._root, value)
        return result

    def defaulted(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the object with the schema's defaults filled in."""
        result: dict[str, Any] = _defaulted(self._root, value)
        return result

    def problems(self, value: Mapping[str, Any]) -> list[api_errors.Cause]:
        """Return what is wrong with an object, worded as a real API server words it."""
        found: list[api_errors.Cause] = []
        for error in self._validator.iter_errors(dict(value)):
            found += _causes(error)
        return sorted(set(found))


def has_rules(schema: Any) -> bool:
    """Tell whether a schema carries CEL rules, which are not evaluated here."""
    if isinstance(schema, str):
        return False
    if isinstance(schema, Mapping):
        return "x-kubernetes-validations" in schema or any(map(has_rules, schema.values()))
    return isinstance(schema, list) and any(map(has_rules, schema))


def _child(schema: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return the schema of a field, None when the field is unknown."""
    properties = schema.get("properties", {})
    if name in properties:
        found: Mapping[str, Any] = properties[name]
        return found
    extra = schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        return extra
    return {PRESERVE: True} if extra is True or schema.get(PRESERVE) else None


def _own(schema: Mapping[str, Any], name: str) -> bool:
    """Tell whether a field belongs to every object and is checked elsewhere."""
    return bool(schema.get(EMBEDDED)) and name in IDENTITY


def _unknown(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            here = f"{path}.{name}" if path else str(name)
            child = None if _own(schema, name) else _child(schema, name)
            if child is not None:
                yield from _unknown(child, inner, here)
            elif not _own(schema, name):
                yield here
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, inner in enumerate(value):
            yield from _unknown(schema["items"], inner, f"{path}[{index}]")


def _pruned(schema: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, Mapping):
        result = {}
        for name, inner in value.items():
            child = None if _own(schema, name) else _child(schema, name)
            if child is not None:
                result[name] = _pruned(child, inner)
            elif _own(schema, name):
                result[name] = inner
        return result
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [_pruned(schema["items"], inner) for inner in value]
    return value


def _defaulted(schema: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, Mapping):
        result = dict(value)
        for name, child in schema.get("properties", {}).items():
            absent = result.get(name) is None and not (name in result and child.get("nullable"))
            if absent and "default" in child:
                result[name] = lifecycle.copied(child["default"])
        for name, inner in result.items():
            below = None if _own(schema, name) else _child(schema, name)
            if below is not None:
                result[name] = _defaulted(below, inner)
        return result
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [_defaulted(schema["items"], inner) for inner in value]
    return value


def _translated(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema (draft 4) that means the same as a structural one."""
    result: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
    if schema.get(INT_OR_STRING):
        result["type"] = ["integer", "string"]
    if schema.get("nullable") and "type" in result:
        types = result["type"]
        result["type"] = [*(types if isinstance(types, list) else [types]), "null"]
        if "enum" in result:
            result["enum"] = [*result["enum"], None]
    if "properties" in schema:
        result["properties"] = {
            name: _translated(child)
            for name, child in schema["properties"].items()
            if not _own(schema, name)
        }
    if isinstance(schema.get("additionalProperties"), Mapping):
        result["additionalProperties"] = _translated(schema["additionalProperties"])
    if isinstance(schema.get("items"), Mapping):
        result["items"] = _translated(schema["items"])
    if isinstance(schema.get("not"), Mapping):
        result["not"] = _translated(schema["not"])
    for key in _LISTED:
        if key in schema:
            result[key] = [_translated(part) for part in schema[key]]
    return result


def _causes(error: jsonschema.ValidationError) -> Iterator[api_errors.Cause]:
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path
    ).lstrip(".")
    value: Any = error.instance
    wanted: Any = error.validator_value
    if error.validator == "required":
        for name in wanted:
            if name not in value:
                field = f"{path}.{name}" if path else name
                yield api_errors.Cause(field, "Required value", "FieldValueRequired")
        return
    if error.validator == "enum":
        choices = ", ".join(_text(choice) for choice in wanted if choice is not None)
        message = f"Unsupported value: {_text(value)}: supported values: {choices}"
        yield api_errors.Cause(path, message, "FieldValueNotSupported")
        return
    shown = _text(value) if not isinstance(value, dict | list) else f'"{_type(value)}"'
    said = _complaint(error, path)
    reason = "FieldValueTypeInvalid" if error.validator == "type" else "FieldValueInvalid"
    if error.validator == "type":
        shown = f'"{_type(value)}"'
    yield api_errors.Cause(path or "<nil>", f"Invalid value: {shown}: {said}", reason)


def _complaint(error: jsonschema.ValidationError, path: str) -> str:
    wanted: Any = error.validator_value
    rules: Any = error.schema
    subject = f"{path} in body"
    exclusive = {
        "minimum": bool(rules.get("exclusiveMinimum")),
        "maximum": bool(rules.get("exclusiveMaximum")),
    }
    or_equal = "" if exclusive.get(str(error.validator)) else " or equal to"
    types = ",".join(map(str, wanted)) if isinstance(wanted, list) else wanted
    sentences = {
        "type": f'{subject} must be of type {types}: "{_type(error.instance)}"',
        "minimum": f"{subject} should be greater than{or_equal} {wanted}",
        "maximum": f"{subject} should be less than{or_equal} {wanted}",
        "pattern": f"{subject} should match '{wanted}'",
        "minLength": f"{subject} should be at least {wanted} chars long",
        "maxLength": f"{subject} should be at most {wanted} chars long",
        "minItems": f"{subject} should have at least {wanted} items",
        "maxItems": f"{subject} should have at most {wanted} items",
        "format": f"{subject} must be of type {wanted}: {_text(error.instance)}",
        "anyOf": f"{subject} must validate at least one schema (anyOf)",
        "oneOf": f"{subject} must validate one and only one schema (oneOf)",
        "not": f"{subject} must not validate the schema (not)",
    }
    return sentences.get(str(error.validator), f"{subject} {error.message}")


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()


def _type(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")
