"""What a kind makes of what is written to it: one place that knows where each rule lives."""

from typing import Any

from simulator.apiserver.admission import webhooks
from simulator.apiserver.http import api_errors
from simulator.apiserver.patching import field_sets
from simulator.apiserver.registry import crds, decoding, defaults, kinds

Object = dict[str, Any]

CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")
_HOOKS = (webhooks.MUTATING, webhooks.VALIDATING)


def defaulted(kind: kinds.Kind, body: Object) -> Object:
    """Return an object with its defaults."""
    if kind.schema is not None:
        return kind.schema.defaulted(kind.schema.pruned(body))
    if kind.sort == CRDS:
        body = crds.defaulted(body)
    return defaults.defaulted(kind, body)


def begun(kind: kinds.Kind, body: Object) -> Object:
    """Return a new object with the status that every object of its kind begins with."""
    if kind.custom and kind.has_status:
        return {key: value for key, value in body.items() if key != "status"}
    return body if kind.custom else defaults.begun(kind, body)


def carried(kind: kinds.Kind, old: Object, new: Object, *, status: bool) -> Object:
    """Return a changed object with what only other writes may change."""
    return new if kind.custom else defaults.carried(kind, old, new, status=status)


def checked(kind: kinds.Kind, old: Object | None, new: Object) -> None:
    """Refuse an object that breaks the rules of its kind."""
    found = defaults.problems(kind, old, new) + decoding.unsupported(kind, new)
    if kind.schema is not None:
        found += kind.schema.problems(new)
        found += [
            api_errors.Cause(path, f"Duplicate value: {value}", "FieldValueDuplicate")
            for path, value in decoding.duplicates(field_sets.type_of(kind), new)
        ]
    elif kind.sort == CRDS:
        found += crds.problems(new)
    elif kind.sort in _HOOKS:
        found += webhooks.problems(new)
    if found:
        raise api_errors.invalid(kind.group, kind.name, new["metadata"].get("name", ""), found)
    _refused(kind, new)


def warnings(kind: kinds.Kind, body: Object) -> list[str]:
    """Return what a writer should know although the write is accepted."""
    return crds.warnings(body) if kind.sort == CRDS else []


def _refused(kind: kinds.Kind, body: Object) -> None:
    what = ""
    if kind.sort == CRDS:
        what = crds.unsupported(body)
    elif kind.sort in _HOOKS:
        what = webhooks.unsupported(body)
    if what:
        raise api_errors.missing(what)
