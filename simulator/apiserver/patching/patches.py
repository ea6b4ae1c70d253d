"""The patch types that clients send."""

from collections.abc import Mapping
from typing import Any

import jsonpatch
import orjson
import yaml

from api.kubernetes.patching import strategic
from simulator.apiserver.http import api_errors, bodies
from simulator.apiserver.patching import field_sets
from simulator.apiserver.registry import kinds
from simulator.apiserver.storage import lifecycle

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
MEDIA_TYPES = (JSON_PATCH, MERGE, STRATEGIC, APPLY)
MAX_OPERATIONS = 10_000

Object = dict[str, Any]


def decode(media: str, body: bytes) -> Any:
    """Read the body of a patch."""
    try:
        if media == APPLY:
            return bodies.read(body)
        return orjson.loads(body)
    except (ValueError, yaml.YAMLError) as error:
        raise api_errors.bad_request(f"error decoding patch: {error}") from error


def patched(kind: kinds.Kind, media: str, current: Object, patch: Any) -> Object:
    """Return the object after a patch other than server-side apply."""
    if media == JSON_PATCH:
        return _json_patched(kind, current, patch)
    if not isinstance(patch, Mapping):
        raise api_errors.bad_request("a merge patch must be a JSON object")
    if media == MERGE:
        result: Object = merged(current, patch)
        return result
    if kind.custom:
        raise api_errors.unsupported_media(", ".join((JSON_PATCH, MERGE, APPLY)))
    wanted = field_sets.type_of(kind)
    if keyless := _keyless(wanted, patch, current):
        raise api_errors.untyped(f"map: {keyless} does not contain declared merge key")
    try:
        return strategic.merge(current, _known(wanted, patch))
    except strategic.PatchError as error:
        raise api_errors.untyped(str(error)) from error


def _known(wanted: field_sets.Type, patch: Any) -> Any:
    """Return a strategic merge patch in which nothing of an unknown field is merged."""
    if isinstance(patch, Mapping):
        return {
            name: _known(field_sets.below(wanted, name), inner)
            if wanted.sort != "struct" or name in wanted.fields or name.startswith("$")
            # The reader of the result says that there is no such field.
            else True
            for name, inner in patch.items()
        }
    if isinstance(patch, list) and wanted.sort == "list":
        return [_known(wanted.element, item) for item in patch]
    return patch


def _keyless(wanted: field_sets.Type, patch: Any, current: Any) -> Any:
    """Return an element of a patch that lacks what tells it from those that are there."""
    if isinstance(patch, Mapping):
        live = current if isinstance(current, Mapping) else {}
        inner = (
            _keyless(field_sets.below(wanted, name), value, live.get(name))
            for name, value in patch.items()
        )
        return next((found for found in inner if found), None)
    if isinstance(patch, list) and wanted.sort == "list" and current:
        key = wanted.raw.get("x-kubernetes-patch-merge-key")
        for item in patch:
            plain = isinstance(item, Mapping) and "$patch" not in item
            if key and plain and key not in item:
                return item
    return None


def merged(current: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return lifecycle.copied(patch)
    result = dict(current) if isinstance(current, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def applied(current: Object, operations: Any) -> Object:
    """Apply a JSON patch (RFC 6902); ValueError says what does not fit."""
    try:
        result: Object = jsonpatch.JsonPatch(operations).apply(current)
    except (
        jsonpatch.JsonPatchException,
        jsonpatch.JsonPointerException,
        TypeError,
        AttributeError,
    ) as error:
        raise ValueError(f"{error}") from error
    if not isinstance(result, dict):
        raise ValueError("the patch replaces the whole object by something else")
    return result


def _json_patched(kind: kinds.Kind, current: Object, operations: Any) -> Object:
    if not isinstance(operations, list):
        raise api_errors.bad_request("a JSON patch must be a list of operations")
    if len(operations) > MAX_OPERATIONS:
        message = f"the allowed maximum operations in a JSON patch is {MAX_OPERATIONS}"
        raise api_errors.FailureError(
            413, "RequestEntityTooLarge", f"{message}, got {len(operations)}"
        )
    try:
        return applied(current, operations)
    except ValueError as error:
        name = current["metadata"]["name"]
        cause = api_errors.Cause("patch", f"Invalid value: {error}")
        raise api_errors.invalid(kind.group, kind.name, name, [cause]) from error
