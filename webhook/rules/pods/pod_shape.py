"""Refuse pods whose QoS class, priority and resources contradict each other."""

from collections.abc import Iterator, Mapping
from typing import Any

from api import names
from api.koordinator.metadata import qos
from domain.pods import pod_consistency
from webhook import gates, review

RESERVED = "reservation"
COLOCATION = "colocation"

IMMUTABLE = "field is immutable; delete the pod and create it anew"


def check(
    asked: review.Review, requests: Mapping[str, int], on: frozenset[str]
) -> review.Refusal | None:
    """Check a pod; `requests` is what it asks as a whole (cpu in milli, the rest in whole units).

    The first failing group is answered, with every fault in it.
    """
    pod = asked.object
    forbidden = tuple(pod_consistency.reserved(_metadata(pod, "annotations")))
    if forbidden:
        return review.Refusal(RESERVED, forbidden)
    quality = qos.qos_of(_metadata(pod, "labels"))
    faults = (
        *_changed(asked, on),
        *pod_consistency.of_pod(quality, _band(pod), requests),
    )
    return review.Refusal(COLOCATION, faults) if faults else None


def _changed(asked: review.Review, on: frozenset[str]) -> Iterator[str]:
    if asked.operation != "UPDATE" or asked.old is None:
        return
    new_labels, old_labels = _metadata(asked.object, "labels"), _metadata(asked.old, "labels")
    if qos.qos_of(new_labels) != qos.qos_of(old_labels):
        value = new_labels.get(names.LABEL_QOS, "")
        yield f'labels.{names.LABEL_QOS}: Invalid value: "{value}": {IMMUTABLE}'
    if _band(asked.object) != _band(asked.old):
        yield f'spec.priority: Invalid value: "{_band(asked.object).value}": {IMMUTABLE}'
    key = names.LABEL_PRIORITY
    if gates.SKIP_PRIORITY in on:
        return
    if new_labels.get(key, "") != old_labels.get(key, ""):
        yield f'labels.{key}: Invalid value: "{new_labels.get(key, "")}": {IMMUTABLE}'


def _band(pod: review.Pod) -> qos.Band:
    return qos.band_of((pod.get("spec") or {}).get("priority"), _metadata(pod, "labels"))


def _metadata(pod: review.Pod, part: str) -> Mapping[str, Any]:
    return (pod.get("metadata") or {}).get(part) or {}
