"""What selectors, and what a pod spec says of nodes and of other pods, must be."""

from collections.abc import Iterator, Mapping
from typing import Any

from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import metadata_rules

Object = Mapping[str, Any]
Cause = api_errors.Cause

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_LISTED = ("In", "NotIn")
_UNLISTED = ("Exists", "DoesNotExist")
_COMPARED = ("Gt", "Lt")
_FIELD = "metadata.name"


def problems(spec: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the affinities and spread constraints of a pod spec."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        for index, term in enumerate((affinity.get(kind) or {}).get(_REQUIRED) or ()):
            yield from _pod_term(term, f"{path}.affinity.{kind}.{_REQUIRED}[{index}]")
    required = (affinity.get("nodeAffinity") or {}).get(_REQUIRED)
    if required is not None:
        here = f"{path}.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
        yield from _node_terms(required.get("nodeSelectorTerms") or (), here)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        yield from _spread(constraint, f"{path}.topologySpreadConstraints[{index}]")


def selector_problems(selector: Object, path: str) -> list[Cause]:
    """Return what is wrong with a label selector."""
    found = metadata_rules.label_problems(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, wanted in enumerate(selector.get("matchExpressions") or ()):
        found += _requirement(wanted, f"{path}.matchExpressions[{index}]")
    return found


def _pod_term(term: Object, path: str) -> Iterator[Cause]:
    yield from selector_problems(term.get("labelSelector") or {}, f"{path}.labelSelector")
    key = term.get("topologyKey", "")
    if not key:
        yield _empty(f"{path}.topologyKey")
    wrong = metadata_rules.qualified_name_problems(key)
    yield from (_invalid(f"{path}.topologyKey", key, why) for why in wrong)


def _node_terms(terms: Any, path: str) -> Iterator[Cause]:
    if not terms:
        message = "Required value: must have at least one node selector term"
        yield Cause(path, message, "FieldValueRequired")
    for index, term in enumerate(terms):
        for number, wanted in enumerate(term.get("matchExpressions") or ()):
            yield from _requirement(
                wanted, f"{path}[{index}].matchExpressions[{number}]", compared=True
            )
        for number, wanted in enumerate(term.get("matchFields") or ()):
            yield from _field_requirement(wanted, f"{path}[{index}].matchFields[{number}]")


def _requirement(wanted: Object, path: str, *, compared: bool = False) -> Iterator[Cause]:
    operator, values, key = wanted.get("operator", ""), wanted.get("values"), wanted.get("key", "")
    if operator in _LISTED and not values:
        message = "Required value: must be specified when `operator` is 'In' or 'NotIn'"
        yield Cause(f"{path}.values", message, "FieldValueRequired")
    elif operator in _UNLISTED and values:
        message = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield Cause(f"{path}.values", message, "FieldValueForbidden")
    elif compared and operator in _COMPARED and len(values or ()) != 1:
        message = "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
        yield Cause(f"{path}.values", message, "FieldValueRequired")
    elif operator not in (*_LISTED, *_UNLISTED, *(_COMPARED if compared else ())):
        yield _invalid(f"{path}.operator", operator, "not a valid selector operator")
    wrong = metadata_rules.qualified_name_problems(key)
    yield from (_invalid(f"{path}.key", key, why) for why in wrong)


def _field_requirement(wanted: Object, path: str) -> Iterator[Cause]:
    operator, key = wanted.get("operator", ""), wanted.get("key", "")
    if operator not in _LISTED:
        yield _invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(wanted.get("values") or ()) != 1:
        message = (
            "Required value: must be only one value when `operator` is 'In' or 'NotIn' for node "
            "field selector"
        )
        yield Cause(f"{path}.values", message, "FieldValueRequired")
    if key != _FIELD:
        yield _invalid(f"{path}.key", key, "not a valid field selector key")


def _spread(constraint: Object, path: str) -> Iterator[Cause]:
    skew = constraint.get("maxSkew", 0)
    if skew <= 0:
        yield _invalid(f"{path}.maxSkew", skew, "must be greater than zero")
    if not constraint.get("topologyKey"):
        yield _empty(f"{path}.topologyKey")
    action = constraint.get("whenUnsatisfiable", "")
    if action not in ("DoNotSchedule", "ScheduleAnyway"):
        message = (
            f'Unsupported value: "{action}": supported values: "DoNotSchedule", "ScheduleAnyway"'
        )
        yield Cause(f"{path}.whenUnsatisfiable", message, "FieldValueNotSupported")
    yield from selector_problems(constraint.get("labelSelector") or {}, f"{path}.labelSelector")


def _empty(path: str) -> Cause:
    return Cause(path, "Required value: can not be empty", "FieldValueRequired")


def _invalid(path: str, value: Any, why: str) -> Cause:
    return Cause(path, f'Invalid value: "{value}": {why}')
