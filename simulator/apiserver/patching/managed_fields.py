"""Field ownership: who wrote which field, and server-side apply on top of it.

A field set is a set of paths. A path is a tuple of `f:name` and, for lists that merge by key,
`k:{...}` steps, as in `managedFields` on the wire. Other lists are owned as a whole.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from api import strategic
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import kinds
from simulator.apiserver.storage import lifecycle

Object = dict[str, Any]
Path = tuple[str, ...]
Fields = frozenset[Path]
ListKeys = Callable[[Path], tuple[str, ...] | None]

# Metadata that users own; the rest of the metadata belongs to the server.
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, how and to which part."""

    manager: str
    operation: str
    version: str
    subresource: str
    time: str

    def entry(self, fields: Iterable[Path]) -> Object:
        """Return the managedFields entry of this writer."""
        entry = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": _tree(fields),
        }
        return entry | ({"subresource": self.subresource} if self.subresource else {})

    def wrote(self, entry: Mapping[str, Any]) -> bool:
        """Tell whether an entry belongs to this writer."""
        return (
            entry.get("manager") == self.manager
            and entry.get("operation") == self.operation
            and entry.get("subresource", "") == self.subresource
        )


def merge_keys(kind: kinds.Kind) -> ListKeys:
    """Return what names the merge keys of lists of a kind, by the names on the way to them."""

    def keys(path: Path) -> tuple[str, ...] | None:
        if kind.schema is not None:
            return kind.schema.list_keys(path)
        if path[-1] == "ports" and "containers" in path:
            return ("containerPort", "protocol")
        return None if path[-1] in _ATOMIC else strategic.MERGE_KEYS.get(path[-1])

    return keys


_ATOMIC = ("imagePullSecrets", "topologySpreadConstraints", "ownerReferences")


def track(before: Object | None, after: Object, kind: kinds.Kind, writer: Writer) -> Object:
    """Return the object with `managedFields` after an ordinary write."""
    keys = merge_keys(kind)
    old = _leaves(_own(before), keys) if before is not None else {}
    new = _leaves(_own(after), keys)
    changed = frozenset(p for p, value in new.items() if p not in old or old[p] != value)
    lost = frozenset(old) - frozenset(new)
    entries = []
    mine: Fields = changed
    for entry in _entries(before):
        fields = _paths(entry)
        if writer.wrote(entry):
            mine |= fields
        elif rest := fields - changed - lost:
            entries.append(entry if rest == fields else {**entry, "fieldsV1": _tree(rest)})
    mine -= lost
    if not changed and not lost:
        return _managed(after, _entries(before))
    return _managed(after, [*entries, writer.entry(mine)] if mine else entries)


def apply(
    before: Object | None, config: Object, kind: kinds.Kind, writer: Writer, *, force: bool
) -> Object:
    """Return the object after server-side apply; fields of others are a conflict unless forced."""
    keys = merge_keys(kind)
    wanted = _leaves(_own(config), keys)
    if before is None:
        return _managed({**config}, [writer.entry(wanted)])
    live = _leaves(_own(before), keys)
    contested = frozenset(p for p, value in wanted.items() if p in live and live[p] != value)
    entries, mine, others = [], frozenset[Path](), frozenset[Path]()
    conflicts: list[tuple[Object, Path]] = []
    for entry in _entries(before):
        fields = _paths(entry)
        if writer.wrote(entry):
            mine = fields
            continue
        conflicts += [(entry, path) for path in sorted(fields & contested)]
        if rest := fields - contested:
            entries.append(entry if rest == fields else {**entry, "fieldsV1": _tree(rest)})
            others |= rest
    if conflicts and not force:
        raise _conflict(conflicts)
    result = _merged(before, config, (), keys)
    removed: set[Path] = set()
    # Shorter paths first: an element that goes as a whole needs its key to be found.
    for path in sorted(mine - frozenset(wanted) - others, key=len):
        covered = any(path[:length] in removed for length in range(1, len(path)))
        shared = any(other[: len(path)] == path for other in (*others, *wanted))
        if not covered and not shared and not _is_key(path):
            _remove(result, path)
            removed.add(path)
    return _managed(result, [*entries, writer.entry(wanted)])


