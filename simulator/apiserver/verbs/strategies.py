"""What a kind makes of what is written to it: one place that knows where each rule lives."""

from typing import Any

from simulator.apiserver.admission import webhooks
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import crds, defaults, kinds

Object = dict[str, Any]

CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")
_HOOKS = (webhooks.MUTATING, webhooks.VALIDATING)


def prepared(kind: kinds.Kind, body: Object, *, new: bool) -> Object:
    """Return an object with its defaults; `new` gives it the status of a beginning."""
    if kind.schema is not None:
        filled = kind.schema.defaulted(kind.schema.pruned(body))
        if new and kind.has_status:
            filled.pop("status", None)
        return filled
    if kind.sort == CRDS:
        body = crds.defaulted(body)
    return defaults.prepared(kind, body, new=new)


def checked(kind: kinds.Kind, old: Object | None, new: Object) -> None:
    """Refuse an object that breaks the rules of its kind."""
    found = defaults.problems(kind, old, new)
    if kind.schema is not None:
        found += kind.schema.problems(new)
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


def decoded(kind: kinds.Kind, body: Object, validation: str) -> list[str]:
    """Judge unknown fields as the request wishes; returns warnings."""
    if validation not in ("", "Ignore", "Warn", "Strict"):
        raise api_errors.bad_request(
            f'fieldValidation: Unsupported value: "{validation}": supported values: '
            '"Ignore", "Strict", "Warn"'
        )
    if kind.schema is None or validation == "Ignore":
        return []
    unknown = [f'unknown field "{path}"' for path in kind.schema.unknown(body)]
    if unknown and validation == "Strict":
        version = kind.resource.version
        raise api_errors.bad_request(
            f'{kind.name} in version "{version}" cannot be handled as a {kind.name}: '
            f"strict decoding error: {', '.join(unknown)}"
        )
    return unknown


def _refused(kind: kinds.Kind, body: Object) -> None:
    what = ""
    if kind.sort == CRDS:
        what = crds.unsupported(body)
    elif kind.sort in _HOOKS:
        what = webhooks.unsupported(body)
    if what:
        raise api_errors.missing(what)
