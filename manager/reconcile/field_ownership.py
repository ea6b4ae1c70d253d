"""Which fields of an object another client has set, so that we neither take nor fight for them.

A path is a tuple of field names; what the API server cannot own in parts (a list, a value) is one
path. Only objects are looked into.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

Path = tuple[str, ...]

MANAGER: Final = "koord-manager"
"""The name under which this process owns fields."""


def owned(managed_fields: Iterable[Mapping[str, Any]], *, ours: bool) -> frozenset[Path]:
    """Return the paths below ``spec`` that we, or anybody else, have set."""
    return frozenset(
        path
        for entry in managed_fields
        if _is_ours(entry) is ours and not entry.get("subresource")
        for path in _paths((entry.get("fieldsV1") or {}).get("f:spec") or {}, ())
    )


def _is_ours(entry: Mapping[str, Any]) -> bool:
    # Koordinator's manager writes under the same name, but does not apply; the API server refuses
    # to let an apply take what it wrote.
    return entry.get("manager") == MANAGER and entry.get("operation", "Apply") == "Apply"


def _paths(fields: Mapping[str, Any], prefix: Path) -> Iterator[Path]:
    below = {name[2:]: inner for name, inner in fields.items() if name.startswith("f:")}
    if not below and prefix:
        yield prefix
    for name, inner in below.items():
        yield from _paths(inner, (*prefix, name))


def leaves(value: Mapping[str, Any], prefix: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Walk over everything in an object that is no object, or an empty one."""
    for name, inner in value.items():
        path = (*prefix, name)
        if isinstance(inner, Mapping) and inner:
            yield from leaves(inner, path)
        else:
            yield path, inner


def without(value: Mapping[str, Any], foreign: frozenset[Path]) -> dict[str, Any]:
    """Leave out what is set by another client, and every object that is or becomes empty.

    An empty object says nothing, and where it takes the place of fields that were ours the API
    server would make it null and then refuse that.
    """
    kept: dict[str, Any] = {}
    for path, inner in leaves(value):
        if inner != {} and not any(
            path[: len(other)] == other or other[: len(path)] == path for other in foreign
        ):
            place(kept, path, inner)
    return kept


def place(target: dict[str, Any], path: Path, value: Any) -> None:
    """Put a value at a path, making the objects on the way."""
    for name in path[:-1]:
        target = target.setdefault(name, {})
    target[path[-1]] = value


def differs(wanted: Mapping[str, Any], present: Mapping[str, Any], ours: frozenset[Path]) -> bool:
    """Whether what we want is not there, or something is still ours that we no longer want."""
    paths = dict(leaves(wanted))
    there = dict(leaves(present))
    if any(path not in there or there[path] != value for path, value in paths.items()):
        return True
    return any(path in there and path not in paths for path in ours)
