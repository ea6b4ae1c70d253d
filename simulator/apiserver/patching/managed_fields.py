"""Field management: who wrote which field, and server-side apply on top of it."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from simulator.apiserver.http import api_errors
from simulator.apiserver.patching import field_sets
from simulator.apiserver.registry import kinds

Object = dict[str, Any]
Path = field_sets.Path
Fields = field_sets.Fields

# What belongs to the server and to no manager.
_UNOWNED = ("apiVersion", "kind", "metadata")
_UNOWNED_METADATA = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields",
    "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
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
            "fieldsV1": field_sets.tree(fields),
        }
        return entry | ({"subresource": self.subresource} if self.subresource else {})

    def wrote(self, entry: Mapping[str, Any]) -> bool:
        """Tell whether an entry belongs to this writer."""
        return (
            entry.get("manager") == self.manager
            and entry.get("operation") == self.operation
            and entry.get("subresource", "") == self.subresource
        )


def track(before: Object | None, after: Object, kind: kinds.Kind, writer: Writer) -> Object:
    """Return the object with `managedFields` after an ordinary write."""
    if before is not None and not _entries(before):
        # What was never managed is not managed for an ordinary write.
        return _managed(after, [])
    wanted = field_sets.type_of(kind)
    nothing = field_sets.beginning(kind, wanted)
    # No manager owns what every object of the kind has, for having written below it.
    known = field_sets.holders_of(nothing, wanted)
    kept = {} if before is None else _own(before, kind, writer)
    stood = field_sets.values(kept, wanted, holders=True)
    old = {**field_sets.values(nothing, wanted, holders=True), **stood}
    new = field_sets.values(_own(after, kind, writer), wanted, holders=True)
    changed = frozenset(
        path
        for path, value in new.items()
        if not (path in known and value is field_sets.HOLDER) and _differs(old, path, value)
    )
    lost = frozenset(stood) - frozenset(new)
    if not changed and not lost:
        return _managed(after, _entries(before))
    entries = []
    mine: Fields = changed
    own: Object | None = None
    for entry in _entries(before):
        fields = field_sets.paths(entry.get("fieldsV1") or {})
        if writer.wrote(entry):
            mine |= fields
            own = entry
        elif rest := fields - changed - lost:
            entries.append(_narrowed(entry, fields, rest))
    mine -= lost
    if mine:
        entry = writer.entry(mine)
        # Taking nothing is no reason for a newer time.
        entries.append(entry if changed or own is None else {**entry, "time": own["time"]})
    return _managed(after, entries)


def apply(
    before: Object | None, config: Object, kind: kinds.Kind, writer: Writer, *, force: bool
) -> Object:
    """Return the object after server-side apply; fields of others are a conflict unless forced.

    Applying what is there already changes nothing, not even the time of the entry.
    """
    kind_type = field_sets.type_of(kind)
    wanted = field_sets.values(_own(config, kind, writer), kind_type, holders=False)
    if before is None:
        return _managed({**config}, [writer.entry(wanted)] if wanted else [])
    live = field_sets.values(_own(before, kind, writer), kind_type, holders=False)
    contested = frozenset(p for p, value in wanted.items() if p in live and live[p] != value)
    # What appears with an applied field is no longer as a manager declared it that owns it empty.
    contested |= _held(config, kind, writer) - _held(before, kind, writer)
    entries, mine, others = [], frozenset[Path](), frozenset[Path]()
    before = _adopted(before, kind, writer)
    conflicts: list[tuple[Object, Path]] = []
    for entry in _entries(before):
        fields = field_sets.paths(entry.get("fieldsV1") or {})
        if writer.wrote(entry):
            mine = fields
            continue
        conflicts += [(entry, path) for path in sorted(fields & contested)]
        if rest := fields - contested:
            entries.append(_narrowed(entry, fields, rest))
            others |= rest
    if conflicts and not force:
        raise _conflict(conflicts)
    body = {key: value for key, value in config.items() if key not in ("apiVersion", "kind")}
    result = field_sets.merged(before, body, kind_type)
    removed: set[Path] = set()
    # Shorter paths first: an element that goes as a whole needs its key to be found.
    for path in sorted(mine - frozenset(wanted) - others, key=len):
        covered = any(path[:length] in removed for length in range(1, len(path)))
        shared = any(other[: len(path)] == path for other in (*others, *wanted))
        if not covered and not shared and not field_sets.is_key(path):
            field_sets.remove(result, kind_type, path)
            removed.add(path)
    applied = _managed(result, [*entries, writer.entry(wanted)] if wanted else entries)
    return before if is_same(before, applied) else applied


def is_same(before: Object, after: Object) -> bool:
    """Tell whether an apply changed nothing: the times of entries are no change."""
    return _timeless(after) == _timeless(before)


def _held(value: Object, kind: kinds.Kind, writer: Writer) -> Fields:
    kind_type = field_sets.type_of(kind)
    return frozenset(field_sets.values(_own(value, kind, writer), kind_type, holders=True))


def _adopted(before: Object, kind: kinds.Kind, writer: Writer) -> Object:
    """Return an object whose fields have an owner before they are applied to at first."""
    if _entries(before):
        return before
    wanted = field_sets.type_of(kind)
    fields = field_sets.values(_own(before, kind, writer), wanted, holders=True)
    known = field_sets.holders_of(field_sets.beginning(kind, wanted), wanted)
    first = dataclasses.replace(
        writer, manager="before-first-apply", operation="Update", subresource=""
    )
    kept = [path for path in fields if path not in known]
    return _managed(before, [first.entry(kept)]) if kept else before


def _differs(old: Mapping[Path, Any], path: Path, value: Any) -> bool:
    if path not in old:
        return True
    before = old[path]
    if value is field_sets.HOLDER or before is field_sets.HOLDER:
        # What holds something now or held something before is the same holder.
        return value not in (field_sets.HOLDER, {}, []) and value is not None
    return bool(before != value)


def _narrowed(entry: Object, fields: Fields, rest: Fields) -> Object:
    return entry if rest == fields else {**entry, "fieldsV1": field_sets.tree(rest)}


def _timeless(value: Object) -> Object:
    entries = [{k: v for k, v in e.items() if k != "time"} for e in _entries(value)]
    return _managed(value, sorted(entries, key=orjson.dumps))


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
        elif mark == "v":
            text += f"[={rest}]"
        else:
            pairs = ",".join(
                f"{k}={orjson.dumps(v).decode()}" for k, v in orjson.loads(rest).items()
            )
            text += f"[{pairs}]"
    return text


def _own(value: Object, kind: kinds.Kind, writer: Writer) -> Object:
    """Return what a writer can own of an object: the status only through its subresource."""
    rest = {k: v for k, v in value.items() if k not in _UNOWNED}
    if kind.has_status and not writer.subresource:
        rest.pop("status", None)
    metadata = {k: v for k, v in value.get("metadata", {}).items() if k not in _UNOWNED_METADATA}
    return {"metadata": metadata, **rest} if metadata else rest


def _entries(value: Object | None) -> list[Object]:
    return list((value or {}).get("metadata", {}).get("managedFields") or ())


def _managed(value: Object, entries: list[Object]) -> Object:
    metadata = {k: v for k, v in value["metadata"].items() if k != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**value, "metadata": metadata}
