"""Rewrite cpu and memory of batch and mid pods to the resources that colocation lends."""

from collections.abc import Mapping
from typing import Any

import msgspec

from api import core, names, qos, quantity
from webhook import review

GROUP = "resources"
Amounts = Mapping[str, Any]


class FieldError(ValueError):
    """A quantity that cannot be read; the message names the field that holds it."""


def rewrite(pod: review.Pod) -> review.Pod | review.Refusal:
    """Move cpu and memory of every container, and the overhead, to the band's own resources."""
    try:
        lent = qos.TRANSLATION.get(qos.band_of_pod(msgspec.convert(pod, core.Pod)))
    except (msgspec.ValidationError, quantity.QuantityError) as wrong:
        return review.Refusal(GROUP, (f"pod: {wrong}",))
    if lent is None:
        return pod
    spec = pod.get("spec") or {}
    changed = dict(spec)
    try:
        for group in ("initContainers", "containers"):
            if spec.get(group):
                changed[group] = [
                    _container(c, lent, f"spec.{group}[{i}]") for i, c in enumerate(spec[group])
                ]
        if spec.get("overhead"):
            changed["overhead"] = _moved(spec["overhead"], lent, "spec.overhead")
    except FieldError as wrong:
        return review.Refusal(GROUP, (str(wrong),))
    return {**pod, "spec": changed}


def _container(container: Mapping[str, Any], lent: Mapping[str, str], path: str) -> Any:
    resources = container.get("resources")
    if not resources:
        return container
    changed = dict(resources)
    for part in ("requests", "limits"):
        if resources.get(part):
            changed[part] = _moved(resources[part], lent, f"{path}.resources.{part}")
    limits: Amounts = changed.get("limits") or {}
    requests = dict(changed.get("requests") or {})
    for name in lent.values():
        if name in limits and name not in requests:
            requests[name] = limits[name]
    if requests:
        changed["requests"] = requests
    return {**container, "resources": changed}


def _moved(amounts: Amounts, lent: Mapping[str, str], path: str) -> dict[str, Any]:
    moved = {name: value for name, value in amounts.items() if name not in lent}
    for native, target in lent.items():
        if native in amounts:
            moved[target] = _amount(native, amounts[native], f"{path}.{native}")
    return moved


def _amount(native: str, value: Any, path: str) -> str:
    try:
        if native == names.CPU:
            return quantity.format_decimal(quantity.milli(value))
        return quantity.canonical(value)
    except quantity.QuantityError as wrong:
        raise FieldError(f"{path}: {wrong}") from wrong
