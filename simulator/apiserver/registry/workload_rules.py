"""What workloads must be, beside the pods that they make."""

import re
from collections.abc import Mapping
from typing import Any

from api.kubernetes import selectors
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import placement_rules, pods

Object = Mapping[str, Any]
Cause = api_errors.Cause

_PERCENT = re.compile(r"[0-9]+%")
_NUMBERS = ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")


def problems(body: Object) -> list[Cause]:
    """Return what is wrong with a ReplicaSet, or with a Deployment but for its strategy."""
    found = pods.template_problems(body)
    spec = body.get("spec", {})
    labels = (spec.get("template", {}).get("metadata") or {}).get("labels") or {}
    found += [
        _invalid(f"spec.{field}", spec[field], "must be greater than or equal to 0")
        for field in _NUMBERS
        if spec.get(field, 0) < 0
    ]
    selector = spec.get("selector")
    if not selector:
        found.append(Cause("spec.selector", "Required value", "FieldValueRequired"))
    elif wrong := placement_rules.selector_problems(selector, "spec.selector"):
        found += wrong
    elif not selectors.matches(selector, labels):
        path = "spec.template.metadata.labels"
        found.append(_invalid(path, labels, "`selector` does not match template `labels`"))
    policy = spec.get("template", {}).get("spec", {}).get("restartPolicy", "Always")
    if policy != "Always":
        message = f'Unsupported value: "{policy}": supported values: "Always"'
        path = "spec.template.spec.restartPolicy"
        found.append(Cause(path, message, "FieldValueNotSupported"))
    return found


def deployment_problems(body: Object) -> list[Cause]:
    """Return what is wrong with a Deployment."""
    found = problems(body)
    strategy = body.get("spec", {}).get("strategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    path = "spec.strategy.rollingUpdate"
    if strategy.get("type") == "Recreate" and rolling:
        message = "Forbidden: may not be specified when strategy `type` is 'Recreate'"
        found.append(Cause(path, message, "FieldValueForbidden"))
    for field in ("maxUnavailable", "maxSurge"):
        value = rolling.get(field, 0)
        if isinstance(value, str) and not _PERCENT.fullmatch(value):
            why = "a valid percent string must be a numeric string followed by an ending '%'"
            found.append(_invalid(f"{path}.{field}", value, why))
        elif isinstance(value, int) and value < 0:
            found.append(_invalid(f"{path}.{field}", value, "must be greater than or equal to 0"))
    if rolling and all(_is_zero(rolling.get(field, 0)) for field in ("maxUnavailable", "maxSurge")):
        why = "may not be 0 when `maxSurge` is 0"
        found.append(_invalid(f"{path}.maxUnavailable", rolling.get("maxUnavailable", 0), why))
    return found


def update_problems(old: Object, new: Object) -> list[Cause]:
    """Return what an update of a workload changes although it must not."""
    before, after = old.get("spec", {}).get("selector"), new.get("spec", {}).get("selector")
    return [] if before == after else [_invalid("spec.selector", after, "field is immutable")]


def _is_zero(value: Any) -> bool:
    return value == 0 or (isinstance(value, str) and value.rstrip("%").strip("0") == "")


def _invalid(path: str, value: Any, why: str) -> Cause:
    return Cause(path, f'Invalid value: "{value}": {why}')
