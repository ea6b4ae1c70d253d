"""Paths of fields as `managedFields` names them, and values by path.

A path is a tuple of steps: `f:name` for a field, `k:{...}` for an element of a list that merges by
key, `v:...` for an element of a list that is a set. Lists and maps that are atomic end a path.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from simulator.apiserver.registry import builtin_schemas, kinds
from simulator.apiserver.storage import lifecycle

Object = dict[str, Any]
Path = tuple[str, ...]
Fields = frozenset[Path]
Type = builtin_schemas.Type

ANYTHING = Type("", {})
HOLDER = object()
"""Stands for the value of a path below which other paths hold the values."""
# What stands in a field of Go that nothing was written to.
_ZERO: Mapping[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


def type_of(kind: kinds.Kind) -> Type:
    """Return the type of the objects of a kind."""
    resource = kind.resource
    if not kind.custom:
        return builtin_schemas.find(resource.api_version, kind.name) or ANYTHING
    raw = kind.schema.raw if kind.schema is not None else {}
    identity = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    properties = {**raw.get("properties", {}), **identity}
    properties["metadata"] = builtin_schemas.metadata().raw
    return Type("", {**raw, "type": "object", "properties": properties})


def below(wanted: Type, name: str) -> Type:
    """Return the type of a field, or of the value of a map."""
    if wanted.sort == "struct":
        return wanted.fields.get(name, ANYTHING)
    return wanted.element if wanted.sort == "map" else ANYTHING


def values(value: Any, wanted: Type, *, holders: bool) -> dict[Path, Any]:
    """Return what can be owned of a value, with what is there.

    `holders` also tells the paths of what holds others, which belong to the manager that adds the
    first.
    """
    found: dict[Path, Any] = {}
    _collect(value, wanted, (), found, holders=holders)
    return found


def _collect(
    value: Any, wanted: Type, path: Path, found: dict[Path, Any], *, holders: bool
) -> None:
    parts = () if wanted.atomic and wanted.sort != "any" else tuple(_parts(value, wanted))
    if not parts:
        if path:
            found[path] = value
        return
    if path and (holders or path[-1][:2] == "k:"):
        found[path] = HOLDER
    for step, inner, kind in parts:
        if step[:2] == "v:":
            found[(*path, step)] = inner
        else:
            _collect(inner, kind, (*path, step), found, holders=holders)


def _parts(value: Any, wanted: Type) -> Iterable[tuple[str, Any, Type]]:
    """Yield the steps that lead into a value; nothing where it is one piece."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield f"f:{name}", inner, below(wanted, name)
    elif isinstance(value, list) and wanted.is_set:
        for item in value:
            yield _member(item), item, wanted.element
    elif is_keyed(value, wanted):
        for item in value:
            yield step_of(item, wanted), item, wanted.element


def is_keyed(value: Any, wanted: Type) -> bool:
    """Tell whether a list is merged by the keys of its elements."""
    keys = wanted.keys
    return (
        bool(keys)
        and isinstance(value, list)
        and all(isinstance(item, Mapping) and any(k in item for k in keys) for item in value)
    )


def step_of(item: Mapping[str, Any], wanted: Type) -> str:
    """Return the step that leads to an element of a list that merges by key."""
    present = {}
    for key in wanted.keys:
        default = below(wanted.element, key).default
        if key in item or default is not None:
            present[key] = item.get(key, default)
    return "k:" + orjson.dumps(present, option=orjson.OPT_SORT_KEYS).decode()


def _member(item: Any) -> str:
    return f"v:{orjson.dumps(item).decode()}"


def beginning(kind: kinds.Kind, wanted: Type) -> Object:
    """Return an object of a kind that nothing was written to."""
    return {"metadata": {}} if kind.custom else blank(wanted)


def blank(wanted: Type) -> Object:
    """Return an object that nothing was written to, as Go would write it."""
    result: Object = {}
    for name, field in wanted.fields.items():
        if field.sort == "struct" and field.default == {}:
            result[name] = blank(field)
        elif name in wanted.required:
            result[name] = _ZERO.get(field.sort)
    return result


