"""The args of one plug-in in a pluginConfig: read strictly, each fault with its remedy. Pure."""

from typing import Any, Final, NamedTuple, TypeVar

import pydantic

from api.plugin_args.arguments import Arguments
from api.wire import base
from domain.cluster_settings.value_limits import shown
from domain.scheduler_settings import known_names
from domain.scheduler_settings.notes import Notes

A = TypeVar("A", bound=Arguments)

_MOST_TOLD: Final = 20
_RANGES: Final = {
    "greater_than": ("gt", "more than {}"),
    "greater_than_equal": ("ge", "at least {}"),
    "less_than_equal": ("le", "at most {}"),
    "literal_error": ("expected", "one of {}"),
}


class Type(NamedTuple):
    """What apiVersion and kind of the args are, where they say it."""

    api_version: str
    kind: str


def read(model: type[A], written: Any, path: str, of_type: Type, notes: Notes) -> A | None:
    """Return the arguments; None, with the faults noted, where they cannot be read."""
    body = notes.mapping(path, written)
    if body is None:
        return None
    notes.type(path, body, of_type.api_version, of_type.kind)
    said = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
    return validated(model, said, path, notes)


def validated(model: type[A], said: dict[str, Any], path: str, notes: Notes) -> A | None:
    """Return the arguments that a mapping holds, which says no type."""
    try:
        found = model.model_validate(_frozen(said), strict=True, by_alias=True, by_name=False)
    except pydantic.ValidationError as error:
        for problem in error.errors(include_url=False)[:_MOST_TOLD]:
            where = f"{path}.{base.dotted(problem['loc'])}" if problem["loc"] else path
            notes.fault(where, _note(model, problem))
        return None
    for field, doubt in found.doubts():
        notes.warn(f"{path}.{field}", doubt)
    return found


def _frozen(value: Any) -> Any:
    """Return a value with tuples for lists: a strict reader takes nothing else for a tuple."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    return value


def _note(model: type[Arguments], problem: Any) -> str:
    """Say what is wrong with a field and what would be right."""
    kind, value = problem["type"], shown(problem["input"])
    if kind == "extra_forbidden":
        known = [field.alias or name for name, field in model.model_fields.items()]
        place = problem["loc"]
        close = known_names.meant(str(place[-1]), known) if len(place) == 1 else None
        return f"does not exist; did you mean {close}?" if close else "does not exist; remove it"
    if kind == "missing":
        return "is missing; give it a value"
    if kind in _RANGES:
        name, text = _RANGES[kind]
        must = text.format(problem["ctx"][name])
        return f"is {value}, must be {must}; correct it or leave it out"
    reason = problem["msg"].removeprefix("Value error, ")
    if kind == "value_error" and isinstance(problem["input"], dict):
        # It is about fields that do not go together, and says itself which and what to do.
        return str(reason)
    return f"is {value}: {reason}; correct it or leave it out"