def _conflict(conflicts: list[tuple[Object, Path]]) -> api_errors.FailureError:
    causes = [
        api_errors.Cause(
            _shown(path),
            f'conflict with "{entry["manager"]}"'
            + (f' with subresource "{entry["subresource"]}"' if entry.get("subresource") else "")
            + f" using {entry['apiVersion']}",
            "FieldManagerConflict",
        )
        for entry, path in conflicts
    ]
    listed = ", ".join(f"{cause.message}: {cause.field}" for cause in causes)
    word = "conflict" if len(causes) == 1 else "conflicts"
    return api_errors.FailureError(
        409,
        "Conflict",
        f"Apply failed with {len(causes)} {word}: {listed}",
        {"causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]},
    )


def _shown(path: Path) -> str:
    text = ""
    for step in path:
        mark, _, rest = step.partition(":")
        if mark == "f":
            text += f".{rest}"
        else:
            pairs = ",".join(
                f"{k}={orjson.dumps(v).decode()}" for k, v in orjson.loads(rest).items()
            )
            text += f"[{pairs}]"
    return text


def _own(value: Object | None) -> Object:
    """Return what users can own of an object."""
    if value is None:
        return {}
    rest = {k: v for k, v in value.items() if k not in ("apiVersion", "kind", "metadata")}
    metadata = {k: value["metadata"][k] for k in _METADATA if value["metadata"].get(k)}
    return {"metadata": metadata, **rest} if metadata else rest


def _entries(value: Object | None) -> list[Object]:
    return list((value or {}).get("metadata", {}).get("managedFields") or ())


def _managed(value: Object, entries: list[Object]) -> Object:
    metadata = {k: v for k, v in value["metadata"].items() if k != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**value, "metadata": metadata}


def _names(path: Path) -> tuple[str, ...]:
    return tuple(step[2:] for step in path if step.startswith("f:"))


def _step(item: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    present = {key: item[key] for key in keys if key in item}
    return "k:" + orjson.dumps(present, option=orjson.OPT_SORT_KEYS).decode()


def _is_keyed(value: Any, keys: tuple[str, ...] | None) -> bool:
    return (
        keys is not None
        and isinstance(value, list)
        and all(isinstance(item, Mapping) and any(k in item for k in keys) for item in value)
    )


def _leaves(value: Any, keys: ListKeys, path: Path = ()) -> dict[Path, Any]:
    """Return every ownable path of a value with what is there."""
    found: dict[Path, Any] = {}
    if isinstance(value, Mapping) and (value or not path):
        for name, inner in value.items():
            found |= _leaves(inner, keys, (*path, f"f:{name}"))
        return found
    wanted = keys(_names(path)) if isinstance(value, list) and value else None
    if wanted is not None and _is_keyed(value, wanted):
        for item in value:
            here = (*path, _step(item, wanted))
            found[here] = True
            found |= _leaves(item, keys, here)
        return found
    return {path: value}


def _merged(live: Any, config: Any, path: Path, keys: ListKeys) -> Any:
    if isinstance(config, Mapping):
        result = dict(live) if isinstance(live, Mapping) else {}
        for name, inner in config.items():
            if path or name not in ("apiVersion", "kind"):
                result[name] = _merged(result.get(name), inner, (*path, f"f:{name}"), keys)
        return result
    wanted = keys(_names(path)) if isinstance(config, list) else None
    if wanted is None or not _is_keyed(config, wanted) or not _is_keyed(live, wanted):
        return lifecycle.copied(config)
    items = {_step(item, wanted): item for item in live}
    for item in config:
        step = _step(item, wanted)
        items[step] = _merged(items.get(step), item, (*path, step), keys)
    return list(items.values())


def _is_key(path: Path) -> bool:
    """Tell whether a path names the key of a list element that stays."""
    return (
        len(path) > 1
        and path[-2].startswith("k:")
        and path[-1].partition(":")[2] in orjson.loads(path[-2].partition(":")[2])
    )


def _remove(value: Object, path: Path) -> None:
    """Remove a path from a private top level, copying what it changes below."""
    step, rest = path[0], path[1:]
    name = step.partition(":")[2]
    if step.startswith("k:") or name not in value:
        return
    if not rest:
        del value[name]
        return
    if rest[0].startswith("k:"):
        value[name] = _without(value[name], rest)
    elif isinstance(value[name], Mapping):
        value[name] = dict(value[name])
        _remove(value[name], rest)
    if not value[name]:
        del value[name]


def _without(items: list[Object], path: Path) -> list[Object]:
    wanted: Object = orjson.loads(path[0].partition(":")[2])
    result = []
    for item in items:
        if any(item.get(key) != value for key, value in wanted.items()):
            result.append(item)
        elif len(path) > 1:
            inner = dict(item)
            _remove(inner, path[1:])
            result.append(inner)
    return result


def _tree(fields: Iterable[Path]) -> Object:
    tree: Object = {}
    for path in sorted(fields):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
            if step.startswith("k:"):
                node.setdefault(".", {})
    return tree


def _paths(entry: Mapping[str, Any]) -> Fields:
    return frozenset(_walk(entry.get("fieldsV1") or {}, ()))


def _walk(tree: Mapping[str, Any], path: Path) -> Iterable[Path]:
    for step, below in tree.items():
        if step == ".":
            yield path
        elif below:
            yield from _walk(below, (*path, step))
        else:
            yield (*path, step)
