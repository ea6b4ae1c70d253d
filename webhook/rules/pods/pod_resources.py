"""Rewrite cpu and memory of batch and mid pods to the resources that colocation lends."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import quantity
from webhook import review

GROUP = "resources"
Amounts = Mapping[str, Any]
Defaulted = Callable[[str, str, int], bool]
"""Tells of requests or limits, a resource and an amount whether the namespace gave it."""


class FieldError(ValueError):
    """A quantity that cannot be read; the message names the field that holds it."""


def lent(pod: review.Pod) -> Mapping[str, str] | None:
    """Return native resources with those that the pod's band uses instead, None for none."""
    labels = (pod.get("metadata") or {}).get("labels") or {}
    band = qos.band_of((pod.get("spec") or {}).get("priority"), labels)
    band = band or qos.band_of_qos(qos.qos_of(labels))
    return qos.TRANSLATION.get(band or qos.band_of_pod(msgspec.convert(pod, core.Pod)))


def rewrite(pod: review.Pod, defaulted: Defaulted | None = None) -> review.Pod | review.Refusal:
    """Move cpu and memory of every container to the band's own resources.

    The overhead stays: an API server refuses a pod whose overhead is not that of its RuntimeClass.
    When a pod comes again, `defaulted` tells what was added to containers since, only because they
    did not state it any more: that stays, as it would be added for ever.
    """
    try:
        instead = lent(pod)
    except (msgspec.ValidationError, quantity.QuantityError) as wrong:
        return review.Refusal(GROUP, (f"pod: {wrong}",))
    if instead is None:
        return pod
    spec = pod.get("spec") or {}
    changed = dict(spec)
    try:
        for group in ("initContainers", "containers"):
            if spec.get(group):
                changed[group] = [
                    _container(c, instead, f"spec.{group}[{i}]", defaulted)
                    for i, c in enumerate(spec[group])
                ]
    except (FieldError, quantity.QuantityError) as wrong:
        return review.Refusal(GROUP, (str(wrong),))
    return {**pod, "spec": changed}


def _container(
    container: Mapping[str, Any],
    instead: Mapping[str, str],
    path: str,
    defaulted: Defaulted | None,
) -> Any:
    resources = container.get("resources")
    if not resources:
        return container
    changed = dict(resources)
    for part in ("requests", "limits"):
        if resources.get(part):
            kept = _kept(resources[part], instead, part, defaulted)
            place = f"{path}.resources.{part}"
            changed[part] = _moved(resources[part], instead, place, kept, part)
    limits: Amounts = changed.get("limits") or {}
    requests = dict(changed.get("requests") or {})
    for name in instead.values():
        if name in limits and name not in requests:
            requests[name] = limits[name]
    if requests:
        changed["requests"] = requests
    return {**container, "resources": changed}


def _kept(
    amounts: Amounts, instead: Mapping[str, str], part: str, defaulted: Defaulted | None
) -> frozenset[str] | None:
    """Return the native resources that stay beside the ones lent instead of them."""
    if defaulted is None:
        return None
    return frozenset(
        native
        for native, target in instead.items()
        if native in amounts
        and target in amounts
        and defaulted(part, native, quantity.milli(amounts[native]))
    )


def _moved(
    amounts: Amounts,
    instead: Mapping[str, str],
    path: str,
    kept: frozenset[str] | None,
    part: str,
) -> dict[str, Any]:
    moved = {name: value for name, value in amounts.items() if name not in instead}
    for native, target in instead.items():
        if native not in amounts:
            continue
        if kept and native in kept:
            moved[native] = amounts[native]
            continue
        amount = _amount(native, amounts[native], f"{path}.{native}")
        # What came later does not take away what was asked for first, and lifts no limit.
        first = kept is None or target not in amounts
        if first or _exceeds(amount, amounts[target]) is not (part == "limits"):
            moved[target] = amount
    return moved


def _exceeds(one: str, other: Any) -> bool:
    return quantity.parse(one).nanos > quantity.parse(other).nanos


def _amount(native: str, value: Any, path: str) -> str:
    try:
        if native == names.CPU:
            return quantity.format_decimal(quantity.milli(value))
        return quantity.canonical(value)
    except quantity.QuantityError as wrong:
        raise FieldError(f"{path}: {wrong}") from wrong
