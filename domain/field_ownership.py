"""Which fields of an object a client has set, by the object's managedFields.

The manager neither takes nor fights for what another client has set; admission does not hold
against a person what the manager has set. A path is a tuple of field names; what the API server
cannot own in parts (a list, a value) is one path. Only objects are looked into.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

Path = tuple[str, ...]
Entry = Mapping[str, Any]

MANAGER: Final = "koord-manager"
"""The name under which the manager owns fields."""
_DEEPEST: Final = 32
"""Levels of fields that are distinguished; the specs that we write have a third of them."""


def is_ours(entry: Entry) -> bool:
    """Tell whether an entry says what our manager has applied.

    Koordinator's manager writes under the same name, but does not apply; the API server refuses
    to let an apply take what it wrote.
    """
    return is_managers(entry) and entry.get("operation", "Apply") == "Apply"


def is_managers(entry: Entry) -> bool:
    """Tell whether an entry says what a manager has written, ours or Koordinator's."""
    return entry.get("manager") == MANAGER


def owned(managed_fields: Any, whose: Callable[[Entry], bool]) -> frozenset[Path]:
    """Return the paths below ``spec`` in the chosen entries; what has no shape says nothing."""
    entries = managed_fields if isinstance(managed_fields, list | tuple) else ()
    return frozenset(
        path
        for entry in entries
        if isinstance(entry, Mapping) and whose(entry) and not entry.get("subresource")
        for path in _paths(_inner(_inner(entry, "fieldsV1"), "f:spec"), ())
    )


def _inner(fields: Any, name: str) -> Any:
    return fields.get(name) if isinstance(fields, Mapping) else None


def _paths(fields: Any, prefix: Path) -> Iterator[Path]:
    below = {}
    if isinstance(fields, Mapping) and len(prefix) < _DEEPEST:
        below = {name[2:]: inner for name, inner in fields.items() if name.startswith("f:")}
    if not below and prefix:
        yield prefix
    for name, inner in below.items():
        yield from _paths(inner, (*prefix, name))


def covers(paths: frozenset[Path], path: Path) -> bool:
    """Tell whether a path, or an object that holds it, is among paths."""
    return any(path[:length] in paths for length in range(1, len(path) + 1))


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


def removed(value: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return a copy without what stands at a path."""
    name, *below = path
    kept = dict(value)
    if not below:
        kept.pop(name, None)
    elif isinstance(value.get(name), Mapping):
        kept[name] = removed(value[name], tuple(below))
    return kept


def differs(wanted: Mapping[str, Any], present: Mapping[str, Any], ours: frozenset[Path]) -> bool:
    """Whether what we want is not there, or something is still ours that we no longer want."""
    paths = dict(leaves(wanted))
    there = dict(leaves(present))
    if any(path not in there or there[path] != value for path, value in paths.items()):
        return True
    return any(path in there and path not in paths for path in ours)