def holders_of(value: Any, wanted: Type, path: Path = ()) -> set[Path]:
    """Return the paths of a blank object, which no manager owns for having written below them."""
    found = set()
    for name, inner in value.items():
        here = (*path, f"f:{name}")
        field = below(wanted, name)
        if isinstance(inner, Mapping):
            found.add(here)
            found |= holders_of(inner, field, here)
        elif inner is None and field.sort in ("list", "map"):
            found.add(here)
    return found


def merged(live: Any, config: Any, wanted: Type) -> Any:
    """Return a live value with what an applied configuration says of it."""
    if config is None:
        return live
    if isinstance(config, Mapping) and not (wanted.atomic and wanted.sort != "any"):
        result = dict(live) if isinstance(live, Mapping) else {}
        for name, inner in config.items():
            result[name] = merged(result.get(name), inner, below(wanted, name))
        return result
    if isinstance(live, list) and isinstance(config, list):
        if wanted.is_set:
            old = {_member(item): item for item in live}
            return _woven(old, {**old, **{_member(item): item for item in config}}, config, _member)
        if is_keyed(config, wanted) and is_keyed(live, wanted):
            old = {step_of(item, wanted): item for item in live}
            items = dict(old)
            for item in config:
                step = step_of(item, wanted)
                items[step] = merged(items.get(step), item, wanted.element)
            return _woven(old, items, config, lambda item: step_of(item, wanted))
    return lifecycle.copied(config)


def _woven(
    old: Mapping[str, Any],
    items: Mapping[str, Any],
    config: Iterable[Any],
    name: Callable[[Any], str],
) -> list[Any]:
    """Order merged elements: the configuration rules over its own, others keep their places."""
    theirs = list(dict.fromkeys(name(item) for item in config))
    mine = list(old)
    order: dict[str, None] = {}
    while mine or theirs:
        if mine and (mine[0] in order or mine[0] not in theirs):
            order[mine.pop(0)] = None
        elif theirs:
            step = theirs.pop(0)
            order[step] = None
            if mine and mine[0] == step:
                mine.pop(0)
        else:
            order[mine.pop(0)] = None
    return [items[step] for step in order]


def is_key(path: Path) -> bool:
    """Tell whether a path names the key of a list element that stays."""
    return (
        len(path) > 1
        and path[-2].startswith("k:")
        and path[-1].partition(":")[2] in orjson.loads(path[-2].partition(":")[2])
    )


def remove(value: Object, wanted: Type, path: Path) -> None:
    """Remove a path from a private top level, copying what it changes below."""
    name, rest = path[0].partition(":")[2], path[1:]
    if not path[0].startswith("f:") or name not in value:
        return
    if not rest:
        del value[name]
        return
    field = below(wanted, name)
    if isinstance(value[name], list):
        value[name] = _without(value[name], field, rest)
    elif isinstance(value[name], Mapping):
        value[name] = dict(value[name])
        remove(value[name], field, rest)
    if not value[name] and field.sort != "struct":
        del value[name]


def _without(items: list[Any], wanted: Type, path: Path) -> list[Any]:
    result = []
    for item in items:
        step = _member(item) if wanted.is_set else step_of(item, wanted)
        if step != path[0]:
            result.append(item)
        elif len(path) > 1:
            inner = dict(item)
            remove(inner, wanted.element, path[1:])
            result.append(inner)
    return result


def tree(fields: Iterable[Path]) -> Object:
    """Return paths as `fieldsV1` on the wire."""
    result: Object = {}
    for path in sorted(fields):
        node = result
        for position, step in enumerate(path):
            node = node.setdefault(step, {})
            if position == len(path) - 1:
                node["."] = {}
    return _trimmed(result)


def _trimmed(node: Object) -> Object:
    """Leave out the mark of what stands for itself alone."""
    return {
        step: {} if set(inner) == {"."} else _trimmed(inner) if step != "." else {}
        for step, inner in node.items()
    }


def paths(fields: Mapping[str, Any]) -> Fields:
    """Return the paths that `fieldsV1` names."""
    return frozenset(_walk(fields, ()))


def _walk(node: Mapping[str, Any], path: Path) -> Iterable[Path]:
    for step, inner in node.items():
        if step == ".":
            yield path
        elif inner:
            yield from _walk(inner, (*path, step))
        else:
            yield (*path, step)
