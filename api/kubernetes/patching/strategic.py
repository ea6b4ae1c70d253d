"""Strategic merge patch for the built-in kinds that users patch, as Kubernetes defines it."""

from collections.abc import Mapping, Sequence
from typing import Any

JSON = Any

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"
ELEMENT_ORDER = "$setElementOrder/"

# Field name to the key by which its elements are merged. Lists that are absent are atomic. The
# names are unambiguous within pods, pod templates, nodes and services.
MERGE_KEYS: Mapping[str, tuple[str, ...]] = {
    "addresses": ("type",),
    "conditions": ("type",),
    "containers": ("name",),
    "devices": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "hostIPs": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "ports": ("containerPort", "port"),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "secrets": ("name",),
    "taints": ("key",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
PRIMITIVE_SETS = frozenset({"finalizers", "podCIDRs"})


class PatchError(ValueError):
    """A strategic merge patch that cannot be applied; names the field."""


def merge(
    original: Mapping[str, JSON], patch: Mapping[str, JSON], path: str = ""
) -> dict[str, JSON]:
    """Apply a patch to a JSON object and return the new object; neither argument changes."""
    directive = patch.get(DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchError(f"{path or 'patch'}: unknown directive {DIRECTIVE}: {directive!r}")
    result = dict(original)
    for key, value in patch.items():
        if key.startswith((RETAIN_KEYS, DELETE_PRIMITIVES, ELEMENT_ORDER)):
            _require_list(value, f"{path}.{key}" if path else key)
    retained = patch.get(RETAIN_KEYS)
    if retained is not None:
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_field(result, key, value, f"{path}.{key}" if path else key)
    _arrange(original, result, patch)
    return result


def _require_list(value: JSON, path: str) -> None:
    if not isinstance(value, list):
        raise PatchError(f"{path}: must be a list")


def _arrange(
    original: Mapping[str, JSON], result: dict[str, JSON], patch: Mapping[str, JSON]
) -> None:
    """Carry out what a patch says of lists as a whole: what leaves them, and in which order."""
    for key, value in patch.items():
        if key.startswith(DELETE_PRIMITIVES):
            _delete_primitives(result, key.removeprefix(DELETE_PRIMITIVES), value)
        elif key.startswith(ELEMENT_ORDER):
            field = key.removeprefix(ELEMENT_ORDER)
            if isinstance(result.get(field), list):
                result[field] = _ordered(field, original.get(field), result[field], value)


def _merge_field(result: dict[str, JSON], key: str, value: JSON, path: str) -> None:
    if value is None:
        result.pop(key, None)
    elif isinstance(value, Mapping):
        current = result.get(key)
        if current is None and value.get(DIRECTIVE) == "delete":
            result.pop(key, None)
            return
        result[key] = merge(current if isinstance(current, Mapping) else {}, value, path)
    elif isinstance(value, list):
        result[key] = _merge_list(key, result.get(key), value, path)
    else:
        result[key] = value


def _merge_list(field: str, current: JSON, patch: Sequence[JSON], path: str) -> list[JSON]:
    existing = list(current) if isinstance(current, list) else []
    if field in PRIMITIVE_SETS:
        return existing + [item for item in patch if item not in existing]
    keys = MERGE_KEYS.get(field)
    if keys is None or not all(isinstance(item, Mapping) for item in patch):
        return list(patch)
    if any(item.get(DIRECTIVE) == "replace" for item in patch):
        return [item for item in patch if item.get(DIRECTIVE) != "replace"]
    for item in patch:
        key = _identity(item, keys, path)
        found = next((i for i, old in enumerate(existing) if _same(old, item, key)), None)
        if item.get(DIRECTIVE) == "delete":
            if found is not None:
                del existing[found]
        elif found is None:
            existing.append(merge({}, item, path))
        else:
            existing[found] = merge(existing[found], item, path)
    return _ordered(field, current, existing, patch)


def _identity(item: Mapping[str, JSON], keys: tuple[str, ...], path: str) -> str:
    for key in keys:
        if key in item:
            return key
    raise PatchError(f"{path}: an element lacks its merge key {' or '.join(keys)}")


def _same(old: JSON, item: Mapping[str, JSON], key: str) -> bool:
    return isinstance(old, Mapping) and old.get(key) == item[key]


def _delete_primitives(result: dict[str, JSON], field: str, values: Sequence[JSON]) -> None:
    current = result.get(field)
    if isinstance(current, list):
        result[field] = [item for item in current if item not in values]


def _ordered(field: str, before: JSON, merged: list[JSON], order: Sequence[JSON]) -> list[JSON]:
    """Put the elements that a patch names in its order among those that it does not name.

    An element that was there before keeps its place relative to the unnamed ones; a new element
    goes in front of them, as the API server has it.
    """
    keys = MERGE_KEYS.get(field, ())
    old = before if isinstance(before, list) else []
    places = [_position(item, order, keys) for item in merged]
    named = [
        item
        for _, item in sorted(
            (
                (place, item)
                for place, item in zip(places, merged, strict=True)
                if place is not None
            ),
            key=lambda pair: pair[0],
        )
    ]
    others = [item for place, item in zip(places, merged, strict=True) if place is None]
    result: list[JSON] = []
    while named and others:
        mine, theirs = _position(named[0], old, keys), _position(others[0], old, keys)
        behind = mine is not None and theirs is not None and mine > theirs
        result.append(others.pop(0) if behind else named.pop(0))
    return result + named + others


def _position(item: JSON, order: Sequence[JSON], keys: tuple[str, ...]) -> int | None:
    for position, wanted in enumerate(order):
        if item == wanted:
            return position
        if isinstance(wanted, Mapping) and any(
            key in wanted and _same(item, wanted, key) for key in keys
        ):
            return position
    return None
