"""JSON patches (RFC 6902) and JSON merge patches (RFC 7396)."""

from collections.abc import Mapping
from typing import Any

import jsonpatch

JSON = Any
Operation = dict[str, JSON]


def operations(before: JSON, after: JSON) -> list[Operation]:
    """Return the JSON patch that turns one document into another, empty when they are equal.

    Whatever both documents share costs nothing.
    """
    found: list[Operation] = []
    _compare(before, after, "", found)
    return found


def _compare(before: JSON, after: JSON, path: str, found: list[Operation]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        if before.keys() - after.keys():
            found += [
                {"op": "remove", "path": path + _step(name)} for name in before if name not in after
            ]
        for name, value in after.items():
            old = before.get(name, found)
            if old is value:
                continue
            if old is found:
                found.append({"op": "add", "path": path + _step(name), "value": value})
            elif type(old) is str and type(value) is str:
                # Most of what differs, and most of what does not.
                if old != value:
                    found.append({"op": "replace", "path": path + _step(name), "value": value})
            else:
                _compare(old, value, path + _step(name), found)
    elif isinstance(before, list) and isinstance(after, list):
        _compare_lists(before, after, path, found)
    elif not same(before, after):
        found.append({"op": "replace", "path": path, "value": after})


def _compare_lists(
    before: list[JSON], after: list[JSON], path: str, found: list[Operation]
) -> None:
    if len(before) == len(after):
        for index, old in enumerate(before):
            if old is not after[index]:
                _compare(old, after[index], f"{path}/{index}", found)
        return
    shorter = min(len(before), len(after))
    first = next((i for i in range(shorter) if not same(before[i], after[i])), shorter)
    rest = shorter - first
    last = next((i for i in range(rest) if not same(before[-1 - i], after[-1 - i])), rest)
    if first + last < shorter:
        found.append({"op": "replace", "path": path, "value": after})
    elif len(after) > len(before):
        found += [
            {"op": "add", "path": f"{path}/{index}", "value": after[index]}
            for index in range(first, len(after) - last)
        ]
    else:
        found += [{"op": "remove", "path": f"{path}/{first}"}] * (len(before) - shorter)


def applied(document: JSON, patch: list[Operation]) -> JSON:
    """Return the document with a JSON patch applied."""
    return jsonpatch.apply_patch(document, patch)


def _step(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")


def merge_patch(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the merge patch that turns one object into another; null removes a field."""
    patch: dict[str, JSON] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if name in before and same(old, value):
            continue
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            patch[name] = merge_patch(old, value)
        else:
            patch[name] = value
    return patch


def merged(document: JSON, patch: JSON) -> JSON:
    """Return the document with a merge patch applied."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(document) if isinstance(document, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def same(one: JSON, other: JSON) -> bool:
    """Tell whether two JSON values are equal; unlike in Python, true is not 1."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
